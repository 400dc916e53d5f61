"""What `symjax ops` tells of an operator beyond its declaration, and the page of all operators in Markdown.

The registry says what an operator is; `ops_record.json` what was found out about it: parity cases with MXNet and their
differences, platforms, gradient. `make docs-ops` renews the record and docs/operators.md.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PLATFORMS = {"host": "the host (Python beside the device); cannot be exported",
             "unknown": "not tried: there is no parity case",
             "by steps": "all, outside of a compiled function: the result's shape depends on values"}  # fmt: skip


@functools.cache
def recorded() -> dict[str, Any]:
    """The record: MXNet's operators with their aliases ("mxnet"), and facts by operator ("ops")."""
    return json.loads(Path(__file__).with_name("ops_record.json").read_text(encoding="utf-8"))


def own_ops() -> list[Any]:
    """The package's operators: none that the user registered."""
    from symjax.lowering import registry

    return [o for o in registry.all_ops() if (o.rule.__module__ or "").startswith("symjax.")]


def coverage() -> str:
    """How many of MXNet's operators are here, and whether under all their names."""
    from symjax.lowering import registry

    theirs = recorded()["mxnet"]
    here = [n for n in theirs if registry.find(n) is not None]
    lacking = sorted({a for n in here for a in theirs[n] if registry.find(a) is not registry.find(n)})
    aliases = f"without the aliases {', '.join(lacking)}" if lacking else "every alias"
    return f"{len(here)} of {len(theirs)} operators of MXNet 1.9.1, {aliases}"


def facts(op: Any) -> dict[str, Any]:
    """Shapes, data types, storage types, gradient, platforms, parity with MXNet and habits, as JSON data."""
    from symjax.lowering.habits import all_habits

    known = recorded()["ops"].get(op.name, {}) if (op.rule.__module__ or "").startswith("symjax.") else {}
    parity = {"cases": known.get("cases", 0), "of_random_numbers": known.get("random", 0),
              "where_mxnet_fails": known.get("better", 0), "dtypes": known.get("types", []),
              "differences": known.get("differs", []), "instead_of_cases": known.get("elsewhere")}  # fmt: skip
    habits = [{"mxnet": h.text, "symjax": h.instead} for h in all_habits() if op.name in h.ops]
    return {"shapes": shape_rule(op), "dtypes": dtype_rule(op), "storage": known.get("storage", []),
            "gradient": known.get("gradient"), "platforms": known.get("platforms"), "parity": parity,
            "exact_mxnet": habits}  # fmt: skip


def shape_rule(op: Any) -> str:
    """How the shapes of inputs and outputs are connected."""
    if op.eager:
        return "the output's shape depends on the values of the inputs"
    if op.shape == "same":
        return "all inputs and outputs have one shape"
    if op.shape == "broadcast":
        return "the output's shape is the broadcast of the inputs'"
    if op.infer_inputs is not None:
        return "the outputs' follow from the inputs'; unknown ones of inputs follow from the others and the parameters"
    return "the outputs' follow from the inputs'" if op.all_inputs else "the outputs' follow from the parameters"


def dtype_rule(op: Any) -> str:
    """How the data types of inputs and outputs are connected."""
    from symjax.lowering.registry import first_input_dtype

    if op.infer_types is None:
        return "one type for all inputs and outputs"
    if op.infer_types is first_input_dtype:
        return "the outputs have the type of the first input; the other inputs may have any"
    if "dtype" in op.params.__specs__:
        return "the parameter `dtype` chooses the outputs'" + _of_float32(op, "; without it ")
    return "a rule of its own" + _of_float32(op, ": ")


def _of_float32(op: Any, before: str) -> str:
    """What float32 inputs give; nothing where the parameters have to be known for that."""
    try:
        params = op.params()
        n, outs = len(op.input_names(params)), [None] * len(op.output_names(params))
        ins, got = op.infer_types(params, ["float32"] * n, outs)
    except Exception:  # parameters or subgraphs decide
        return ""
    if not got or None in got or list(ins) != ["float32"] * n:
        return ""
    return f"{before}{'float32 inputs give ' if n else ''}{', '.join(map(str, got))}"


def lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts of one operator as (title, text)."""
    yield "Shapes", found["shapes"]
    yield "Data types", found["dtypes"]
    if found["storage"]:
        yield "Sparse inputs", "; ".join(found["storage"])
    if found["gradient"] is not None:
        yield "Gradient", found["gradient"]
    if found["platforms"] is not None:
        where = found["platforms"]
        yield "Runs on", PLATFORMS[where] if isinstance(where, str) else ", ".join(where) or "none"
    yield "Parity with MXNet", parity_line(found["parity"])
    for d in found["parity"]["differences"]:
        yield "Difference", d
    for h in found["exact_mxnet"]:
        yield "With exact_mxnet", f"{h['mxnet']} Otherwise: {h['symjax']}"


def parity_line(parity: dict[str, Any]) -> str:
    """The parity cases in words."""
    if not parity["cases"]:
        return f"no cases: {parity['instead_of_cases']}" if parity["instead_of_cases"] else "no cases"
    parts = [f"{parity['cases']} recorded case{'s' * (parity['cases'] > 1)} ({', '.join(parity['dtypes'])})"]
    if parity["of_random_numbers"]:
        parts.append(f"{parity['of_random_numbers']} of random numbers, of which shapes and types are compared")
    if parity["where_mxnet_fails"]:
        parts.append(f"in {parity['where_mxnet_fails']} MXNet fails")
    return "; ".join(parts)


# ---- the page


def markdown() -> str:
    """docs/operators.md."""
    ops = own_ops()
    families = _families(ops)
    others = [o for o in ops if o.name not in recorded()["mxnet"]]
    parts = ["# Operators", "", "<!-- Generated by `make docs-ops`: do not edit. -->", "",
             f"{coverage()}; {len(others)} more of its plug-ins and forks, old files and symjax itself. "
             "`symjax ops NAME` shows one of them, `symjax ops --format json` all.", "",
             *_habits(), "## Index", ""]  # fmt: skip
    for title, group in families.items():
        links = " · ".join(f"[{o.name}](#op-{o.name})" for o in group)
        parts += [f"**{title}** {links}", ""]
    parts += ["## Reference", ""]
    for title, group in families.items():
        parts += [f"### {title}", ""]
        for op in group:
            parts += _section(op)
    return "\n".join(parts).rstrip() + "\n"


def _families(ops: list[Any]) -> dict[str, list[Any]]:
    """Operators by the module that has them, under its title."""
    found: dict[str, list[Any]] = {}
    for op in sorted(ops, key=lambda o: (_home(o), o.name)):
        module = importlib.import_module(_home(op))
        title = inspect.cleandoc(module.__doc__ or op.name).split("\n\n")[0].replace("\n", " ")
        found.setdefault(_escaped(title.split(". ")[0].rstrip(".:") + "."), []).append(op)
    return found


def _home(op: Any) -> str:
    """The module of an operator's declaration: its rule may have been made by another one's function."""
    stem = Path(op.source.rpartition(":")[0]).stem
    name = f"symjax.lowering.ops.{stem}"
    return name if not stem.startswith("_") and importlib.util.find_spec(name) else op.rule.__module__


def _habits() -> list[str]:
    from symjax.lowering.habits import all_habits

    rows = [f"| {', '.join(f'[{n}](#op-{n})' for n in h.ops)} | {_cell(h.text)} | {_cell(h.instead)} |"
            for h in all_habits()]  # fmt: skip
    return ["## Where symjax does better, and how to have MXNet's results", "",
            "symjax computes what MXNet documents, or what the mathematics says. Where MXNet does something else and "
            "models may depend on it, `symjax.config(exact_mxnet=True)` (for a block, or "
            "`symjax.config.update(exact_mxnet=True)`) brings it back. Graphs and calls that were compiled before are "
            "compiled anew. Sums of float16 are always float32 sums, and gradients that MXNet leaves out, crashes on "
            "or does not write are always there: nothing can depend on those.", "",
            "| operator | MXNet, and symjax with exact_mxnet | symjax otherwise |", "| --- | --- | --- |", *rows,
            ""]  # fmt: skip


def _section(op: Any) -> list[str]:
    from symjax._op_functions import inputs_of

    ins = inputs_of(op)
    inputs = f"`*{ins.variadic}`" if ins.variadic else ", ".join(f"`{n}`" for n in ins.names) or "none"
    out = [f'#### <a id="op-{op.name}"></a>{_escaped(op.name)}', ""]
    if op.origin:
        out += [f"*Not an operator of MXNet 1.9.1: it is {op.origin}'s.*", ""]
    out += [_escaped(op.doc), ""]
    if op.aliases:
        out.append(f"- **Aliases**: {', '.join(f'`{a}`' for a in op.aliases)}")
    out.append(f"- **Inputs**: {inputs}")
    out += [f"- **{title}**: {_escaped(text)}" for title, text in lines(facts(op))]
    return [*out, "", *_parameters(op)]


def _parameters(op: Any) -> list[str]:
    from symjax.lowering.params import to_text, type_name

    if not op.params.__specs__:
        return []
    rows = [f"| `{n}` | {_cell(type_name(s.type))} | {'required' if s.required else _code(to_text(s.default))} | "
            f"{_cell(s.field.doc)} |" for n, s in op.params.__specs__.items()]  # fmt: skip
    return ["| parameter | type | default | |", "| --- | --- | --- | --- |", *rows, ""]


def _code(text: str) -> str:
    return f"`{text}`" if text else "empty"


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|").replace("\n", " ")


def _escaped(text: str) -> str:
    """Text as Markdown shows it: no emphasis, no tags, except what stands in back quotes."""
    pieces = text.split("`")
    for i in range(0, len(pieces), 2):
        for c in "*_<":
            pieces[i] = pieces[i].replace(c, "\\" + c)
    return "`".join(pieces)
