"""Expressions of `mx.np`, `mx.npx` and `mx.sym.np`, one a line, that MXNet's results are recorded for.

At hand: `mx`, `np` (mx.np), `npx`, `onp` (numpy), `S` (mx.sym.np), and
  A (2, 3), B (2, 3, 4) float32; H float16; D float64; I, J int32; L int64; U uint8; T bool (3,); K bool (2, 3);
  Z a scalar; E (0, 3); V, W vectors with ties and halves; Q positive; P symmetric positive definite (3, 3); X, Y symbols.
Statements before the last expression are separated by "; ".
"""

from __future__ import annotations

UNARY = ("sin cos tan sinh cosh tanh arcsinh exp expm1 square abs absolute fabs sign negative rint fix trunc ceil floor "
         "degrees radians logical_not cbrt isnan isinf isposinf isneginf isfinite").split()
POSITIVE = "log log2 log10 log1p sqrt reciprocal".split()
BOUNDED = "arcsin arccos arctan arctanh".split()
BINARY = ("add subtract multiply divide true_divide mod remainder power maximum minimum copysign arctan2 hypot equal "
          "not_equal greater less greater_equal less_equal").split()
INTEGER = "lcm bitwise_and bitwise_or bitwise_xor".split()
PAIRS = ("V, W", "A, A[0]", "A, 2", "A, 2.5", "2.5, A", "I, J", "I, 2", "I, 2.5", "2, I", "D, D", "H, H", "H, 2", "L, L",
         "T, T", "T, 2", "A, D[:3]", "I, V[:3]", "U, I", "U, U", "Z, A", "Z, Z", "2, 3", "I, L")
REDUCTIONS = "sum prod max min amax amin mean std var argmax argmin".split()


def _elementwise() -> list[str]:
    out = [f"np.{f}({x})" for f in UNARY for x in ("V", "A", "D", "Z", "E", "1.5", "H")]
    out += [f"np.{f}({x})" for f in ("abs", "sign", "square", "negative", "sin", "ceil", "logical_not", "isnan")
            for x in ("I", "U", "T", "L")]
    out += [f"np.{f}({x})" for f in POSITIVE for x in ("Q", "D * D + 1", "2.0", "I * I")]
    out += [f"np.{f}({x})" for f in BOUNDED for x in ("Q / 10", "0.5")]
    out += ["np.arccosh(Q + 1)", "np.bitwise_not(I)", "np.invert(I)", "np.bitwise_not(T)", "~I", "~T", "np.ldexp(V, W)"]
    out += [f"np.{f}({p})" for f in BINARY for p in PAIRS]
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


CREATION = """np.array(5)
np.array([1, 2, 3])
np.array([[1, 2], [3, 4]], dtype='int32')
np.array([True, False])
np.array([True, False], dtype=bool)
np.array(onp.arange(3))
np.array(onp.array([1.5, 2.5]))
np.array(onp.float64(2.5))
np.array(I)
np.array(I, dtype='float64')
np.array([])
np.array([[]])
np.array(mx.nd.ones((2,)))
np.array('text')
np.array([V, W])
np.array((1, 2), dtype=onp.float16)
np.array([[1, 2], [3]])
np.array(None)
np.array([1.7, -1.7], dtype='int32')
np.array(T)
np.zeros((2, 3))
np.zeros(3)
np.zeros(())
np.zeros((0, 2))
np.zeros((2,), dtype='int64')
np.zeros((2,), dtype=None)
np.zeros((2,), order='F')
np.ones((2, 3), dtype=onp.float64)
np.ones(())
np.ones((2,), dtype=bool)
np.ones((2,), ctx=mx.cpu())
np.full((2, 2), 7)
np.full((2,), 1.5, dtype='float64')
np.full((2,), True)
np.full((2, 3), A[0])
np.full((2, 3), A[0], dtype='int32')
np.full((), 3)
np.full(2, 3, dtype='int32')
np.zeros_like(A)
np.zeros_like(I)
np.ones_like(I)
np.ones_like(A, dtype='int32')
np.full_like(A, 3)
np.full_like(I, 3.7)
np.full_like(I, 1.5, dtype='float32')
np.full_like(A, True)
np.empty((2, 3)).shape
np.empty(3).shape
np.empty((2,), dtype='int32').dtype
np.empty((2,), order='F')
np.empty_like(A).shape
np.empty_like(A, dtype='int32').dtype
np.empty_like(A, dtype=onp.uint16)
np.arange(5)
np.arange(2, 5)
np.arange(0, 1, 0.25)
np.arange(5, 0, -2)
np.arange(5, dtype='int32')
np.arange(3, dtype=onp.int64)
np.arange(0)
np.arange(1, 2, 0)
np.arange(None)
np.linspace(0, 1, 5)
np.linspace(0, 1, 5, endpoint=False)
np.linspace(0, 1, 5, retstep=True)
np.linspace(1, 2, 3, dtype='float64')
np.linspace(0, 10, 4, dtype='int32')
np.linspace(0, 1, 1)
np.linspace(0, 1, 0)
np.linspace([0, 1], 2, 3)
np.linspace(0, 1, 3, axis=1)
np.logspace(0, 2, 3)
np.logspace(0, 2, 3, base=2)
np.logspace(0, 1, 4, endpoint=False, dtype='float64')
np.eye(3)
np.eye(2, 3)
np.eye(3, k=1)
np.eye(3, 4, -1, dtype='int32')
np.eye(2, order='F')
np.identity(3)
np.identity(2, dtype='int32')
np.identity(-1)
np.identity(2.5)
np.hanning(5)
np.hamming(5)
np.blackman(5)
np.blackman(1)
np.hanning(4, dtype='float64')
np.indices((2, 3))
np.indices((2,), dtype='float32')
np.indices(5)
np.tril(P)
np.tril(A, 1)
np.tril(B, -1)
np.meshgrid(V, W)
np.meshgrid(V[:2], W[:3], indexing='ij')
np.meshgrid(V, W, sparse=True)
np.meshgrid(V[:2], W[:3], V[:2])
np.meshgrid(V, indexing='ab')
np.broadcast_arrays(A, A[0])
np.broadcast_arrays(A, V)
np.broadcast_to(A[0], (4, 3))
np.broadcast_to(3, (2, 2))
np.broadcast_to(Z, (2, 2))
np.broadcast_to(A, (3, 3))
np.genfromtxt
np.pi, np.e, np.inf, np.newaxis
np.float32, np.int8, np.bool_
mx.nd.ones((2, 2)).as_np_ndarray()
A.as_nd_ndarray()
A.as_nd_ndarray().as_np_ndarray()
A.as_np_ndarray() is A
O = mx.nd.zeros((2,)); R = O.as_np_ndarray(); R[:] = 5; O
O = np.zeros((2,)); R = O.as_nd_ndarray(); R[:] = 5; O
A.astype('int32')
V.astype('int32')
V.astype('uint8')
V.astype(bool)
A.astype('float16')
I.astype('float32')
A.astype('float32', copy=False) is A
A.astype('float32', order='F')
A.astype('float32', casting='safe')
A.copy()
A.copy(order='F')
A.copyto(np.zeros((2, 3)))
O = np.zeros((2, 3), dtype='int32'); A.copyto(O); O
A.copyto(mx.nd.zeros((2, 3)))
A.as_in_ctx(mx.cpu())
A.detach()
import pickle; pickle.loads(pickle.dumps(A))
import pickle; pickle.loads(pickle.dumps(Z))
import pickle; pickle.loads(pickle.dumps(I))
import pickle; pickle.loads(pickle.dumps(T))
import copy; copy.copy(A)
import copy; copy.deepcopy(A)
npx.save('{tmp}/a', A); npx.load('{tmp}/a')
npx.save('{tmp}/a', {'x': A, 'y': Z, 'z': E}); npx.load('{tmp}/a')
npx.save('{tmp}/a', [I, T, H]); npx.load('{tmp}/a')
npx.save('{tmp}/a', 5)
npx.save('{tmp}/a', [mx.nd.ones((2,))])
mx.nd.save('{tmp}/a', [A])
np.shape(A)
np.shares_memory(A, A)
np.shares_memory(A, A.copy())
np.may_share_memory(V, W)
np.svd
np.nothing"""

SHAPE = """np.reshape(A, (3, 2))
np.reshape(A, -1)
np.reshape(A, (-1, 2))
np.reshape(A, (4, 2))
np.reshape(A, 6)
np.reshape(Z, (1, 1))
np.reshape(np.ones((1,)), ())
np.reshape(E, (3, 0))
np.reshape(A, newshape=(3, 2))
A.reshape(3, 2)
A.reshape((3, 2))
A.reshape(-1)
A.reshape()
A.reshape(3, 2, order='F')
A.reshape(3, 2, reverse=True)
A.reshape_view(3, 2)
npx.reshape(B, (-2, -1))
npx.reshape(B, (-2, -2, -1))
npx.reshape(B, (-5, -4))
npx.reshape(B, (-1, -4))
npx.reshape(B, (-6, 1, 2, -4))
npx.reshape(B, newshape=(6, -1))
A.flatten()
B.flatten()
np.ravel(A)
np.ravel(A, order='F')
np.ravel(5)
np.transpose(A)
np.transpose(B)
np.transpose(B, (1, 0, 2))
np.transpose(B, axes=(2, 0, 1))
A.transpose()
B.transpose(1, 0, 2)
B.transpose((1, 0, 2))
B.transpose(None)
B.T
V.T
np.moveaxis(B, 0, -1)
np.moveaxis(B, (0, 1), (1, 0))
np.moveaxis(B, source=0, destination=2)
np.swapaxes(B, 0, 2)
B.swapaxes(0, 1)
np.expand_dims(A, 0)
np.expand_dims(A, -1)
np.expand_dims(Z, 0)
np.squeeze(np.ones((1, 2, 1)))
np.squeeze(np.ones((1, 2, 1)), axis=0)
np.squeeze(np.ones((1, 2, 1)), axis=(0, 2))
np.squeeze(np.ones((1, 1)))
np.squeeze(A, axis=0)
np.ones((1, 2)).squeeze()
np.concatenate([A, A])
np.concatenate([A, A], axis=1)
np.concatenate((V, W), axis=None)
np.concatenate([A, B])
np.concatenate([I, J])
np.concatenate([A, E])
np.append(A, A)
np.append(A, A, axis=0)
np.stack([V, W])
np.stack((V, W), axis=1)
np.stack([Z, Z])
np.stack([A, A], axis=-1)
np.stack(iter([V, W]))
np.vstack([V, W])
np.vstack([A, A[0]])
np.vstack((A, A))
np.row_stack([V, W])
np.column_stack([V, W])
np.column_stack([A, A])
np.hstack([V, W])
np.hstack([A, A])
np.dstack([A, A])
np.dstack([V, W])
np.atleast_1d(Z)
np.atleast_2d(V)
np.atleast_3d(A)
np.atleast_1d(Z, V)
np.split(V, 2)
np.split(V, 3)
np.split(V, [1, 3])
np.split(A, 3, axis=1)
np.split(V, 1)
np.split(A, (1,), axis=0)
np.array_split(V, 3)
np.array_split(V, [1, 2])
np.array_split(A, 2, axis=1)
np.hsplit(A, 3)
np.hsplit(V, 2)
np.hsplit(A, [1])
np.hsplit(V, 1)
np.hsplit(Z, 1)
np.vsplit(A, 2)
np.vsplit(V, 2)
np.dsplit(B, 2)
np.dsplit(A, 2)
np.dsplit(B, [1, 2])
np.split(V, 'a')
np.flip(A)
np.flip(A, 0)
np.flip(A, (0, 1))
np.flip(5)
np.flipud(A)
np.fliplr(A)
np.rot90(A)
np.rot90(A, 2)
np.rot90(B, 1, (1, 2))
np.roll(V, 1)
np.roll(A, 1, axis=1)
np.roll(A, (1, 1), axis=(0, 1))
np.roll(A, -2)
np.repeat(V, 2)
np.repeat(A, 2, axis=1)
A.repeat(2)
A.repeat(2, axis=0)
np.tile(V, 2)
np.tile(A, (2, 1))
np.tile(V, (2, 2))
np.tile(Z, 3)
np.tile(5, 3)
np.pad(V, ((1, 2),))
np.pad(A, ((1, 1), (2, 0)), mode='edge')
np.pad(A, ((1, 1), (1, 1)), mode='reflect')
np.pad(A, ((1, 1), (1, 1)), mode='symmetric')
np.pad(A, ((1, 1), (1, 1)), mode='maximum')
np.pad(A, ((1, 1), (1, 1)), mode='minimum')
np.pad(A, ((1, 1), (1, 1)), mode='wrap')
np.pad(A, ((1, 1), (1, 1)), mode='mean')
np.pad(A, [(1, 1), (1, 1)])
np.pad(A, ((1.5, 1), (1, 1)))
np.pad(A, ((1, 1), (1, 1)), mode='edge', constant_values=1)
np.resize(A, (3, 3))
np.resize(V, 6)
np.resize(V, (2,))
np.diag(V)
np.diag(P)
np.diag(P, 1)
np.diag(V, k=-1)
np.diagflat(A)
np.diagflat(V, 1)
np.diagonal(P)
np.diagonal(B, 1, 0, 2)
np.diag_indices_from(P)
np.diag_indices_from(A)
np.trace(P)
np.trace(B)
np.trace(P, offset=1)
np.unravel_index(np.array([3, 5], dtype='int32'), (2, 3))
np.unravel_index(5, (2, 3))
np.unravel_index(I, (2, 3), order='F')"""

ARRAYS = """np.sum(A, 0)
np.sum(A, axis=(0, 1))
np.sum(A, axis=1, keepdims=True)
np.sum(I)
np.sum(I, dtype='float64')
np.sum(T)
np.sum(H)
np.sum(A, initial=5)
np.sum(E)
np.sum(E, axis=0)
np.sum(U)
np.prod(U)
np.mean(I)
np.mean(I, dtype='float64')
np.mean(T)
np.mean(A, axis=(0, 1), keepdims=True)
np.mean(H)
np.std(A, ddof=1)
np.var(A, axis=0)
np.var(I)
np.std(I, axis=0)
np.max(I)
np.max(E)
np.max(E, axis=1)
np.min(A, axis=0)
np.min(A, axis=(0, 1), keepdims=True)
np.argmax(A, axis=1)
np.argmin(A)
np.argmax(I)
np.argmax(E)
np.all(T)
np.any(T)
np.all(A)
np.any(A, axis=0)
np.all(K, axis=1, keepdims=True)
np.sometrue(I)
np.all(E)
K.all()
K.any(axis=0)
A.sum()
A.sum(axis=0, keepdims=True)
A.mean(axis=1)
A.std()
A.var(axis=0, ddof=1)
A.max(axis=1)
A.min()
A.prod()
A.argmax()
A.argmax(axis=0)
A.argmin(axis=1)
A.cumsum()
A.cumsum(axis=1)
I.cumsum(dtype='float32')
np.cumsum(A, axis=0)
np.cumsum(I)
np.cumsum(T)
np.average(A)
np.average(A, axis=0)
np.average(V, weights=Q)
np.average(A, axis=1, weights=np.array([1, 2, 3]))
np.average(V, weights=Q, returned=True)
np.percentile(V, 50)
np.percentile(V, 30, interpolation='lower')
np.percentile(A, 25, axis=1)
np.percentile(A, 25, axis=1, keepdims=True)
np.percentile(V, np.array([10, 50, 90]))
np.percentile(V, 40, interpolation='nearest')
np.percentile(V, 40, interpolation='midpoint')
np.quantile(V, 0.5)
np.quantile(A, np.array([0.25, 0.75]), axis=0)
np.quantile(V, 0.5, overwrite_input=True)
np.histogram(V, bins=3, range=(-2, 3))
np.histogram(V, bins=np.array([-2, 0, 1, 3]))
np.histogram(V, 3)
np.histogram(V, [0, 1])
np.histogram(V, bins=3, range=(0, 1), density=True)
np.histogram(V, 'auto')
np.bincount(np.array([0, 1, 1, 3], dtype='int32'))
np.bincount(np.array([0, 1, 1, 3], dtype='int32'), minlength=6)
np.bincount(np.array([0, 1, 1, 3], dtype='int32'), weights=V)
np.bincount(np.array([0, 1], dtype='int32'), minlength=-1)
np.bincount([0, 1])
np.diff(V)
np.diff(A, n=2)
np.diff(A, axis=0)
np.diff(I)
np.diff(V, prepend=1)
np.ediff1d(V)
np.ediff1d(A, to_end=9)
np.ediff1d(V, to_begin=np.array([7.0, 8.0]))
np.ediff1d(V, to_begin=np.array([7.0]), to_end=np.array([9.0, 9.0]))
np.ediff1d(V, to_begin=1, to_end=np.array([9.0, 9.0]))
np.sort(V)
np.sort(A, axis=0)
np.sort(A, axis=None)
np.sort(I)
np.sort(V, order='a')
np.argsort(V)
np.argsort(A, axis=0)
np.argsort(I)
V.argsort()
np.nonzero(I)
np.nonzero(A)
K.nonzero()
npx.nonzero(A)
np.unique(V)
np.unique(I)
np.unique(np.array([1, 2, 1, 3]), return_index=True)
np.unique(np.array([1, 2, 1, 3]), return_counts=True, return_inverse=True)
np.unique(np.array([[1, 2], [1, 2], [3, 4]]), axis=0)
np.take(V, np.array([0, 2], dtype='int32'))
np.take(A, np.array([0, 2], dtype='int32'), axis=1)
np.take(A, np.array([[0, 1], [5, 2]], dtype='int32'))
np.take(V, np.array([0, 9], dtype='int32'), mode='clip')
np.take(V, np.array([0, 9], dtype='int32'), mode='wrap')
np.take(V, np.array([0]), mode='other')
V.take(np.array([1, 1]))
A.take(np.array([1]), axis=0)
np.insert(V, 1, 9)
np.insert(V, np.array([1, 2], dtype='int64'), 9)
np.insert(V, slice(0, 4, 2), 9)
np.insert(A, 1, V[:3], axis=0)
np.insert(A, 1, 5, axis=1)
np.insert(V, 1, W[:1])
np.insert(V, 9, 1)
np.insert([1], 0, V)
np.insert(V, 1, [2])
np.insert(V, 'a', 2)
np.delete(V, 1)
np.delete(V, slice(0, 2))
np.delete(V, np.array([0, 3], dtype='int64'))
np.delete(A, 1, axis=1)
np.delete(A, 0, axis=0)
np.delete(V, 9)
np.delete([1], 0)
np.dot(V, W)
np.dot(A, P)
np.dot(A, 2)
np.dot(Z, A)
np.dot(B, A.T[:, :1])
A.dot(P)
np.dot(a=A, b=P)
np.tensordot(A, A, axes=2)
np.tensordot(A, P, axes=1)
np.tensordot(A, A, axes=([0], [0]))
np.tensordot(A, A, axes=(1, 1))
np.tensordot(V, W, axes=0)
np.tensordot(A, A, axes=([0], [0, 1]))
np.inner(V, W)
np.inner(A, P)
np.outer(V, W)
np.vdot(A, A)
np.matmul(A, P)
np.matmul(V, W)
np.matmul(B, np.ones((4, 2)))
np.matmul(A, A)
np.einsum('ij,jk->ik', A, P)
np.einsum('ij->j', A)
np.einsum('ii', P)
np.einsum('i,j->ij', V, W, optimize=True)
np.einsum('...j,j', A, V[:3])
np.polyval(np.array([1, 2, 3]), V)
np.polyval([1, 2, 3], 2)
np.polyval([1, 2], V)
np.copy(A)
np.copy(a=A)
np.all(a=T)
np.allclose(A, A)
np.array_equal(A, A)
np.array_equal(A, A + 1)
np.count_nonzero(I)
np.size(A)
np.ndim(A)
np.nansum(N)
np.nanmax(N[1:])
np.isclose(V, V)
np.searchsorted(np.arange(5), np.array([1.5]))
np.cov(A)
np.partition(V, 1)
np.interp(V, np.array([0, 1]), np.array([5, 6]))
np.vander(V[:2], 3)
np.argwhere(I)
np.ptp(A)
np.trapz(V)
np.in1d(I, J)
np.alltrue(T)
np.msort(A)
np.float_power(V, 2)
np.modf(V)
np.frexp(V)
np.heaviside(V, 0.5)
np.signbit(V)
np.positive(V)
np.union1d(I, J)
np.digitize(V, np.array([0, 1]))"""

INDEXING = """A[0]
A[-1]
A[1, 2]
A[2]
A[0, 0, 0]
A[:]
A[0:1]
A[:, 1]
A[:, ::2]
A[::-1]
A[:, -2:]
A[..., 0]
A[0, ...]
A[...]
A[()]
A[None]
A[:, None]
A[None, :, None, 1]
B[1, :, 2]
B[1, 0:2, ::3]
B[..., -1]
B[0][1][2]
V[1]
V[1:3]
V[5:]
V[3:1]
V[::0]
Z[()]
Z[...]
Z[0]
Z[None]
E[0:0]
E[:, 1]
A[np.array([1, 0])]
A[np.array([1, 0], dtype='int32')]
A[[1, 0]]
A[[0, 1], [1, 2]]
A[:, [0, 2]]
A[:, np.array([[0, 1], [2, 0]])]
A[np.array([[0], [1]]), np.array([0, 2])]
B[0, [0, 1], [1, 2]]
B[[0, 1], :, [1, 2]]
B[:, [0, 2], 1:3]
A[onp.array([1, 0])]
A[np.array(1, dtype='int32')]
A[np.array([0, -1], dtype='int32')]
V[V > 0]
A[A > 2]
A[K]
A[T[:2]]
A[T]
B[K]
A[[True, False]]
V[[True, False, True, False]]
A[onp.array([True, False])]
A[:, T]
V[V > 100]
V[True]
V[False]
A[True]
Z[True]
A['a']
A[1.5]
A[0:'a']
O = A.copy(); O[0] = 9; O
O = A.copy(); O[1, 2] = 9; O
O = A.copy(); O[:] = 9; O
O = A.copy(); O[:, 1] = V[:2]; O
O = A.copy(); O[0] = [7, 8, 9]; O
O = A.copy(); O[0] = onp.array([7, 8, 9]); O
O = A.copy(); O[:, ::2] = 0; O
O = A.copy(); O[[0, 1], [1, 2]] = 5; O
O = A.copy(); O[:, [0, 2]] = A[:, :2]; O
O = A.copy(); O[A > 2] = -1; O
O = A.copy(); O[K] = 7; O
O = A.copy(); O[A > 2] = np.array([7, 8, 9]); O
O = V.copy(); O[V < 0] = 0; O
O = I.copy(); O[I > 0] = 3; O
O = T.copy(); O[0] = False; O
O = Z.copy(); O[()] = 5; O
O = Z.copy(); O[:] = 5
O = Z.copy(); O[0] = 5
O = Z.copy(); O[()] = np.array(6); O
O = Z.copy(); O[()] = np.ones((1,)); O
O = Z.copy(); O[()] = np.ones((2,))
O = A.copy(); O[0] = mx.nd.ones((3,))
O = A.copy(); O[0] = 'a'
O = A.copy(); O[0] = V
O = A.copy(); O[5] = 1
O = A.copy(); O[0][1] = 9; O
O = A.copy(); R = O[0]; R[:] = 5; O
O = A.copy(); R = O.reshape(3, 2); R[:] = 5; O
O = A.copy(); R = O.reshape_view(3, 2); R[:] = 5; O
O = A.copy(); R = O[:, 1]; R[:] = 5; O
O = A.copy(); O[0] += 1; O
O = I.copy(); O[0] = 2.7; O
O = B.copy(); O[0, 1:, ::2] = 9; O[0]
O = B.copy(); O[..., 0] = 1; O[0]
O = A.copy(); O[False] = 5; O
O = A.copy(); O[True] = 5; O"""

LINALG = """np.linalg.norm(V)
np.linalg.norm(A)
np.linalg.norm(A, axis=0)
np.linalg.norm(A, ord=1, axis=0)
np.linalg.norm(A, ord='fro')
np.linalg.norm(A, ord='fro', axis=(0, 1))
np.linalg.norm(A, ord=1, axis=(0, 1))
np.linalg.norm(A, ord=-1, axis=(0, 1))
np.linalg.norm(A, ord='inf', axis=(0, 1))
np.linalg.norm(A, ord='-inf', axis=(0, 1))
np.linalg.norm(A, ord=2, axis=(0, 1))
np.linalg.norm(A, ord='nuc', axis=(0, 1))
np.linalg.norm(B, ord=1, axis=(0, 2))
np.linalg.norm(B, ord='inf', axis=(2, 0), keepdims=True)
np.linalg.norm(V, ord='inf', axis=0)
np.linalg.norm(V, ord=3, axis=0)
np.linalg.norm(A, axis=0, keepdims=True)
np.linalg.norm(A, axis='a')
np.linalg.svd(A)[1]
np.linalg.cholesky(P)
np.linalg.inv(P)
np.linalg.inv(A)
np.linalg.det(P)
np.linalg.slogdet(P)
np.linalg.solve(P, V[:3])
np.linalg.solve(P, P)
np.linalg.pinv(A)
np.linalg.pinv(A, 0.1)
np.linalg.pinv(A, hermitian=True)
np.linalg.tensorinv(np.eye(4).reshape(2, 2, 4), ind=2)
np.linalg.tensorsolve(np.eye(4).reshape(4, 2, 2), V)
np.linalg.eigvalsh(P)
np.linalg.eigh(P)[0]
np.linalg.eigvals(P)
np.linalg.eig(P)[0]
np.linalg.matrix_rank(P)
np.linalg.cond(P)
np.linalg.matrix_power(P, 2)
np.linalg.qr(P)[1]
np.linalg.nothing"""

PROTOCOL = """onp.mean(A)
onp.sum(A, axis=0)
onp.sin(V)
onp.add(V, W)
onp.add(V, 2)
onp.add(2, V)
onp.multiply(A, A)
onp.concatenate([A, A])
onp.stack([V, W])
onp.dot(A, P)
onp.transpose(A)
onp.reshape(A, (3, 2))
onp.argmax(A, axis=1)
onp.where(V > 0, V, W)
onp.linalg.norm(A)
onp.linalg.inv(P)
onp.cumprod(V)
onp.median(V)
onp.sinc(V)
onp.exp2(V)
onp.logaddexp(V, W)
onp.expand_dims(A, 0)
onp.clip(V, 0, 1)
onp.squeeze(np.ones((1, 2)))
onp.unique(I)
onp.sort(V)
onp.max(A)
onp.split(V, 2)
onp.ones(4) + V
V + onp.ones(4)
onp.maximum(V, W)
onp.einsum('ij->j', A)
onp.matmul(A, P)
onp.std(A)
onp.std(A, ddof=1)
onp.zeros_like(A)
onp.shape(A)
onp.ndim(A)
onp.size(A)
onp.allclose(A, A)
onp.triu(P)
onp.kron(V, W)
O = np.zeros((4,)); onp.sin(V, out=O); O
V.attach_grad(); mx.autograd.set_recording(True); onp.median(V)
V.attach_grad(); mx.autograd.set_recording(True); onp.mean(V).backward(); V.grad
onp.add.reduce(V)
onp.divmod(V, 2)
onp.float32(2) * V
V * onp.float32(2)
onp.sum([V, W])
onp.tile(V, 2)
onp.nonzero(I)
onp.trace(P)"""

AUTOGRAD_BODIES = """(V * V).sum()
np.sin(V).sum()
(V * W).mean()
V[1:3].sum()
V[1]
V[np.array([0, 0, 2])].sum()
V[V > 0].sum()
V.reshape(2, 2).sum(axis=0).max()
np.dot(V, W)
np.tensordot(V, W, 1)
np.where(V > 0, V, V * 3).sum()
np.concatenate([V, V * 2]).sum()
np.stack([V, V]).std()
np.clip(V, -1, 1).sum()
np.abs(V).sum()
np.maximum(V, W).sum()
(V ** 2).sum()
(2 ** V).sum()
np.linalg.norm(V)
np.sort(V)[0]
npx.softmax(V)[0]
npx.relu(V).sum()
npx.sigmoid(V).sum()
(V / (np.abs(V) + 1)).sum()
np.cumsum(V)[2]
V.T.sum()
np.exp(-V).mean()
np.prod(V)
np.outer(V, W).sum()
np.broadcast_to(V, (3, 4)).sum()
np.expand_dims(V, 0).sum()
np.pad(V, ((1, 1),), mode='edge').sum()
np.diag(V).sum()
np.einsum('i,i->', V, W)
np.var(V)
np.tile(V, 2).sum()
np.repeat(V, 3)[0:5].sum()
np.flip(V)[0]
np.roll(V, 1)[0]
V.astype('float64').sum()
np.split(V, 2)[1].sum()
npx.fully_connected(V.reshape(1, 4), np.ones((2, 4)), np.zeros((2,)), num_hidden=2).sum()
npx.pick(V.reshape(2, 2), np.array([0, 1])).sum()
V.copy().sum()
np.hypot(V, W).sum()
V.as_nd_ndarray().as_np_ndarray().sum()
(V.detach() * V).sum()"""

NPX = """npx.relu(V)
npx.sigmoid(V)
npx.softmax(A)
npx.softmax(A, axis=0)
npx.log_softmax(A)
npx.activation(V, act_type='tanh')
npx.leaky_relu(V, act_type='leaky', slope=0.1)
npx.fully_connected(A, np.ones((2, 3)), np.zeros((2,)), num_hidden=2)
npx.fully_connected(A, np.ones((2, 3)), num_hidden=2, no_bias=True)
npx.convolution(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), np.zeros((1,)), kernel=(2, 2), num_filter=1)
npx.pooling(np.ones((1, 1, 4, 4)), kernel=(2, 2), stride=(2, 2), pool_type='max')
npx.batch_norm(np.ones((2, 3)), np.ones(3), np.zeros(3), np.zeros(3), np.ones(3))
npx.layer_norm(A, np.ones(3), np.zeros(3))
npx.embedding(np.array([0, 1]), P, input_dim=3, output_dim=3)
npx.one_hot(np.array([0, 2]), 3)
npx.one_hot(I, depth=3)
npx.pick(A, np.array([0, 2]))
npx.topk(A)
npx.topk(A, k=2, ret_typ='both')
npx.topk(A, k=2, ret_typ='value', is_ascend=True)
npx.gather_nd(A, np.array([[0, 1], [1, 2]], dtype='int32'))
npx.batch_dot(np.ones((2, 1, 3)), np.ones((2, 3, 1)))
npx.batch_flatten(B)
npx.arange_like(A)
npx.arange_like(A, axis=1)
npx.reshape_like(A, np.ones((3, 2)))
npx.shape_array(A)
npx.erf(V)
npx.erfinv(Q / 10)
npx.gamma(Q)
npx.gammaln(Q)
npx.smooth_l1(V)
npx.slice(A, (0, 1), (2, 3))
npx.sequence_mask(B, np.array([1, 2, 2]), use_sequence_length=True)
npx.cast(V, dtype='int32')
npx.dropout(A)
npx.image.to_tensor(np.zeros((2, 2, 3), dtype='uint8'))
npx.image.normalize(np.ones((3, 2, 2)), 0.5, 0.5)
npx.image.flip_left_right(A.reshape(1, 2, 3))
npx.constraint_check(np.array(True), 'text')
npx.constraint_check(T, 'the text')
npx.rnn
npx.nothing
npx.is_np_array(), npx.is_np_shape()
npx.current_context()
npx.cpu(0)
npx.num_gpus()
npx.waitall()
npx.relu(mx.nd.ones((2,)))
npx.relu([1])
np.random.uniform(size=(2, 3)).shape
np.random.uniform().shape
np.random.uniform(V, 9).shape
np.random.uniform(V, V + 1, size=(2, 4)).shape
np.random.uniform(0, 1, (2,), 'float64').dtype
np.random.normal(size=3).shape
np.random.normal(V, 1).dtype
np.random.normal(0, Q, size=(5, 4)).shape
np.random.randint(5, size=(2,)).dtype
np.random.randint(0, 5, (2,), 'int32').dtype
np.random.randint(3, 4, size=(2,))
np.random.rand(2, 3).shape
np.random.randn(2).shape
np.random.gamma(2.0, size=(2,)).shape
np.random.beta(1.0, 2.0, size=(2,)).dtype
np.random.chisquare(3.0, size=(2,)).shape
np.random.exponential(size=(2,)).shape
np.random.weibull(1.0, size=(2,)).shape
np.random.pareto(1.0, size=(2,)).shape
np.random.power(1.0, size=(2,)).shape
np.random.logistic(size=(2,)).shape
np.random.gumbel(V, 1.0).shape
np.random.rayleigh(1.0, size=(2,)).shape
np.random.lognormal(size=(2,)).shape
np.random.multinomial(5, [0.5, 0.5]).sum()
np.random.multinomial(5, np.array([0.5, 0.5]), size=(3,)).shape
np.random.multinomial(5, [[0.5], [0.5]])
np.random.choice(5, (3,)).shape
np.random.choice(5, 5, replace=False).sum()
np.random.choice(V, (2,)).shape
np.random.choice(3, 2, p=np.array([0.0, 1.0, 0.0]))
np.random.multivariate_normal(np.zeros(3), P).shape
np.random.multivariate_normal(np.zeros(3), P, size=(2,)).shape
np.random.multivariate_normal(np.zeros(3), P, tol=1)
O = np.arange(4); np.random.shuffle(O); O.sum()
O = np.zeros((2,)); np.random.uniform(1, 1, out=O, size=(2,)); O
npx.random.bernoulli(1.0, size=(2,))
npx.random.bernoulli(prob=np.array([0.0, 1.0]))
npx.random.bernoulli()
npx.random.uniform_n(V, 5, batch_shape=(2,)).shape
npx.random.normal_n(0, 1, batch_shape=(2, 3)).shape
npx.random.seed(5)
np.random.nothing"""

SYMBOLS = """X + Y
X + 2
2 + X
2 - X
X - 2.5
X * Y
2 * X
X / 2
1 / X
X % 3
3 % X
X ** 2
2 ** X
-X
X == Y
X != 2
X < 2
2 < X
X >= Y
X[1]
X[1:3]
X[1, 2:3]
X[:, -1]
X[()]
X['a']
X[::0]
X.T
X.reshape(-1, 2)
X.reshape((2, 3))
X.flatten()
X.transpose(1, 0)
X.sum()
X.sum(axis=1, keepdims=True)
X.mean()
X.std(axis=0)
X.var(ddof=1)
X.max()
X.min(axis=0)
X.prod()
X.cumsum(axis=1)
X.argmax(axis=1)
X.argsort()
X.squeeze()
X.swapaxes(0, 1)
X.astype('int32')
X.astype(onp.float64)
X.clip(0, 1)
X.round(2)
X.take(Y)
X.take(Y, axis=0)
X.repeat(2, axis=1)
X.dot(Y)
X.abs()
X.expand_dims(0)
abs(X)
S.sin(X)
S.abs(X)
S.fabs(X)
S.invert(X)
S.add(X, Y)
S.maximum(X, 1.5)
S.true_divide(X, Y)
S.arctan2(1, X)
S.sin(2.0)
S.sin('a')
S.sin(mx.sym.var('z'))
mx.sym.sin(X)
S.zeros((2, 3))
S.ones((2,), dtype='int32')
S.full((2, 3), 4)
S.full((2, 3), X)
S.full_like(X, 3)
S.zeros_like(X)
S.ones_like(X, dtype='int32')
S.empty_like(X)
S.arange(5)
S.arange(1, 5, 2, dtype='int32')
S.linspace(0, 1, 5)
S.logspace(0, 1, 5)
S.eye(3)
S.identity(3)
S.indices((2, 3))
S.hanning(5)
S.tril(X)
S.sum(X)
S.sum(X, axis=1)
S.mean(X, axis=(0, 1), dtype='float32')
S.std(X)
S.max(X, axis=0)
S.all(X)
S.average(X)
S.average(X, weights=Y)
S.average(X, weights=Y, returned=True)
S.percentile(X, 50)
S.quantile(X, 0.5)
S.percentile(X, Y)
S.histogram(X, bins=3, range=(0, 1))
S.bincount(X)
S.diff(X)
S.ediff1d(X)
S.ediff1d(X, to_begin=Y)
S.sort(X)
S.argsort(X)
S.unique(X, return_index=True)
S.take(X, Y)
S.unravel_index(X, (3, 4))
S.diag_indices_from(X)
S.insert(X, 1, Y)
S.insert(X, slice(0, 2), 5)
S.delete(X, 1)
S.dot(X, Y)
S.matmul(X, Y)
S.tensordot(X, Y)
S.tensordot(X, Y, axes=([1], [0]))
S.inner(X, Y)
S.outer(X, Y)
S.vdot(X, Y)
S.einsum('ij,jk->ik', X, Y)
S.polyval(X, Y)
S.concatenate([X, Y])
S.concatenate([X, Y], axis=1)
S.append(X, Y)
S.stack([X, Y], 1)
S.vstack([X, Y])
S.column_stack([X, Y])
S.hstack([X, Y])
S.dstack([X, Y])
S.atleast_1d(X)
S.atleast_1d(X, Y)
S.split(X, 2)
S.split(X, [1, 2], axis=1)
S.array_split(X, 3)
S.hsplit(X, 2)
S.hsplit(X, 1)
S.vsplit(X, 2)
S.dsplit(X, 2)
S.split(X, 2)[1]
S.flip(X, 0)
S.flipud(X)
S.rot90(X)
S.roll(X, 1)
S.tile(X, 2)
S.repeat(X, 2)
S.pad(X, ((1, 1),), mode='edge')
S.resize(X, (2, 3))
S.reshape(X, (2, 3))
S.transpose(X)
S.moveaxis(X, 0, 1)
S.expand_dims(X, 0)
S.squeeze(X)
S.ravel(X)
S.broadcast_to(X, (2, 3))
S.diag(X)
S.trace(X)
S.where(X > 0, X, Y)
S.where(X > 0, X, 1)
S.where(X > 0, 1, X)
S.where(X, 1, 2)
S.around(X, 2)
S.clip(X, 0, None)
S.nan_to_num(X)
S.shares_memory(X, Y)
S.linalg.norm(X)
S.linalg.norm(X, ord=1, axis=(0, 1))
S.linalg.norm(X, axis=0)
S.linalg.svd(X)
S.linalg.eigh(X)
S.linalg.solve(X, Y)
S.linalg.pinv(X)
S.linalg.inv(X)
S.random.normal(size=(2, 3))
S.random.uniform(X, 3)
S.random.uniform(0, X, size=(2,))
S.random.gamma(X, Y)
S.random.randint(5)
S.random.rand(2, 3)
S.random.choice(5, 2)
S.random.exponential(X)
S.random.multivariate_normal(X, Y)
S.random.beta(1.0, 2.0)
mx.sym.npx.random.bernoulli(X)
mx.sym.npx.relu(X)
mx.sym.npx.fully_connected(X, num_hidden=3)
mx.sym.npx.fully_connected(X, num_hidden=3, name='fc')
mx.sym.npx.convolution(X, kernel=(3, 3), num_filter=4)
mx.sym.npx.batch_norm(X)
mx.sym.npx.topk(X, ret_typ='both')
mx.sym.npx.dropout(X, p=0.3)
mx.sym.npx.softmax(X)
mx.sym.npx.reshape(X, (-2, -1))
mx.sym.npx.embedding(X, input_dim=3, output_dim=2)
mx.sym.npx.image.to_tensor(X)
mx.sym.npx.nothing
S.nothing
S.sum(X, name='total')
X.as_nd_ndarray()
X.as_nd_ndarray() + mx.sym.var('z')
mx.sym.var('z').as_np_ndarray() + X
X + mx.sym.var('z')
mx.sym.Group([X, Y]).as_np_ndarray()
repr(X)
repr(X + Y)
X.name
len(X)
iter(X)
bool(X)
X.num_outputs
(X + Y).list_arguments()
(X + Y).list_outputs()
import copy; copy.deepcopy(X + Y)
import pickle; pickle.loads(pickle.dumps(X + Y))
S.relu
(S.sin(X * Y) + X.sum(axis=1, keepdims=True)).mean()
S.load_json((X + Y).tojson())"""


def sections() -> dict[str, list[str]]:
    """All expressions by section."""
    lines = {name: text.splitlines() for name, text in (
        ("creation", CREATION), ("shape", SHAPE), ("arrays", ARRAYS), ("indexing", INDEXING), ("linalg", LINALG),
        ("protocol", PROTOCOL), ("npx", NPX), ("symbols", SYMBOLS))}
    lines["arrays"] += [f"np.{f}({x})" for f in REDUCTIONS for x in ("A", "V", "I", "D", "Z", "A, axis=1", "B, axis=-1")]
    lines["autograd"] = [f"V.attach_grad(); mx.autograd.set_recording(True); R = {body}; R.backward(); (R, V.grad)"
                         for body in AUTOGRAD_BODIES.splitlines()]
    return {"elementwise": _elementwise(), "operators": _operators(), **lines}
