"""Run the fuzzers for a while and say what they found.

    python -m tests.fuzz.run --seconds 60                    # every target
    python -m tests.fuzz.run --seconds 600 --target params --corpus /tmp/params --save

Each target is a process of its own, with an address-space limit, so that memory set aside for a claimed size counts as
a finding. Exit status 1 if anything was found; the inputs are kept under `--findings`, and
`python -m tests.fuzz.fuzz_params FILE` runs one of them again.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGETS = ("params", "json")
SEEDS = {"params": [HERE.parent / "golden" / "params"], "json": []}
UNIT_SECONDS = 20
SAVED_BYTES = 400
UNIT_BYTES = {"params": 2048, "json": 8192}


def main() -> None:
    """Entry point: parses the command line, runs the targets, exits with 0, 1 (found something) or 2 (cannot run)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="time for each target")
    parser.add_argument("--target", choices=TARGETS, action="append", help="default: all of them")
    parser.add_argument("--corpus", type=Path, help="where to keep new inputs between runs (default: nowhere)")
    parser.add_argument("--save", action="store_true", help="add small new inputs to the repository")
    parser.add_argument("--findings", type=Path, default=Path("out/fuzz"), help="where inputs that fail go")
    options = parser.parse_args()
    options.findings = options.findings.resolve()  # the targets run in the repository, whatever folder this is
    if importlib.util.find_spec("atheris") is None:
        print("fuzzing needs atheris: pip install --group fuzz (Linux only)", file=sys.stderr)
        sys.exit(2)
    results = [fuzz(target, options) for target in options.target or TARGETS]
    sys.exit(0 if all(results) else 1)


def fuzz(target: str, options: argparse.Namespace) -> bool:
    """Fuzzes one target; True if nothing was found."""
    options.findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        corpus = options.corpus.resolve() / target if options.corpus else Path(scratch)
        corpus.mkdir(parents=True, exist_ok=True)
        committed = [HERE / "corpus" / target, *SEEDS[target]]
        flags = [
            f"-max_total_time={options.seconds}",
            f"-max_len={UNIT_BYTES[target]}",
            f"-timeout={UNIT_SECONDS}",
            f"-artifact_prefix={options.findings / target}-",
            "-print_final_stats=1",
            "-rss_limit_mb=4096",
        ]
        code, log = run(target, [*flags, str(corpus), *map(str, committed)])
        if options.save and code == 0:
            save(corpus, committed[0])
    executed = re.search(r"stat::number_of_executed_units: *(\d+)", log)
    print(
        f"fuzz {target}: {executed[1] if executed else 'unknown number of'} executions in {options.seconds} s, ", end=""
    )
    print("nothing found" if code == 0 else f"FAILED (exit status {code}), inputs in {options.findings}")
    if code:
        print(log[-8000:], file=sys.stderr)
    return code == 0


def save(corpus: Path, committed: Path) -> None:
    """Copies new inputs into the repository, small ones only: libFuzzer kept each for something that it reaches."""
    for path in corpus.iterdir():
        if path.stat().st_size <= SAVED_BYTES:
            shutil.copyfile(path, committed / path.name)


def run(target: str, arguments: list[str]) -> tuple[int, str]:
    """Runs the harness of a target; returns its exit status and what it printed."""
    command = [sys.executable, "-m", f"tests.fuzz.fuzz_{target}", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    return done.returncode, done.stdout


if __name__ == "__main__":
    main()
