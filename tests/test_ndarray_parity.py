"""NDArray code gives what real MXNet 1.9.1 recorded: values, printing to the last character, kinds of errors."""

from __future__ import annotations

import json

import pytest

import symjax as mx
from tests.ndarray.record import GOLDEN, SECTIONS, run, snippets

RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))

# Where symjax does something else on purpose, and what.
ON_PURPOSE = {
    # MXNet reads masks as indices 0 and 1, without a word.
    "A[True]": "ValueError",
    "A[np.array([True,False])]": "ValueError",
    # Empty arrays exist.
    "mx.nd.zeros((2,0))": "\n[]\n<NDArray 2x0 @cpu(0)>",
    "bool(mx.nd.zeros((0,)))": "False",
    "mx.nd.arange(0)": "\n[]\n<NDArray 0 @cpu(0)>",
    # Arrays of one element convert to numbers.
    "int(mx.nd.array([3.7]))": "3",
    "float(mx.nd.array([3.5]))": "3.5",
    "float(A)": "ValueError",
    "mx.nd.array([[4]]).asscalar()": "4.0",
    # A list of arrays is as good as the arrays.
    "mx.nd.concat([A, A], dim=1)": "\n[[0. 1. 2. 3. 0. 1. 2. 3.]\n [4. 5. 6. 7. 4. 5. 6. 7.]]\n<NDArray 2x8 @cpu(0)>",
    "mx.nd.array([mx.nd.array([1]), mx.nd.array([2])])": "\n[[1.]\n [2.]]\n<NDArray 2x1 @cpu(0)>",
    "x=mx.nd.zeros((2,2)); x[0]=None; x": "TypeError",
    # Clearer kinds of errors.
    "mx.Context('foo')": "DeviceError",
    "mx.nd.load('/nonexistent/file')": "FileNotFoundError",
    "mx.nd.Cast(A, dtype='foo')": "ParamError",
    # Every gradient can be differentiated.
    "x=mx.nd.array([1.,2.]); x.attach_grad(); mx.autograd.set_recording(True); y=x*x*x; "
    "g=mx.autograd.grad(y,[x],create_graph=True)[0]; z=mx.autograd.set_recording(False); g.backward(); x.grad":
        "\n[ 6. 12.]\n<NDArray 2 @cpu(0)>",
    # MXNet takes float indices where the shape is given, and fails to infer the shape of them.
    "S.csr_matrix((mx.nd.array([1,2,3]),mx.nd.array([1,0,2]),mx.nd.array([0,1,2,2,3])))":
        "\n<CSRNDArray 4x3 @cpu(0)>\n[[0. 1. 0.]\n [2. 0. 0.]\n [0. 0. 0.]\n [0. 0. 3.]]\nfloat32, stored: [1 0 2]",
    "S.row_sparse_array((mx.nd.array([[1,2],[3,4]]),mx.nd.array([1,4])))":
        "\n<RowSparseNDArray 5x2 @cpu(0)>\n[[0. 0.]\n [1. 2.]\n [0. 0.]\n [0. 0.]\n [3. 4.]]\nfloat32, stored: [1 4]",
    # A dense array takes the numbers of a sparse one.
    "x=mx.nd.ones((4,3)); x[:]=C; x":
        "\n[[0. 1. 0.]\n [2. 0. 0.]\n [0. 0. 0.]\n [0. 0. 3.]]\n<NDArray 4x3 @cpu(0)>",
    "S.zeros('row_sparse',2)": "\n<RowSparseNDArray 2 @cpu(0)>\n[0. 0.]\nfloat32, stored: []",
    # MXNet reads row_sparse inputs while it writes to them.
    "mx.nd.elemwise_add(R,R,out=R); R": "\n<RowSparseNDArray 4x2 @cpu(0)>\n[[0. 0.]\n [2. 4.]\n [0. 0.]\n [6. 8.]]"
                                        "\nfloat32, stored: [1 3]",
    # MXNet takes a number on the left for one on the right.
    "S.subtract(2,C)": "\n[[ 2.  1.  2.]\n [ 0.  2.  2.]\n [ 2.  2.  2.]\n [ 2.  2. -1.]]\n<NDArray 4x3 @cpu(0)>",
    "S.subtract(2,R)": "\n[[ 2.  2.]\n [ 1.  0.]\n [ 2.  2.]\n [-1. -2.]]\n<NDArray 4x2 @cpu(0)>",
    "S.divide(2,C)": "\n[[  inf 2.      inf]\n [1.      inf   inf]\n [  inf   inf   inf]\n [  inf   inf 0.667]]"
                     "\n<NDArray 4x3 @cpu(0)>",
    "S.divide(2,R)": "\n[[  inf   inf]\n [2.    1.   ]\n [  inf   inf]\n [0.667 0.5  ]]\n<NDArray 4x2 @cpu(0)>",
    # MXNet has no kernel for a divisor of equal shape.
    "D=mx.nd.ones((4,3))*2; C/D": "\n<CSRNDArray 4x3 @cpu(0)>\n[[0.  0.5 0. ]\n [1.  0.  0. ]\n [0.  0.  0. ]\n "
                                  "[0.  0.  1.5]]\nfloat32, stored: [1 0 2]",
    "D=mx.nd.ones((4,3))*2; C/=D; C": "\n<CSRNDArray 4x3 @cpu(0)>\n[[0.  0.5 0. ]\n [1.  0.  0. ]\n [0.  0.  0. ]"
                                      "\n [0.  0.  1.5]]\nfloat32, stored: [1 0 2]",
    # What is stored can be told while compiling: places that become zero stay stored.
    **dict.fromkeys(("C-C", "C-=C; C", "S.subtract(C,C)"), "\n<CSRNDArray 4x3 @cpu(0)>\n[[0. 0. 0.]\n [0. 0. 0.]\n "
                    "[0. 0. 0.]\n [0. 0. 0.]]\nfloat32, stored: [1 0 2]"),
    "Q=S.csr_matrix((np.array([1,5,7],'f'),[0,0,2],[0,1,2,2,3]),shape=(4,3)); C*Q":
        "\n<CSRNDArray 4x3 @cpu(0)>\n[[ 0.  0.  0.]\n [10.  0.  0.]\n [ 0.  0.  0.]\n [ 0.  0. 21.]]\nfloat32, stored: "
        "[0 1 0 2]",
    # Samples fill every row.
    "mx.nd.random.uniform_like(R).stype": "'default'",
}
_ASSERTS = {"ValueError", "TypeError", "MXNetError"}


def problem(code: str, got: object, want: object) -> str | None:
    if code in ON_PURPOSE:
        expected = ON_PURPOSE[code]
        fine = got == expected or (isinstance(got, dict) and expected in got["raises"])
        return None if fine else f"{code}\n  on purpose {expected!r}, got {got!r}"
    if isinstance(want, dict):
        # An `except` clause for MXNet's error must catch ours; where MXNet asserts, any of our errors will do.
        names = set(got["raises"]) if isinstance(got, dict) else set()
        fine = want["raises"][0] in names or (want["raises"][0] == "AssertionError" and bool(names & _ASSERTS))
        return None if fine else f"{code}\n  MXNet raises {want['raises'][0]}, got {got!r}"
    return None if got == want else f"{code}\n  MXNet {want!r}\n  got   {got!r}"


_SWEEPS = ("sparse_methods", "sparse_operators")  # every method and operator, mostly compiling


@pytest.mark.parametrize("section", [pytest.param(s, marks=pytest.mark.slow) if s in _SWEEPS else s for s in SECTIONS])
def test_same_as_mxnet(section: str) -> None:
    recorded = RECORDED[section]
    assert sorted(recorded) == sorted(set(snippets(section))), "the golden file is older than the snippets"
    problems = [p for code in snippets(section) if (p := problem(code, run(mx, code, section), recorded[code]))]
    assert not problems, f"{len(problems)} of {len(recorded)}:\n" + "\n".join(problems)
