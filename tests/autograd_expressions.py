"""Expressions whose gradients `autograd_cases` takes, by name."""

from __future__ import annotations

# An expression of x (2, 3), p (2, 3, positive) and nd: the gradients of both are recorded, of x's also the second ones.
_LINES = """
add: x + p
subtract from a number: 3 - x
multiply: x * p * x
divide: x / p
divide a number: 2 / p
power: p ** 3
power of both: p ** x
number to the power: 2 ** x
modulo: p % 0.4
negative: -x
absolute: abs(x)
exp: nd.exp(x)
log: nd.log(p)
log2: nd.log2(p)
log1p: nd.log1p(p)
expm1: nd.expm1(x)
sqrt: nd.sqrt(p)
rsqrt: nd.rsqrt(p)
cbrt: nd.cbrt(p)
square: nd.square(x)
reciprocal: nd.reciprocal(p)
sin: nd.sin(x)
cos: nd.cos(x)
tan: nd.tan(x)
arcsin: nd.arcsin(x * 0.3)
arctan: nd.arctan(x)
sinh: nd.sinh(x)
tanh: nd.tanh(x)
arcsinh: nd.arcsinh(x)
erf: nd.erf(x)
gamma: nd.gamma(p)
gammaln: nd.gammaln(p)
sigmoid: nd.sigmoid(x)
relu: nd.relu(x)
softsign: nd.softsign(x)
hard_sigmoid: nd.hard_sigmoid(x)
leaky: nd.LeakyReLU(x, slope=0.1)
elu: nd.LeakyReLU(x, act_type="elu", slope=0.3)
softrelu: nd.Activation(x, act_type="softrelu")
smooth_l1: nd.smooth_l1(x, scalar=1.0)
round: nd.round(x) * p
floor: nd.floor(x) * p
sign: nd.sign(x) * p
clip: nd.clip(x, -1, 1)
maximum: nd.maximum(x, p)
minimum: nd.minimum(x, 0.6)
hypot: nd.broadcast_hypot(x, p)
where: nd.where(x > 0, x * 2, p * 3)
comparison: (x > p) * x
sum: nd.sum(x * p)
sum of an axis: nd.sum(x * p, axis=1)
sum excluding: nd.sum(x * x, axis=0, exclude=True)
mean: nd.mean(x * x, axis=0, keepdims=True)
prod: nd.prod(p, axis=1)
max: nd.max(x, axis=1)
min: nd.min(p)
norm: nd.norm(x)
norm of an axis: nd.norm(x, axis=1)
nansum: nd.nansum(x * p, axis=1)
dot: nd.dot(x, p.T)
dot transposed: nd.dot(x, p, transpose_a=True)
batch_dot: nd.batch_dot(x.expand_dims(0), p.expand_dims(0), transpose_b=True)
fully connected: nd.FullyConnected(x, p, num_hidden=2, no_bias=True)
softmax: nd.softmax(x) * p
log_softmax: nd.log_softmax(x) * p
softmax with temperature: nd.softmax(x, axis=0, temperature=2.0) * p
softmin: nd.softmin(x) * p
reshape: nd.reshape(x, (3, 2)) * nd.reshape(p, (3, 2))
reshape codes: x.reshape((-1,)) * x.reshape((-3,))
transpose: x.T * p.T
swapaxes: nd.swapaxes(x, 0, 1) * 2
expand and squeeze: x.expand_dims(1).squeeze() * p
tile: nd.tile(x, (2, 1)) * nd.tile(p, (2, 1))
repeat: nd.repeat(x, 2, axis=1) * nd.repeat(p, 2, axis=1)
flip: nd.flip(x, axis=1) * p
concat: nd.concat(x, p, x, dim=0) ** 2
stack: nd.stack(x, p, axis=1) ** 2
split: nd.split(x, 3, axis=1)[1] * 2
slice: nd.slice(x, begin=(0, 1), end=(2, 3)) * 2
slice_axis: nd.slice_axis(x, axis=1, begin=0, end=2) * 2
index: x[1] * p[0]
index range: x[:, 1:] * p[:, :2]
index twice: x[1][2] * p[0, 1]
advanced index: x[nd.array([0, 1, 1]), nd.array([2, 2, 2])] * 3
take: nd.take(x, nd.array([1, 1, 0])) * 2
pick: nd.pick(x, nd.array([2, 0])) * 2
gather_nd: nd.gather_nd(x, nd.array([[0, 1, 1], [1, 1, 1]])) * 2
one_hot: nd.one_hot(nd.array([0, 2]), 3) * x
Embedding: nd.Embedding(nd.array([1, 0, 1]), x, input_dim=2, output_dim=3) * 2
broadcast_to: nd.broadcast_to(nd.sum(x, axis=1, keepdims=True), (2, 3)) * p
broadcast_like: nd.broadcast_like(nd.sum(x, axis=0, keepdims=True), p) * p
sort: nd.sort(x, axis=1) * p
topk: nd.topk(x, k=2, ret_typ="value", axis=1) * 2
cast: x.astype("float64").astype("float32") * p
cast to integers: x.astype("int32").astype("float32") * p
BlockGrad: nd.BlockGrad(x) * x
make_loss: nd.make_loss(x * p)
MakeLoss: nd.MakeLoss(x * p, grad_scale=3.0)
SoftmaxOutput: nd.SoftmaxOutput(x, nd.array([0, 2]))
LinearRegressionOutput: nd.LinearRegressionOutput(x, p)
LogisticRegressionOutput: nd.LogisticRegressionOutput(x, p)
MAERegressionOutput: nd.MAERegressionOutput(x, p)
softmax_cross_entropy: nd.softmax_cross_entropy(x, nd.array([0, 2]))
LayerNorm: nd.LayerNorm(x, p[0], p[1]) * p
BatchNorm: nd.BatchNorm(x, p[0], x[1], nd.zeros(3), nd.ones(3), fix_gamma=False) * p
L2Normalization: nd.L2Normalization(x) * p
InstanceNorm: nd.InstanceNorm(x.reshape((1, 2, 3)), p[0, :2], p[1, :2])
Pooling: nd.Pooling(x.reshape((1, 1, 2, 3)), kernel=(2, 2), pool_type="max") * 2
average pooling: nd.Pooling(x.reshape((1, 1, 2, 3)), kernel=(2, 2), pool_type="avg") * 2
Convolution: nd.Convolution(x.reshape((1, 1, 2, 3)), p.reshape((1, 1, 2, 3)), kernel=(2, 3), num_filter=1, no_bias=True)
pad: nd.pad(x.reshape((1, 1, 2, 3)), mode="edge", pad_width=(0, 0, 0, 0, 1, 1, 1, 1)) * 2
cumsum: nd.cumsum(x, axis=1) * p
diag: nd.diag(x) * 2
linalg gemm2: nd.linalg.gemm2(x, p, transpose_b=True)
linalg potrf: nd.linalg.potrf(nd.dot(p, p.T) + nd.array([[1, 0], [0, 1]]))
sequence mask: nd.SequenceMask(x.expand_dims(2), nd.array([1, 2, 1]), use_sequence_length=True)
detach: x.detach() * x
copy: x.copy() * p
copyto: x.copyto(nd.zeros((2, 3))) * p
as_in_context: x.as_in_context(x.context) * p
zeros_like: nd.zeros_like(x) + x
identity: nd.identity(x) * nd.identity(x)
""".strip().splitlines()
EXPRESSIONS = {line.partition(": ")[0]: line.partition(": ")[2] for line in _LINES}
