"""A libFuzzer mutator that knows JSON: it changes values of a parsed symbol file, so that most inputs stay JSON."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from tests.fuzz.harness import atheris

WORDS = json.loads(Path(__file__).with_name("json_words.json").read_text(encoding="utf-8"))
OPS, KEYS = WORDS["ops"], WORDS["keys"]
TEXTS = [*WORDS["texts"], "1" * 5000, "(" * 3000]
NUMBERS = (0, 1, 2, 3, 5, 7, -1, 10301, 10901, 20000, 2**31, 2**63, 10**30, 1.5, 1e300)


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """Returns a changed copy of a symbol file, never longer than `max_size`."""
    rng = random.Random(seed)
    if rng.random() < 0.15:
        return atheris.Mutate(data, max_size)
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return atheris.Mutate(data, max_size)
    for _ in range(rng.randint(1, 3)):
        change(tree, rng)
    changed = json.dumps(tree).encode("utf-8", "replace")
    return changed if len(changed) <= max_size else atheris.Mutate(data, max_size)


def change(tree: Any, rng: random.Random) -> None:
    """Changes one container of the tree in place."""
    inside = list(containers(tree))
    if not inside:
        return
    node = rng.choice(inside)
    if isinstance(node, dict):
        change_dict(node, rng)
    else:
        change_list(node, rng)


def containers(tree: Any) -> list[Any]:
    found, pending = [], [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
        else:
            continue
        found.append(value)
    return found


def change_dict(node: dict[str, Any], rng: random.Random) -> None:
    key = rng.choice(list(node) or [rng.choice(KEYS)])
    kind = rng.randrange(5)
    if kind == 0:
        node.pop(key, None)
    elif kind == 1:
        node[rng.choice(KEYS)] = node.pop(key, value(rng))
    elif kind == 2:
        node[rng.choice(KEYS)] = value(rng)
    elif "op" in node and kind == 3:
        node["op"] = rng.choice(OPS)
    else:
        node[key] = near(node.get(key), rng)


def change_list(node: list[Any], rng: random.Random) -> None:
    kind = rng.randrange(4)
    if not node or kind == 0:
        node.insert(rng.randint(0, len(node)), json.loads(json.dumps(rng.choice(node))) if node else value(rng))
        return
    at = rng.randrange(len(node))
    if kind == 1:
        del node[at]
    elif kind == 2:
        other = rng.randrange(len(node))
        node[at], node[other] = node[other], node[at]
    else:
        node[at] = near(node[at], rng)


def near(old: Any, rng: random.Random) -> Any:
    """A value of the same kind mostly."""
    if isinstance(old, bool) or old is None or rng.random() < 0.2:
        return value(rng)
    if isinstance(old, int):
        return old + rng.choice((-2, -1, 1, 2, 1000)) if rng.random() < 0.7 else rng.choice(NUMBERS)
    if isinstance(old, str):
        return rng.choice(TEXTS)
    return value(rng)


def value(rng: random.Random) -> Any:
    return rng.choice(
        [None, True, [], {}, [[]], [0, 0, 0], [1, 0], rng.choice(NUMBERS), rng.choice(TEXTS), rng.choice(OPS)]
    )
