"""Products, decompositions and eigenvalues under numpy semantics."""

from typing import Any

import numpy as np

from tests.parity.arrays import Array, fill, randint, spd, uniform, values
from tests.parity.case import Case, graph_case, graph_json, op_case

NP: dict[str, Any] = {"np_shape": True}
LOOSE: dict[str, Any] = {"rtol": 1e-3, "atol": 1e-4, "np_shape": True}
ALMOST: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-7, "np_shape": True}
PAIR = ("a", "b")
INTS = ("int8", "uint8", "int32", "int64")


def label(*shapes: Any, **params: Any) -> str:
    """A short id."""
    text = "".join(str(s) for s in shapes) + ",".join(f"{k}={v}" for k, v in params.items())
    return text.replace(" ", "")


def head(case_id: str, shape: tuple[int, ...], dtype: str = "float32", i: int = 0) -> np.ndarray:
    """The cotangent of a case's output i."""
    return fill(case_id, f"head{i}", uniform(shape, -1.5, 1.5), dtype)


def start(case_id: str, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """What a gradient holds before two passes are added to it."""
    return fill(case_id, f"grad0:{name}", uniform(shape), "float32")


def pair(op: str, a: tuple[int, ...], b: tuple[int, ...], params: dict | None = None, **options: Any) -> Case:
    """A case of an op of two arrays."""
    return op_case(op, {"a": a, "b": b}, params, id=label(a, b, **(params or {})), infer_from=PAIR, **{**NP, **options})


def whole(op: str, params: dict | None, dtype: str, product: Any) -> Case:
    """A product of whole numbers, for which MXNet has no kernel."""
    return op_case(op, {"a": randint((2, 3), 0, 4), "b": randint((3, 2), 0, 4)}, params, dtype=dtype, grads=False, **NP,
                   better=True, expected=lambda x: {"out0": product(x["a"], x["b"])})


DOTS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((3,), (3,)), ((), (3,)), ((2, 3), ()), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)),
    ((2, 2, 3), (3,)), ((2, 2, 3), (2, 3, 2)), ((3,), (2, 3, 2)), ((0,), (0,)), ((2, 0), (0, 3)), ((2, 3), (2, 3)),
    ((1, 2, 3), (3, 2)), ((2, 3), (0, 3, 2)),
]  # fmt: skip
MATMULS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3,)), ((2, 2, 3), (2, 3, 2)),
    ((3,), (2, 3, 2)), ((2, 2, 3), (3, 2)), ((0,), (0,)), ((2, 0), (0, 3)), ((), ()), ((2, 3), (2, 3)), ((2, 2, 3), (3,
        3, 2)), ((), (3,)),
]  # fmt: skip
TENSORDOTS: list[tuple[tuple[int, ...], tuple[int, ...], Any, Any]] = [
    ((2, 3), (3, 2), (1,), (0,)), ((2, 3), (3, 2), (0, 1), (1, 0)), ((2, 3), (3, 2), (-1,), (0,)), ((2,), (2,), (), ()),
    ((2, 3, 2), (2, 2), (0, 2), (1, 0)), ((2, 3), (3, 2), (0,), (0,)), ((2, 3), (2, 2), (0,), (0, 1)),
]  # fmt: skip

products = [
    *(pair("_np_dot", a, b) for a, b in DOTS),
    *(pair("_npi_matmul", a, b) for a, b in MATMULS),
    pair("_npi_matmul", (2, 1, 2, 3), (4, 3, 2),
        differs="MXNet reads the gradient of a broadcast batch axis in false order",
         expected=lambda x: {"grad:a": (head("_npi_matmul-(2,1,2,3)(4,3,2)", (2, 4, 2, 2)) @ x["b"].swapaxes(1, 2)).sum(
             1, keepdims=True)}),
    op_case("_npi_tensordot", {"a": (2, 3), "b": (3, 2)}, {"a_axes_summed": (1,), "b_axes_summed": (0,)}, id="x",
            grad_req="add", **NP, differs="MXNet overwrites the gradient", expected=lambda x: {
                "grad:a": start("_npi_tensordot-x-add", "a", (2, 3)) + 2 * head("_npi_tensordot-x-add", (2,
                    2)) @ x["b"].T,
                "grad:b": start("_npi_tensordot-x-add", "b", (3, 2)) + 2 * x["a"].T @ head("_npi_tensordot-x-add", (2,
                    2)),
            }),
    *(pair("_npi_tensordot", a, b, {"a_axes_summed": x, "b_axes_summed": y}) for a, b, x, y in TENSORDOTS),
    *(pair("_npi_tensordot_int_axes", a, b, {"axes": n}) for a, b, n in [
        ((2, 3), (3, 2), 0), ((2, 3), (3, 2), 1), ((2, 3), (2, 3), 2), ((2, 0), (0, 2), 1), ((2, 2, 3), (2, 3, 2), 2)]),
    *(pair(op, (2, 3), (3, 2), p, dtype="float64", grad_req=r) for r in ("write", "add") for op, p in [
        ("_np_dot", None), ("_npi_matmul", None), ("_npi_tensordot_int_axes", {"axes": 1})]),
    *(whole(op, p, t, f) for t in ("int32", "int64") for op, p, f in [
        ("_np_dot", None, np.dot), ("_npi_matmul", None, np.matmul),
        ("_npi_tensordot", {"a_axes_summed": (1,), "b_axes_summed": (0,)}, np.dot),
        ("_npi_tensordot_int_axes", {"axes": 1}, np.dot)]),
    *(op_case(op, {"a": (2, 3), "b": (3, 2)}, p, dtype="float16", better=True, **NP) for op, p in [
        ("_np_dot", None), ("_npi_matmul", None), ("_npi_tensordot_int_axes", {"axes": 1})]),
]  # fmt: skip


def sums(subscripts: str, *shapes: tuple[int, ...], **options: Any) -> Case:
    """An einsum case."""
    ints = "int" in options.get("dtype", "")
    inputs = {f"arg{i}": randint(s, 0, 4) if ints else s for i, s in enumerate(shapes)}
    params = {"num_args": len(shapes), "subscripts": subscripts, **options.pop("params", {})}
    return op_case("_npi_einsum", inputs, params, id=label(subscripts, *shapes), infer_from=tuple(inputs),
                   **{**NP, **options})  # fmt: skip


STRETCHED = "MXNet does not sum the gradient over the places of a stretched axis"
einsums = [
    sums("ij,jk", (2, 3), (3, 2)), sums("ij,jk->ki", (2, 3), (3, 2)),
    sums("ii", (2, 2), differs="MXNet leaves the gradient off the diagonal unwritten", expected=lambda x: {
        "grad:arg0": np.eye(2) * head("_npi_einsum-ii(2,2)", ())}),
    sums("ii->i", (2, 2), differs="as above", expected=lambda x: {"grad:arg0": np.diag(head("_npi_einsum-ii->i(2,2)",
        (2,)))}),
    sums("...ij->...ji", (2, 2, 3)), sums("i,i", (2,), (2,)), sums("ij->", (2, 2)), sums("i,j", (2,), (3,)),
    sums(",i", (), (2,)), sums("ij,ij->i", (2, 3), (1, 3), differs=STRETCHED, expected=lambda x: {
        "grad:arg1": head("_npi_einsum-ij,ij->i(2,3)(1,3)", (2,))[None] @ x["arg0"]}),
    sums("ij , jk", (2, 3), (3, 2)), sums("ba", (2, 3)),
    sums("...,...", (2, 1), (3,), differs=STRETCHED, expected=lambda x: {
        "grad:arg0": head("_npi_einsum-...,...(2,1)(3,)", (2, 3)) @ x["arg1"][:, None]}),
    sums("ij,jk,kl", (2, 2), (2, 2), (2, 2)), sums("i", (0,)), sums("i->", (0,)),
    sums("ij,jk,kl", (2, 2), (2, 2), (2, 1), params={"optimize": 1}), sums("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    sums("ij,jk", (2, 3), (2, 3)), sums("ij->ik", (2, 3)), sums("i,j", (2,)),
    sums("ij,jk", (2, 3), (3, 2), dtype="float64", grad_req="add"), sums("ij,jk", (2, 3), (3, 2), dtype="float16"),
    *(sums("ij,jk", (2, 3), (3, 2), dtype=t) for t in INTS),
    op_case("_npi_einsum", {"arg0": values([1, 0, 1]), "arg1": values([0, 1, 1])}, {"num_args": 2, "subscripts": "i,i"},
            dtype="bool", id="bool", **NP),
]  # fmt: skip


def one(op: str, a: Array | tuple[int, ...], params: dict | None = None, **options: Any) -> Case:
    """A case of an op of the matrix A."""
    return op_case(op, {"A": a}, params, **{**LOOSE, **options})


S2, S3 = spd((2, 2)), spd((2, 3, 3))
GENERAL = values([[2.0, 1.0], [0.5, 1.0]])
ROWS = values([[1.0, 2.0, 3.0], [0.0, 2.0, 1.0], [0.0, 0.0, 5.0]])
TURN = values([[0.0, 1.0], [-1.0, 0.0]])


def squared(op: str, a: Array | tuple[int, ...], outputs: int, **options: Any) -> Case:
    """An op whose outputs are known but for their signs: squared."""
    nodes = [("A",), ("op", op, {}, ["A"]), *((f"s{i}", "square", {}, [f"op:{i}"]) for i in range(outputs))]
    return graph_case(f"{op}-squared-{options.pop('id')}", graph_json(nodes, [f"s{i}" for i in range(outputs)]),
        {"A": a},
                      **{**LOOSE, **options})  # fmt: skip


decompositions = [
    *(squared("_npi_svd", a, 3, id=label(a), dtype=t) for a in ((2, 3), (3, 3), (2, 2, 3), (1, 4))
      for t in ("float32", "float64")),
    one("_npi_svd", (3, 2), outputs=3, id="tall"),
    one("_npi_svd", (2,), outputs=3, id="vector"), one("_npi_svd", (0, 2), outputs=3, id="empty", grads=False),
    one("_npi_svd", (2, 0, 2), outputs=3, id="empty_batch", grads=False),
    *(one("_npi_cholesky", a, id=i, dtype=t) for a, i in [(S2, "one"), (S3, "batch")] for t in ("float32", "float64")),
    one("_npi_cholesky", GENERAL, id="lower"), one("_npi_cholesky", S2, id="x", grad_req="add"),
    one("_npi_cholesky", (2, 3), id="not_square"), one("_npi_cholesky", (0, 0), id="empty", grads=False),
    one("_npi_cholesky", randint((2, 2)), id="x", dtype="int32"),
]  # fmt: skip


def eigen_gradient(a: np.ndarray, w_head: np.ndarray) -> np.ndarray:
    """The gradient of a weighted sum of the eigenvalues: Σ h_i u_i v_iᵀ with left and right vectors."""
    _, v = np.linalg.eig(a)
    left = np.linalg.inv(v)
    return left.T @ np.diag(w_head) @ v.T


def symmetric_gradient(a: np.ndarray, w_head: np.ndarray, upper: bool = False) -> np.ndarray:
    """The gradient of a weighted sum of the rising eigenvalues of a symmetric matrix."""
    _, v = np.linalg.eigh(a, "U" if upper else "L")
    return (v * w_head) @ v.T


ZERO = "MXNet's gradient is zero"
eigen = [
    *(one("_npi_eig", a, outputs=2, id=i, dtype=t, grads=False) for i, a in [("general", GENERAL), ("rows", ROWS)]
      for t in ("float32", "float64")),
    *(one("_npi_eigvals", a, id=i, dtype=t, differs=ZERO, expected=lambda x, i=i, t=t, n=n: {"grad:A": eigen_gradient(
        x["A"].astype("float64"), head(f"_npi_eigvals-{i}" + ("" if t == "float32" else f"-{t}"), (n,), t))})
      for i, a, n in [("general", GENERAL, 2), ("rows", ROWS, 3)] for t in ("float32", "float64")),
    *(one(op, S3, outputs=n, id="batch", grads=False) for op, n in [
        ("_npi_eigvals", 1), ("_npi_eigh", 2), ("_npi_eigvalsh", 1)]),
    *(one("_npi_eigvalsh", a, {"UPLO": u}, dtype=t, id=f"{i}{u}", differs=ZERO,
          expected=lambda x, i=i, u=u, t=t: {"grad:A": symmetric_gradient(x["A"].astype("float64"), head(
              f"_npi_eigvalsh-{i}{u}" + ("" if t == "float32" else f"-{t}"), (2,), t), u == "U")})
      for i, a in [("spd", S2), ("general", GENERAL)] for u in "LU" for t in ("float32", "float64")),
    *(one("_npi_eigh", a, {"UPLO": u}, outputs=2, dtype=t, grads=False, id=f"{i}{u}")
      for i, a in [("spd", S2), ("general", GENERAL)] for u in "LU" for t in ("float32", "float64")),
    *(one(op, (0, 0), outputs=n, id="empty", grads=False) for op, n in [
        ("_npi_eig", 2), ("_npi_eigh", 2), ("_npi_eigvals", 1), ("_npi_eigvalsh", 1)]),
    *(one(op, (2, 3), outputs=n, id="not_square") for op, n in [
        ("_npi_eig", 2), ("_npi_eigh", 2), ("_npi_eigvals", 1), ("_npi_eigvalsh", 1)]),
    *(one(op, values([[2, 1], [0, 1]]), outputs=n, id="whole", dtype=t, grads=False) for op, n in [
        ("_npi_eig", 2), ("_npi_eigh", 2), ("_npi_eigvals", 1), ("_npi_eigvalsh", 1)] for t in ("int32", "uint8")),
    *(one(op, TURN, outputs=n, id="complex", grads=False, better=True) for op, n in [
        ("_npi_eig", 2), ("_npi_eigvals", 1)]),  # NaN here: a compiled function cannot raise
]  # fmt: skip


def system(a: Any, b: Any, **options: Any) -> Case:
    """A case of solve."""
    return op_case("_npi_solve", {"A": a, "B": b}, infer_from=("A", "B"), **{**LOOSE, **options})


def vector_gradients(a: np.ndarray, b: np.ndarray, h: np.ndarray) -> dict[str, np.ndarray]:
    """The gradients of solve for a vector."""
    x = np.linalg.solve(a, b)
    db = np.linalg.solve(a.T, h)
    return {"out0": x, "train0": x, "grad:A": -np.outer(db, x), "grad:B": db}


solving = [
    system(GENERAL, (2, 3), id="columns"), system(S3, (2, 3, 2), id="batch"), system(S2, (2, 1), id="column"),
    system(S2, (2, 2), id="x", dtype="float64", **{k: v for k, v in ALMOST.items() if k != "np_shape"}),
    # MXNet: the gradient of a vector fails.
    system(GENERAL, (2,), id="vector", better=True, expected=lambda x: vector_gradients(
        x["A"], x["B"], head("_npi_solve-vector", (2,)))),
    system(S2, (2,), id="forward", grads=False), system(S3, (2, 3), id="vectors", grads=False),
    system(S2, (3,), id="bad"), system(S2, (2, 2, 1), id="ranks"), system((2, 3), (2,), id="not_square"),
    system((0, 0), (0,), id="empty", grads=False), system((0, 0), (0, 3), id="empty_columns", grads=False),
    system(values([[2, 1], [1, 1]]), values([1, 2]), id="whole", dtype="int32"),
    system(GENERAL, values([1, 2], dtype="int32"), id="mixed", grads=False),
    system(GENERAL, uniform((2,), dtype="float64"), id="wider", grads=False),
    *(op_case("_npi_tensorinv", {"a": s}, {"ind": n}, dtype=t, **LOOSE) for t in ("float32", "float64") for s, n in [
        ((2, 3, 3, 2), 2), ((6, 2, 3), 1), ((2, 1, 3, 6), 3)]),
    op_case("_npi_tensorinv", {"a": (2, 2, 4)}, {}, id="default", **LOOSE),
    op_case("_npi_tensorinv", {"a": (2, 2)}, {"ind": 0}, **NP), op_case("_npi_tensorinv", {"a": (5, 2, 3)}, {"ind": 1},
        **NP),
    *(op_case("_npi_tensorsolve", {"a": a, "b": b}, p, id=label(a, b, **p), infer_from=PAIR, **LOOSE) for a, b, p in [
        ((2, 3, 6), (2, 3), {}), ((2, 2), (2,), {}), ((2, 6, 3), (6,), {"a_axes": (0, 2)}), ((2, 2), (3,), {}),
        ((3, 2, 6), (2, 6), {"a_axes": (0,)}), ((2, 2), (2,), {"a_axes": None}), ((2, 2), (2,), {"a_axes": ()})]),
    op_case("_npi_tensorsolve", {"a": values([[2, 1], [1, 1]]), "b": values([1, 2])}, dtype="int32", id="whole",
        **LOOSE),
]  # fmt: skip


def pinv_gradient(a: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The gradient of the pseudo-inverse of a matrix of full rank."""
    p = np.linalg.pinv(a)
    g = h.T
    return (-p.T @ g.T @ p.T + (np.eye(len(a)) - a @ p) @ g @ p @ p.T + p.T @ p @ g @ (np.eye(a.shape[1]) - p @ a))


SMALL = values(1e-6)
pseudo = [
    *(op_case("_npi_pinv_scalar_rcond", {"A": s}, {"rcond": 1e-6}, id=label(s), dtype=t, **LOOSE, differs=ZERO,
              expected=lambda x, s=s, t=t: {"grad:A": pinv_gradient(x["A"].astype("float64"), head(
                  f"_npi_pinv_scalar_rcond-{label(s)}" + ("" if t == "float32" else f"-{t}"), s[::-1], t))})
      for s in ((2, 3), (3, 2), (2, 2)) for t in ("float32", "float64")),
    *(op_case("_npi_pinv_scalar_rcond", {"A": a}, p, id=i, grads=False, **LOOSE) for a, p, i in [
        (GENERAL, {"rcond": 0.9}, "cut"), (S2, {"hermitian": True}, "hermitian"), ((2, 2, 3), {}, "batch"),
        ((0, 2), {}, "empty"), ((2,), {}, "vector")]),
    op_case("_npi_pinv_scalar_rcond", {"A": randint((2, 2))}, {}, id="x", dtype="int32", better=True, **LOOSE),
    *(op_case("_npi_pinv", {"A": a, "rcond": r}, p, id=i, grads=False, infer_from=("A", "rcond"), dtype=t, **LOOSE)
      for t in ("float32", "float64") for a, r, p, i in [
        ((2, 3), SMALL, {}, "wide"), ((3, 2), SMALL, {}, "tall"), ((2, 2, 3), values([1e-6, 1e-6]), {}, "batch"),
        ((2, 2, 3), SMALL, {}, "one_rcond"), ((2, 2, 3), values([0.9]), {}, "broadcast"), (GENERAL, values(0.9), {},
            "cut"),
        (S2, SMALL, {"hermitian": True}, "hermitian"), ((0, 2), SMALL, {}, "empty"),
        ((2, 2, 3), values([[1e-6], [1e-6]]), {}, "bad")]),
    op_case("_npi_pinv", {"A": (2, 3), "rcond": SMALL}, id="gradient", grads=["A"], infer_from=("A", "rcond"), **LOOSE,
            differs=ZERO, expected=lambda x: {"grad:A": pinv_gradient(x["A"], head("_npi_pinv-gradient", (3, 2)))}),
]  # fmt: skip

CASES: list[Case] = [*products, *einsums, *decompositions, *eigen, *solving, *pseudo]
