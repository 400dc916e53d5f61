"""`mx.contrib.text`, `mx.contrib.tensorboard`, `mx.contrib.io`."""

from __future__ import annotations

import logging
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symjax as mx
from symjax.contrib import text

FILE = "<unk> 9 9\nhello 1 2\nworld 3 4\nhello 7 7\nagain 5 6\n"


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    path = tmp_path / "vectors.txt"
    path.write_text(FILE)
    return str(path)


def _load(path: str, **kwargs: Any) -> Any:
    with pytest.warns(UserWarning, match="line 4 .*token hello.*duplicate"):
        return text.embedding.CustomEmbedding(path, **kwargs)


def test_counting_and_vocabularies() -> None:
    counter = text.utils.count_tokens_from_str("a b b c c c <unk> d\nA a", to_lower=True)
    assert counter == Counter(a=3, c=3, b=2, d=1, **{"<unk>": 1})
    assert text.utils.count_tokens_from_str("x-y;x", "-", ";", counter_to_update=Counter(x=1)) == Counter(x=3, y=1)
    v = text.vocab.Vocabulary(counter, most_freq_count=3, reserved_tokens=["<pad>", "c"])
    assert v.idx_to_token == ["<unk>", "<pad>", "c", "a", "b", "d"] and len(v) == 6  # as MXNet has it
    assert v.to_indices(["c", "zz"]) == [2, 0] and v.to_indices("a") == 3
    assert v.to_tokens([1, 2]) == ["<pad>", "c"] and v.to_tokens(3) == "a"
    assert text.vocab.Vocabulary(counter, most_freq_count=2, min_freq=2).idx_to_token == ["<unk>", "a", "c"]
    assert (v.unknown_token, v.reserved_tokens) == ("<unk>", ["<pad>", "c"])
    with pytest.raises(ValueError, match="Token index 99 in"):
        v.to_tokens(99)
    for wrong in ({"min_freq": 0}, {"reserved_tokens": ["a", "a"]}, {"reserved_tokens": ["<unk>"]},
                  {"counter": {"a": 1}}):  # fmt: skip
        with pytest.raises(AssertionError):
            text.vocab.Vocabulary(**wrong)  # type: ignore[arg-type]


def test_vectors_of_a_file(vectors: str) -> None:
    e = _load(vectors)
    assert e.idx_to_token == ["<unk>", "hello", "world", "again"] and e.vec_len == 2
    assert e.idx_to_vec.asnumpy().tolist() == [[9, 9], [1, 2], [3, 4], [5, 6]]
    assert e.get_vecs_by_tokens("World").asnumpy().tolist() == [9, 9]
    assert e.get_vecs_by_tokens(["World", "again"], lower_case_backup=True).asnumpy().tolist() == [[3, 4], [5, 6]]
    e.update_token_vectors(["hello", "<unk>"], mx.nd.array([[0, 1], [2, 3]]))
    e.update_token_vectors("world", mx.nd.array([8, 8]))
    assert e.idx_to_vec.asnumpy()[:3].tolist() == [[2, 3], [0, 1], [8, 8]]
    with pytest.raises(ValueError, match="Token nobody is unknown"):
        e.update_token_vectors("nobody", mx.nd.array([8, 8]))
    with pytest.raises(AssertionError):
        e.update_token_vectors(["hello", "world"], mx.nd.array([8, 8]))


def test_vectors_for_a_vocabulary(vectors: str) -> None:
    v = text.vocab.Vocabulary(Counter(["again", "again", "never"]))
    e = _load(vectors, vocabulary=v)
    assert e.to_indices(["again", "never", "hello"]) == [1, 2, 0]
    assert e.idx_to_vec.asnumpy().tolist() == [[9, 9], [5, 6], [9, 9]]
    both = text.embedding.CompositeEmbedding(v, [e, _load(vectors)])
    assert both.vec_len == 4 and both.idx_to_vec.asnumpy()[1].tolist() == [5, 6, 5, 6]
    reserved = _load(vectors, reserved_tokens=["<pad>", "world"])
    assert reserved.get_vecs_by_tokens(["<pad>", "world", "again"]).asnumpy().tolist() == [[0, 0], [3, 4], [5, 6]]


def test_wrong_files(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    cases: list[tuple[str, type[Exception], str]] = [
        ("a 1 2\nb 1 2 3\n", AssertionError, "line 2 .* dimension of token b is 3"),
        ("a\n", AssertionError, "data format is unexpected"),
        ("a 1 b\n", ValueError, "line 1"),
        ("", ValueError, "holds no vectors"),
    ]
    for content, kind, message in cases:
        path.write_text(content)
        with pytest.raises(kind, match=message):
            text.embedding.CustomEmbedding(str(path))
    path.write_text("2 100\na 1 2\n")
    with pytest.warns(UserWarning, match="likely a header"):
        ones = text.embedding.CustomEmbedding(str(path), init_unknown_vec=mx.nd.ones)
    assert ones.idx_to_vec.asnumpy().tolist() == [[1, 1], [1, 2]]
    with pytest.raises(ValueError, match="there is no file"):
        text.embedding.CustomEmbedding(str(tmp_path / "none"))
    with pytest.raises(mx.MXNetError, match=r"GloVe is not fetched .* glove.6B.50d.txt at .*glove"):
        text.embedding.create("glove", pretrained_file_name="glove.6B.50d.txt", embedding_root=str(tmp_path))
    (tmp_path / "glove").mkdir()
    (tmp_path / "glove" / "glove.6B.50d.txt").write_text("a 1 2\n")
    assert text.embedding.GloVe("glove.6B.50d.txt", str(tmp_path)).idx_to_token == ["<unk>", "a"]
    assert "glove.6B.50d.txt" in text.embedding.get_pretrained_file_names("glove")
    with pytest.raises(KeyError, match="fasttext"):
        text.embedding.get_pretrained_file_names("word2vec")


def test_metrics_for_tensorboard(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    written: list[Any] = []

    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            written.append(folder)

        def add_scalar(self, name: str, value: float, global_step: int) -> None:
            written.append((name, value, global_step))

    board = types.ModuleType("mxboard")
    board.SummaryWriter = SummaryWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mxboard", board)
    metric = mx.metric.create(["acc", "mse"])
    metric.update([mx.nd.array([0, 1])], [mx.nd.array([[1, 0], [0, 1]])])
    log = mx.contrib.tensorboard.LogMetricsCallback("logs", prefix="train")
    log(types.SimpleNamespace(epoch=3, eval_metric=metric))
    log(types.SimpleNamespace(epoch=4, eval_metric=None))
    assert written == ["logs", ("train-accuracy", 1.0, 3), ("train-mse", 0.5, 3)]
    for name in ("mxboard", "tensorboardX", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    with caplog.at_level(logging.ERROR):
        mx.contrib.tensorboard.LogMetricsCallback("logs")(types.SimpleNamespace(epoch=3, eval_metric=metric))
    assert "Nothing is written" in caplog.text


def test_loader_as_iterator() -> None:
    rows = np.arange(10).reshape(5, 2)
    for make in (np.asarray, mx.nd.array):
        loader = [(make(rows[i : i + 2]), make(rows[i : i + 2, 0])) for i in (0, 2, 4)]
        it = mx.contrib.io.DataLoaderIter(loader)
        assert (it.batch_size, it.provide_data[0].shape, it.provide_label[0].name) == (2, (2, 2), "softmax_label")
        for _ in range(2):
            batches = list(it)
            assert [b.pad for b in batches] == [0, 0, 1]
            assert batches[2].data[0].asnumpy().tolist() == [[8, 9], [0, 0]]
            assert batches[1].label[0].asnumpy().tolist() == [4, 6] and batches[1].label[0].dtype == np.float32
            it.reset()
