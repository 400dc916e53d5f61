"""Record what optimizers of real MXNet 1.9.1 do with row_sparse gradients.

Run it with the oracle's interpreter::

    .venv-oracle/bin/python -m tests.oracle.record_sparse_optimizers

Writes ``tests/golden/sparse_optimizers.json``: for each case of `tests/sparse_optimizer_cases.py` the weight after the
steps, or "raises".
"""

from __future__ import annotations

import sys
from typing import Any

from tests.oracle.recorder import mx, write
from tests.sparse_optimizer_cases import case_id, cases, trained


def main() -> None:
    found: dict[str, Any] = {}
    for case in cases():
        try:
            found[case_id(case)] = trained(mx, case)
        except Exception as e:  # whatever MXNet raises is what is recorded
            print(case_id(case), str(e).splitlines()[0], file=sys.stderr)
            found[case_id(case)] = "raises"
    write("sparse_optimizers", found)


if __name__ == "__main__":
    main()
