"""The direction of imports: lowering core <- ops, sparse <- compiler <- face <- cli."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ("errors", "params", "registry", "graph")
CLI = ("symjax.cli", "symjax.__main__")


def module_name(path: Path) -> str:
    """`lowering/ops/nn.py` is symjax.lowering.ops.nn, `symjax/io/__init__.py` is symjax.io."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] in ("symjax", "tests") else ("symjax", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """(module name, text) of every module below the folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield module_name(path), path.read_text()


def imports(text: str, *, at_import: bool = False) -> Iterator[tuple[int, str]]:
    """(line, module) for each import of a text; a relative one starts with a dot.

    `from a import b` gives `a` and `a.b`, for b may be a module. With `at_import`, only what runs when the module is
    imported: neither the bodies of functions nor what `if TYPE_CHECKING:` guards.
    """
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield node.lineno, base
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_call(node):
            yield node.lineno, node.args[0].value  # type: ignore[attr-defined]  # a constant, see _is_import_call
        if at_import and (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _is_typing_only(node)
        ):
            continue
        waiting.extend(ast.iter_child_nodes(node))


def _is_import_call(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0] if node.args else None
    literal = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return literal and name in ("import_module", "__import__")


def _is_typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def within(name: str, *packages: str) -> bool:
    return any(name == p or name.startswith(p + ".") for p in packages)


def inner_faults(module: str, text: str) -> list[str]:
    """What a module of lowering or sparse imports that it must not."""
    faults = []
    for line, name in imports(text):
        if name.startswith("."):
            faults.append(f"{module}:{line} relative import {name}")
        elif within(name, "lowering", "sparse"):
            faults.append(f"{module}:{line} {name} must be symjax.{name}")
        elif within(name, "symjax") and not within(name, "symjax.lowering", "symjax.sparse"):
            faults.append(f"{module}:{line} imports the face: {name}")
    return faults


def core_faults(module: str, text: str) -> list[str]:
    """What a core module imports, when it is itself imported, from the layers above it."""
    allowed = ("symjax.lowering", *(f"symjax.lowering.{c}" for c in CORE))
    return [
        f"{module}:{line} {name} is above the core"
        for line, name in imports(text, at_import=True)
        if within(name, "symjax") and name != allowed[0] and not within(name, *allowed[1:])
    ]


@pytest.mark.parametrize("folder", ["lowering", "sparse"])
def test_inner_packages_never_import_the_face(folder: str) -> None:
    found = list(sources(folder))
    assert found
    assert [f for module, text in found for f in inner_faults(module, text)] == []


def test_core_imports_only_the_core() -> None:
    core = [(m, t) for m, t in sources("lowering") if m in {f"symjax.lowering.{c}" for c in CORE}]
    assert len(core) >= 3
    assert [f for module, text in core for f in core_faults(module, text)] == []


def test_nothing_but_the_command_line_imports_it() -> None:
    others = [(m, t) for m, t in sources("symjax", "lowering", "sparse") if not within(m, *CLI)]
    assert [f"{m}:{line}" for m, t in others for line, name in imports(t) if within(name, *CLI)] == []


def test_only_public_jax_is_used() -> None:
    assert [n for _, n in imports("from jax._src import core")] == ["jax._src", "jax._src.core"]
    found = sources("symjax", "lowering", "sparse", "tests")
    assert [f"{m}:{line} {n}" for m, t in found for line, n in imports(t) if within(n, "jax._src")] == []


@pytest.mark.parametrize(
    "line",
    [
        "import symjax",
        "from symjax import nd",
        "from symjax.ndarray import NDArray",
        "def f():\n    import symjax.base",
        "import importlib\nimportlib.import_module('symjax.context')",
        "from . import registry",
        "from .registry import op",
        "from lowering.registry import op",
        "import sparse",
    ],
)
def test_a_wrong_import_is_found(line: str) -> None:
    assert inner_faults("symjax.lowering.x", line)


@pytest.mark.parametrize(
    "line",
    [
        "import jax",
        "from symjax.lowering.registry import op",
        "from symjax.lowering import registry",
        "import symjax.sparse",
        "import symjaxtools, sparsely",
    ],
)
def test_a_right_import_is_let_through(line: str) -> None:
    assert inner_faults("symjax.lowering.x", line) == []


def test_the_core_may_reach_up_only_when_called() -> None:
    assert core_faults("symjax.lowering.registry", "from symjax.lowering.ops import nn")
    assert core_faults("symjax.lowering.registry", "class A:\n    from symjax.sparse import csr")
    assert core_faults("symjax.lowering.registry", "def f():\n    import symjax.lowering.ops") == []
    assert core_faults("symjax.lowering.registry", "if TYPE_CHECKING:\n    from symjax.lowering.trace import run") == []
