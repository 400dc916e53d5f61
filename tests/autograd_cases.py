"""Small programs with autograd, run by MXNet (`oracle/record_autograd.py`) and by symjax (`test_autograd_cases.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.autograd_expressions import EXPRESSIONS
from tests.kvstore_cases import told

X = np.array([[0.5, -1.5, 2.0], [1.25, 0.75, -0.25]], "float32")
P = np.array([[0.5, 1.5, 2.0], [1.25, 0.75, 0.25]], "float32")


def attempt(call: Callable[[], Any]) -> Any:
    """The result, or the class of what is raised (and those above it), with its last line."""
    try:
        return told(call())
    except Exception as e:
        return {"raises": [c.__name__ for c in type(e).__mro__], "text": (str(e).strip().splitlines() or [""])[-1]}


def expression(mx: Any, name: str) -> Any:
    """[the values, the gradients of x and p for ones, of x for given head gradients]."""
    nd, found = mx.nd, []
    x, p = nd.array(X), nd.array(P)
    x.attach_grad()
    p.attach_grad()
    for heads in (False, True):
        with mx.autograd.record():
            y = eval(EXPRESSIONS[name], {"x": x, "p": p, "nd": nd, "abs": nd.abs})
        g = nd.array(np.cos(np.arange(int(np.prod(y.shape)))).reshape(y.shape)) if heads else None
        y.backward(g)
        found += [told(y)] if not heads else []
        found += [told(x.grad), told(p.grad)]
    return found


def variable(mx: Any, *values: float, req: str = "write") -> Any:
    x = mx.nd.array(values)
    x.attach_grad(req)
    return x


def case_add_over_steps(mx: Any) -> Any:
    x, found = variable(mx, 1, 2, req="add"), []
    for k in range(3):
        with mx.autograd.record():
            y = x * (k + 1)
        y.backward()
        found.append(told(x.grad))
    x.grad[:] = 0
    with mx.autograd.record():
        y = x * x
    y.backward()
    return [*found, told(x.grad)]


def case_null(mx: Any) -> Any:
    x, w = variable(mx, 1, 2, req="null"), variable(mx, 3, 4)
    with mx.autograd.record():
        y = x * w
    y.backward()
    return [told(w.grad), attempt(lambda: x.grad)]


def case_null_alone(mx: Any) -> Any:
    x = variable(mx, 1, 2, req="null")
    with mx.autograd.record():
        y = x * 2
    return attempt(y.backward)


def case_a_variable_itself(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        x.backward()
    return told(x.grad)


def case_attach_inside_record(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * 2
        y.attach_grad()
        z = y * y
    z.backward()
    return [told(x.grad), told(y.grad)]


def case_attach_again(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * 2
    x.attach_grad()
    y.backward()
    return told(x.grad)


def case_backward_twice(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
    y.backward()
    return attempt(y.backward)


def case_retain(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
        z = y * 3
    y.backward(retain_graph=True)
    first = told(x.grad)
    z.backward(retain_graph=True)
    second = told(x.grad)
    z.backward()
    return [first, second, told(x.grad), attempt(z.backward)]


def case_shared_part_freed(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
        a, b = y * 3, y * 4
    a.backward()
    return attempt(b.backward)


def case_two_heads(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        a, b = x * x, x * 3
    mx.autograd.backward([a, b])
    first = told(x.grad)
    with mx.autograd.record():
        a, b = x * x, x * 3
    mx.autograd.backward([a, b], [mx.nd.array([10, 100]), None])
    return [first, told(x.grad)]


def case_the_same_head_twice(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        a = x * x
    mx.autograd.backward([a, a])
    return told(x.grad)


def case_head_of_another_shape(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
    return attempt(lambda: y.backward(mx.nd.ones(3)))


def case_head_of_another_type(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
    return attempt(lambda: (y.backward(mx.nd.ones(2, dtype="float64")), x.grad)[1])


def case_number_of_heads(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
    return attempt(lambda: mx.autograd.backward([y], [mx.nd.ones(2), mx.nd.ones(2)]))


def case_not_recorded(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    y = x * x
    return [attempt(y.backward), attempt(lambda: mx.autograd.grad(y, [x]))]


def case_no_variable(mx: Any) -> Any:
    with mx.autograd.record():
        y = mx.nd.ones(2) * 2
    return attempt(y.backward)


def case_grad(mx: Any) -> Any:
    x, w = variable(mx, 1, 2), variable(mx, 3, 4)
    with mx.autograd.record():
        y = x * x * w
    got = mx.autograd.grad(y, [x, w], head_grads=mx.nd.array([1, 10]))
    return [told(got), told(x.grad), type(got).__name__]


def case_grad_of_one(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
    got = mx.autograd.grad(y, x, retain_graph=True)
    again = mx.autograd.grad(y, [x])
    return [type(got).__name__, told(got), told(again)]


def case_grad_of_an_intermediate(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
        z = y * 3
    return attempt(lambda: mx.autograd.grad(z, [y]))


def case_grad_of_what_is_not_used(mx: Any) -> Any:
    x, w = variable(mx, 1, 2), variable(mx, 3, 4)
    with mx.autograd.record():
        y = x * x
    return attempt(lambda: mx.autograd.grad(y, [x, w]))


def case_grad_of_nothing(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
    return attempt(lambda: mx.autograd.grad(y, []))


def second(mx: Any, f: Callable[[Any], Any]) -> Any:
    x = variable(mx, 0.5, -1.25)
    with mx.autograd.record():
        (g,) = mx.autograd.grad(f(x), [x], create_graph=True, retain_graph=True)
        z = mx.nd.sum(g * g)
    z.backward()
    return [told(g), told(x.grad)]


SECOND = {"sin": lambda mx, x: mx.nd.sin(x), "cube": lambda mx, x: x * x * x, "exp": lambda mx, x: mx.nd.exp(x),
          "sigmoid": lambda mx, x: mx.nd.sigmoid(x), "log": lambda mx, x: mx.nd.log(x * x + 1),
          "reciprocal": lambda mx, x: mx.nd.reciprocal(x), "relu": lambda mx, x: mx.nd.relu(x) * x,
          "sum": lambda mx, x: mx.nd.sum(x * x * x),
          "square": lambda mx, x: mx.nd.square(x) * x}
for _name, _f in SECOND.items():
    globals()["case_second_order_" + _name] = lambda mx, f=_f: second(mx, lambda x: f(mx, x))


def case_in_place(mx: Any) -> Any:
    x, found = variable(mx, 1, 2), []

    def inside(change: Callable[[Any], Any]) -> Any:
        def run() -> Any:
            with mx.autograd.record():
                y = x * 2
                change(y)
                z = y * y
            z.backward()
            return x.grad
        return attempt(run)

    def iadd(y: Any) -> None:
        y += 1

    def imul(y: Any) -> None:
        y *= x

    found += [inside(iadd), inside(imul), inside(lambda y: y.__setitem__(0, 5.0)),
              inside(lambda y: y.__setitem__(slice(None), x)), inside(lambda y: mx.nd.exp(x, out=y))]
    return found


def case_writing_a_variable_in_record(mx: Any) -> Any:
    x = variable(mx, 1, 2)

    def run() -> Any:
        with mx.autograd.record():
            x[:] = 3
            y = x * x
        y.backward()
        return x.grad
    return attempt(run)


def case_writing_a_variable_outside(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
    y.backward()
    x -= 0.5 * x.grad
    x[0] = 7
    with mx.autograd.record():
        y = x * x
    y.backward()
    return [told(x), told(x.grad)]


def case_setitem_into_zeros(mx: Any) -> Any:
    x = variable(mx, 1, 2)

    def run() -> Any:
        with mx.autograd.record():
            y = mx.nd.zeros((2, 2))
            y[0] = x * 3
            z = y * 2
        z.backward()
        return x.grad
    return attempt(run)


def case_a_slice_written_later(mx: Any) -> Any:
    x = variable(mx, 1, 2, 3)
    with mx.autograd.record():
        y = x[1:] * 2
    x[:] = 100
    y.backward()
    return told(x.grad)


def case_slice_outside_of_record(mx: Any) -> Any:
    x = variable(mx, 1, 2, 3)
    part = x[1:]

    def run() -> Any:
        with mx.autograd.record():
            y = part * 2
        y.backward()
        return x.grad
    return attempt(run)


def case_integers(mx: Any) -> Any:
    x = mx.nd.array([1, 2], dtype="int32")
    found = [attempt(x.attach_grad)]

    def run() -> Any:
        with mx.autograd.record():
            y = x * x
        y.backward()
        return x.grad
    return [*found, attempt(run)]


def _typed(mx: Any, dtype: str) -> Any:
    x = mx.nd.array([1, 2], dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.exp(x) * x
    y.backward()
    return told(x.grad)


def case_half(mx: Any) -> Any:
    return _typed(mx, "float16")


def case_double(mx: Any) -> Any:
    return _typed(mx, "float64")


def case_flags(mx: Any) -> Any:
    ag = mx.autograd

    def flags() -> list[bool]:
        return [ag.is_recording(), ag.is_training()]

    found = [flags(), ag.set_recording(True), ag.set_training(True), flags(), ag.set_recording(False),
             ag.set_training(False)]
    for scope in (ag.record(), ag.record(False), ag.pause(), ag.pause(True), ag.train_mode(), ag.predict_mode()):
        with scope as s:
            found += [flags(), s is None]
            with ag.predict_mode():
                found.append(flags())
            with ag.pause(train_mode=True):
                found.append(flags())
    return [*found, flags()]


def case_flags_after_an_error(mx: Any) -> Any:
    try:
        with mx.autograd.record():
            raise KeyError
    except KeyError:
        return [mx.autograd.is_recording(), mx.autograd.is_training()]


def case_modes_of_dropout(mx: Any) -> Any:
    x = variable(mx, *[1.0] * 8)
    with mx.autograd.record(train_mode=False):
        y = mx.nd.Dropout(x, p=0.5)
    y.backward(train_mode=False)
    return [told(y), told(x.grad), told(mx.nd.Dropout(x, p=0.5))]


def case_pause_inside(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * 2
        with mx.autograd.pause():
            z = y * 10
        w = y * z
    w.backward()
    return told(x.grad)


def case_mark_variables(mx: Any) -> Any:
    x, y = mx.nd.array([1, 2]), mx.nd.array([3, 4])
    gx, gy = mx.nd.zeros(2), mx.nd.ones(2)
    mx.autograd.mark_variables([x, y], [gx, gy], grad_reqs=["write", "add"])
    with mx.autograd.record():
        z = x * y
    z.backward()
    found = [told(gx), told(gy), told(x.grad)]
    mx.autograd.mark_variables(x, gx)
    return [*found, attempt(lambda: mx.autograd.mark_variables(x, [gx])),
            attempt(lambda: mx.autograd.mark_variables([x], [gx], "always")), attempt(lambda: x.attach_grad("always"))]


def case_detach(mx: Any) -> Any:
    x = variable(mx, 1, 2)
    with mx.autograd.record():
        y = x * x
        z = y.detach() * x
    z.backward()
    return [told(x.grad), attempt(y.detach().backward), y.detach().grad is None]


def case_embedding_of_rows(mx: Any) -> Any:
    w = mx.nd.array(np.arange(12.0).reshape(4, 3))
    w.attach_grad(stype="row_sparse")
    with mx.autograd.record():
        y = mx.nd.Embedding(mx.nd.array([3, 1, 3]), w, input_dim=4, output_dim=3, sparse_grad=True)
    y.backward()
    return told(w.grad)


def case_dot_of_csr(mx: Any) -> Any:
    w = mx.nd.array(np.arange(6.0).reshape(3, 2))
    w.attach_grad(stype="row_sparse")
    a = mx.nd.array([[0, 2, 0], [0, 0, 0], [1, 3, 0]]).tostype("csr")
    with mx.autograd.record():
        y = mx.nd.sparse.dot(a, w)
    y.backward()
    return told(w.grad)


def case_add_of_rows(mx: Any) -> Any:
    w = mx.nd.array(np.arange(12.0).reshape(4, 3)).tostype("row_sparse")
    w.attach_grad()
    with mx.autograd.record():
        y = mx.nd.sparse.square(w)
    y.backward()
    return told(w.grad)


class _Scaled:
    """A Function of either package."""

    def __new__(cls, mx: Any, outputs: int = 1, wrong: bool = False) -> Any:
        class Scaled(mx.autograd.Function):
            def forward(self, x: Any, y: Any) -> Any:
                self.save_for_backward(x, y)
                return x * y if outputs == 1 else (x * y, x + y)

            def backward(self, *grads: Any) -> Any:
                x, y = self.saved_tensors
                if wrong:
                    return grads[0] * y
                return grads[0] * y + (grads[1] if outputs == 2 else 0), grads[0] * x * 100

        return Scaled()


def case_function(mx: Any) -> Any:
    x, y = variable(mx, 1, 2), variable(mx, 3, 4)
    with mx.autograd.record():
        z = _Scaled(mx)(x * 1, y) * 2
    z.backward()
    return [told(z), told(x.grad), told(y.grad)]


def case_function_of_two_outputs(mx: Any) -> Any:
    x, y = variable(mx, 1, 2), variable(mx, 3, 4)
    with mx.autograd.record():
        a, b = _Scaled(mx, 2)(x, y)
        z = a * 2 + b * 3
    z.backward()
    first = [told(z), told(x.grad), told(y.grad)]
    with mx.autograd.record():
        a, b = _Scaled(mx, 2)(x, y)
    a.backward()
    return [first, told(x.grad), told(y.grad)]


def case_function_not_recorded(mx: Any) -> Any:
    x, y = mx.nd.array([1, 2]), mx.nd.array([3, 4])
    return told(_Scaled(mx)(x, y))


def case_control_flow(mx: Any) -> Any:
    x = variable(mx, 1.5)
    with mx.autograd.record():
        y = x
        while y.asscalar() < 20:
            y = y * 2 if y.asscalar() < 5 else y * y
    y.backward()
    return [told(y), told(x.grad)]


def case_foreach(mx: Any) -> Any:
    x, w = mx.nd.array([[1, 2], [3, 4], [5, 6]]), variable(mx, 2, 3)
    with mx.autograd.record():
        out, state = mx.nd.contrib.foreach(lambda d, s: (d * w + s, s + d), x, mx.nd.zeros(2))
        z = mx.nd.sum(out) + mx.nd.sum(state)
    z.backward()
    return [told(out), told(w.grad)]


def case_get_symbol(mx: Any) -> Any:
    x, w = variable(mx, 1, 2), variable(mx, 3, 4)
    with mx.autograd.record():
        y = mx.nd.exp(x * w) + x
    s = mx.autograd.get_symbol(y)
    return [len(s.list_arguments()), len(s.list_outputs())]


def case_get_symbol_of_something(mx: Any) -> Any:
    return attempt(lambda: mx.autograd.get_symbol(3))


CASES: dict[str, Callable[[Any], Any]] = {
    **{f"expression: {n}": lambda mx, n=n: expression(mx, n) for n in EXPRESSIONS},
    **{n.removeprefix("case_").replace("_", " "): f for n, f in list(globals().items()) if n.startswith("case_")},
}
