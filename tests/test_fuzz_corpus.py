"""The fuzzers' committed inputs, without the fuzzer: what once was hard stays handled."""

from __future__ import annotations

from pathlib import Path

import pytest

import symjax as mx
from symjax.lowering.errors import GraphFormatError, ParamsFormatError
from symjax.serialization import read_params

CORPUS = Path(__file__).parent / "fuzz" / "corpus"


def corpus(target: str) -> list[Path]:
    files = sorted((CORPUS / target).iterdir())
    assert files
    return files


def test_params() -> None:
    readable = 0
    for path in corpus("params"):
        try:
            records, names = read_params(path)
        except ParamsFormatError:
            continue
        assert len(names) in (0, len(records)), path.name
        readable += 1
    assert readable


@pytest.mark.filterwarnings("ignore:.*newer than 1.9.1")
@pytest.mark.parametrize("path", corpus("json"), ids=lambda path: path.stem)
def test_json(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.stem.startswith("broken"):
        with pytest.raises(GraphFormatError):
            mx.sym.load_json(text)
    else:
        symbol = mx.sym.load_json(text)
        assert mx.sym.load_json(symbol.tojson()).list_outputs() == symbol.list_outputs()
