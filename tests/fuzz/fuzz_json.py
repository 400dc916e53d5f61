"""Fuzz target: symbol JSON.

Any text either loads, and then is written and loaded again, or raises an error of the `MXNetError` family.
"""

from __future__ import annotations

import logging
import warnings

from tests.fuzz.harness import atheris, fuzz
from tests.fuzz.json_mutator import mutate

with atheris.instrument_imports(include=["symjax"]):
    from symjax import symbol as symbols
    from symjax.lowering.errors import MXNetError

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")  # of a newer version in the file


def check(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        symbol = symbols.load_json(text)
    except MXNetError:
        return
    symbol.list_arguments()
    symbol.list_auxiliary_states()
    outputs = symbol.list_outputs()
    assert symbols.load_json(symbol.tojson()).list_outputs() == outputs


if __name__ == "__main__":
    fuzz(check, mutate)
