"""Training through Module, under symjax and real MXNet alike: an epoch or so of `fit`, and the input pipeline."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]
TRAINING: dict[str, Callable[[Any], Step]] = {}


def training(make: Callable[[Any], Step]) -> Callable[[Any], Step]:
    TRAINING[make.__name__] = make
    return make


def _fit(mx: Any, module: Any, data: Any, metric: Any, **options: Any) -> Step:
    def step() -> None:
        module.fit(data, eval_metric=metric, initializer=mx.init.Xavier(), num_epoch=1, **options)
        mx.nd.waitall()

    return step


@training
def fit_mlp(mx: Any) -> Step:
    """`Module.fit` of a 784-128-64-10 MLP by SGD with momentum: 100 batches of 64 from a NDArrayIter, accuracy."""
    x = mx.sym.Variable("data")
    for i, hidden in enumerate((128, 64)):
        x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=hidden, name=f"fc{i}"), act_type="relu")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=10, name="out"), name="softmax")
    rng = np.random.RandomState(0)
    data = mx.io.NDArrayIter(rng.rand(6400, 784).astype("float32"), rng.randint(0, 10, 6400).astype("float32"), 64)
    options = {"learning_rate": 0.1, "momentum": 0.9}
    return _fit(mx, mx.mod.Module(net), data, "acc", optimizer="sgd", optimizer_params=options)


def _language_model(mx: Any, length: int, vocabulary: int, hidden: int) -> Any:
    cell = mx.rnn.FusedRNNCell(hidden, num_layers=2, mode="lstm", prefix="lstm_")
    x = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=vocabulary, output_dim=hidden, name="embed")
    x, _ = cell.unroll(length, inputs=x, merge_outputs=True, layout="TNC")
    x = mx.sym.FullyConnected(mx.sym.Reshape(x, shape=(-1, hidden)), num_hidden=vocabulary, name="pred")
    label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
    return mx.sym.SoftmaxOutput(x, label, name="softmax", normalization="valid", use_ignore=True, ignore_label=0)


@training
def lstm_language_model(mx: Any) -> Step:
    """Three steps of a language model: 2 LSTM layers of 200, 10,000 words, 35 steps, batch 32."""
    module = mx.mod.Module(_language_model(mx, 35, 10_000, 200))
    module.bind([("data", (35, 32))], [("softmax_label", (35, 32))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1})
    rng = np.random.RandomState(0)
    draw = [mx.nd.array(rng.randint(1, 10_000, (35, 32))) for _ in range(2)]
    batch = mx.io.DataBatch(draw[:1], draw[1:])

    def step() -> None:
        for _ in range(3):
            module.forward_backward(batch)
            module.update()
        module.get_outputs()[0].wait_to_read()
        mx.nd.waitall()

    return step


@training
def fit_buckets(mx: Any) -> Step:
    """`BucketingModule.fit` of a model of characters: buckets of 16, 32, 48, 2 LSTM layers of 128, 30 batches of 32."""
    rng = np.random.RandomState(0)
    sentences = [list(rng.randint(1, 60, n)) for n in rng.randint(8, 48, 960)]
    data = mx.rnn.BucketSentenceIter(sentences, 32, buckets=[16, 32, 48], invalid_label=0, layout="TN")

    def generate(length: int) -> Any:
        return _language_model(mx, length, 60, 128), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(generate, default_bucket_key=48)
    return _fit(mx, module, data, "ce", optimizer="adam", optimizer_params={"learning_rate": 0.01})


@training
def fit_bucket_cells(mx: Any) -> Step:
    """As MXNet's example of bucketing: 2 `LSTMCell`s of 200 unrolled, 10,000 words, buckets of 10, 20, 30."""
    rng = np.random.RandomState(0)
    sentences = [list(rng.randint(1, 10_000, n)) for n in rng.randint(5, 30, 320)]
    data = mx.rnn.BucketSentenceIter(sentences, 32, buckets=[10, 20, 30], invalid_label=0)
    stack = mx.rnn.SequentialRNNCell()
    for i in range(2):
        stack.add(mx.rnn.LSTMCell(num_hidden=200, prefix=f"lstm_l{i}_"))

    def generate(length: int) -> Any:
        x = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=10_000, output_dim=200, name="embed")
        stack.reset()
        x, _ = stack.unroll(length, inputs=x, merge_outputs=True)
        x = mx.sym.FullyConnected(mx.sym.Reshape(x, shape=(-1, 200)), num_hidden=10_000, name="pred")
        label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
        return mx.sym.SoftmaxOutput(x, label, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(generate, default_bucket_key=30)
    return _fit(mx, module, data, mx.metric.Perplexity(0), optimizer="sgd", optimizer_params={"learning_rate": 0.01})


def records(count: int = 512) -> str:
    """A record file of JPEGs of 256 x 256 pixels."""
    path = os.path.join(tempfile.gettempdir(), f"symjax-bench-{count}.rec")
    if not os.path.exists(path):
        import cv2

        import symjax as mx

        rng = np.random.RandomState(0)
        part = mx.recordio.MXRecordIO(path + ".part", "w")
        for i in range(count):
            image = cv2.resize(rng.randint(0, 255, (32, 32, 3), np.uint8), (256, 256), interpolation=cv2.INTER_CUBIC)
            part.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, i % 10, i, 0), image, quality=90))
        part.close()
        os.replace(path + ".part", path)
    return path


@training
def image_records(mx: Any) -> Step:
    """An epoch of `ImageRecordIter`: 512 JPEGs of 256 x 256, random crops of 224 x 224, mirrored, two threads."""
    data = mx.io.ImageRecordIter(path_imgrec=records(), data_shape=(3, 224, 224), batch_size=32, rand_crop=True,
                                 rand_mirror=True, preprocess_threads=2, mean_r=123.7, mean_g=116.8, mean_b=103.9)

    def step() -> None:
        data.reset()
        for batch in data:
            batch.data[0].wait_to_read()

    return step
