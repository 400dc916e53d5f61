"""Expressions of `mx.np`, `mx.npx` and `mx.sym.np` that MXNet's results are recorded for.

Those in the `.txt` files stand one a line. At hand: `mx`, `np` (mx.np), `npx`, `onp` (numpy), `S` (mx.sym.np), and
  A (2, 3), B (2, 3, 4) float32; H float16; D float64; I, J int32; L int64; U uint8; T bool (3,); K bool (2, 3);
  Z a scalar; E (0, 3); V, W vectors with ties and halves; Q positive; N with nan and inf; P symmetric positive definite
  (3, 3); X, Y symbols.
Statements before the last expression are separated by "; ".
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent


def words(text: str) -> list[str]:
    return text.split()


UNARY = words("sin cos tan sinh cosh tanh arcsinh exp expm1 square abs absolute fabs sign negative rint fix trunc ceil "
              "floor degrees radians logical_not cbrt isnan isinf isposinf isneginf isfinite")
POSITIVE = words("log log2 log10 log1p sqrt reciprocal")
BOUNDED = words("arcsin arccos arctan arctanh")
BINARY = words("add subtract multiply divide true_divide mod remainder power maximum minimum copysign arctan2 hypot "
               "equal not_equal greater less greater_equal less_equal")
INTEGER = words("lcm bitwise_and bitwise_or bitwise_xor")
REDUCTIONS = words("sum prod max min amax amin mean std var argmax argmin")
PAIRS = ("V, W", "A, A[0]", "A, 2", "2.5, A", "I, J", "I, 2.5", "2, I", "T, T", "I, V[:3]", "Z, A", "2, 3")
TYPES = ("A, 2.5", "I, 2", "D, D", "H, H", "H, 2", "L, L", "T, 2", "A, D[:3]", "U, I", "U, U", "Z, Z", "I, L")


def _elementwise() -> list[str]:
    out = [f"np.{f}({x})" for f in UNARY for x in ("V", "Z", "1.5")]
    out += [f"np.{f}({x})" for f in ("sin", "exp", "sign", "rint", "isnan") for x in ("A", "D", "E", "H")]
    out += [f"np.{f}({x})" for f in ("abs", "sign", "square", "negative", "sin", "ceil", "logical_not", "isnan")
            for x in ("I", "U", "T", "L")]
    out += [f"np.{f}({x})" for f in POSITIVE for x in ("Q", "D * D + 1", "2.0", "I * I")]
    out += [f"np.{f}({x})" for f in BOUNDED for x in ("Q / 10", "0.5")]
    out += ["np.arccosh(Q + 1)", "np.bitwise_not(I)", "np.invert(I)", "np.bitwise_not(T)", "~I", "~T", "np.ldexp(V, W)"]
    out += [f"np.{f}({p})" for f in BINARY for p in PAIRS]
    out += [f"np.{f}({p})" for f in ("add", "subtract", "divide", "mod", "power", "maximum", "equal", "less")
            for p in TYPES]
    out += [f"np.{f}({p})" for f in INTEGER for p in ("I, J", "U, U", "I, 6", "6, I", "L, L", "12, 18")]
    out += ["np.sin(V, where=True)", "np.sin(V, where=False)", "np.sin(V, spam=1)", "np.sin(V, order='F')",
            "np.sin(V, casting='wrong')", "np.add(V, W, dtype='float16')", "np.sin([1.0])", "np.add(V, [1, 2, 3, 4])",
            "np.sin(onp.ones(2))", "np.sin(mx.nd.ones((2,)))", "mx.nd.sin(V)", "np.add(V, None)", "V + None",
            "O = np.zeros((4,)); R = np.sin(V, out=O); (O, R is O)", "O = np.zeros((4,)); np.add(V, W, out=O); O",
            "O = np.zeros((4,)); np.add(V, 2, out=O); O", "np.sin(V, O)"]
    out += [f"np.{f}(V, {d})" for f in ("around", "round", "round_") for d in (0, 1, -1)]
    out += ["np.round(1.257, 2)", "np.clip(V, -1, 1)", "np.clip(V, None, 1)", "np.clip(V, 0, None)", "np.clip(I, 0, 3)",
            "np.clip(V, None, None)", "np.clip(5, 0, 3)", "V.clip(0, 1)", "V.round(0)", "np.nan_to_num(N)",
            "np.nan_to_num(N, nan=7, posinf=8, neginf=9)", "np.nan_to_num(I)", "np.where(V > 0, V, W)",
            "np.where(V > 0, V, 1.5)", "np.where(V > 0, 2, W)", "np.where(V > 0, 2, 3)", "np.where(1, V, W)",
            "np.where(0, V, W)", "np.where(I > 0)", "np.where(A, A, A[0])", "np.where(T, V[:3], I)", "np.where(V)"]
    return out


def _operators() -> list[str]:
    out = [f"{a} {op} {b}" for op in ("+", "-", "*", "/", "%", "**", "==", "!=", "<", "<=", ">", ">=")
           for a, b in (("V", "W"), ("A", "2"), ("2", "A"), ("I", "3"), ("I", "J"), ("Z", "A"), ("E", "2"), ("T", "T"))]
    out += [f"{a} {op} {b}" for op in ("&", "|", "^") for a, b in (("I", "J"), ("T", "T"), ("I", "6"))]
    out += [f"O = {a}.copy(); O {op} {b}; O" for op in ("+=", "-=", "*=", "/=", "%=")
            for a, b in (("V", "W"), ("V", "2"), ("A", "A[0]"), ("Z", "3"))]
    out += ["O = I.copy(); O &= J; O", "O = I.copy(); O |= 1; O", "O = I.copy(); O ^= J; O", "-V", "-I", "abs(V)",
            "abs(I)", "A @ A.T", "P @ P", "V @ W", "A @ V[:3]", "round(V, 1)", "V // 2", "divmod(V, 2)",
            "import math; math.ceil(Z)", "import math; math.floor(Z)", "bool(Z)", "bool(V)", "float(Z)", "int(Z)",
            "float(V)", "len(V)", "len(Z)", "[float(v) for v in V]", "list(A)", "hash(V)", "V == None", "Z.item()",
            "V.item(2)", "A.item((1, 2))", "V.item()", "A.tolist()", "Z.tolist()", "str(A)", "repr(A)", "repr(I)",
            "repr(D)", "repr(T)", "repr(E)", "repr(Z)", "repr(L)", "repr(H)", "repr(B)", "f'{Z:.2f}'", "f'{A}'",
            "f'{A:.2f}'", "complex(Z)", "A.dtype", "A.shape", "A.ndim", "A.size", "Z.shape", "E.size", "A.T", "A.ctx",
            "V.context", "iter(Z)", "onp.array(A)", "onp.asarray(I)", "list(range(10))[np.array(3, dtype='int32')]"]
    return out


def sections() -> dict[str, list[str]]:
    """All expressions by section."""
    lines = {p.stem: p.read_text(encoding="utf-8").splitlines() for p in sorted(HERE.glob("*.txt"))}
    lines["arrays"] += [f"np.{f}({x})" for f in REDUCTIONS for x in ("A", "V", "I", "D", "Z", "A, axis=1",
    "B, axis=-1")]
    lines["autograd"] = [f"V.attach_grad(); mx.autograd.set_recording(True); R = {body}; R.backward(); (R, V.grad)"
                         for body in lines["autograd"]]
    return {"elementwise": _elementwise(), "operators": _operators(), **lines}


def chunks(*names: str, size: int = 25) -> dict[str, tuple[str, list[str]]]:
    """The expressions of some sections in parts of a size: id -> (section, expressions)."""
    found = sections()
    return {f"{name}-{i // size}": (name, found[name][i:i + size])
            for name in names for i in range(0, len(found[name]), size)}
