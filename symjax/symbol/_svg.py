"""A graph as static SVG: no script, no external file, light and dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from symjax.lowering.errors import MXNetError
from symjax.symbol._diagram import Box, Diagram, Known, Shapes, clip, diagram

if TYPE_CHECKING:
    from symjax.lowering.graph import Graph, Node
    from symjax.sparse.storage import Storage
    from symjax.symbol._layout import Layout, Point

MAX_BYTES = 200_000
_MAX_BOXES = 5_000
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
_TITLE, _SMALL = 12.0, 10.5
_WIDE = frozenset("MWmw@%…×")
_NARROW = frozenset("iljI.,:;'|!ft()[]/ ")
# characters that XML forbids, and those that turn the direction of writing
_FORBIDDEN = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)

# family: fill, line, dark fill, dark line
_COLOURS = {
    "linear": ("#dce9fb", "#3f78bf", "#1c3350", "#6aa3ea"),
    "norm": ("#e9e1f8", "#7d60c0", "#33284f", "#a98be8"),
    "activation": ("#fdecce", "#c58a1f", "#46361a", "#dca94a"),
    "pooling": ("#d9f1dd", "#3f9555", "#1d3d27", "#67bd7d"),
    "loss": ("#fbdfdd", "#cb524c", "#4b2425", "#e98580"),
    "shape": ("#e8ebef", "#7d8896", "#2b323b", "#8f9bab"),
    "recurrent": ("#fae0ef", "#bb5492", "#47233a", "#e087bd"),
    "detection": ("#efe4d6", "#97703f", "#3d3023", "#c19c6c"),
    "source": ("#eef2d0", "#8b9631", "#363a1a", "#b5c25b"),
    "math": ("#d6f0ee", "#31908b", "#193d3b", "#5cbdb7"),
    "input": ("#ffffff", "#24292f", "#0d1117", "#c9d1d9"),
    "output": ("#24292f", "#24292f", "#c9d1d9", "#c9d1d9"),
    "unknown": ("#ffffff", "#d1242f", "#0d1117", "#ff7b72"),
}


def render(graph: Graph, shapes: Shapes | None = None, *, fold: int = 200, parameters: bool = False) -> str:
    """Draws a graph as SVG.

    Args:
      graph: the graph.
      shapes: the shapes of each node's outputs, as `infer_shapes(...).values`. By default what follows from the shapes
        that variables declare, if any does.
      fold: a graph of more operators is drawn folded by name prefix, in at most a third as many boxes; 0 never folds.
      parameters: draw weights and auxiliary states as boxes of their own.

    Returns:
      The SVG text. Names are escaped. A folded graph is below 200 kB; what would be larger loses its tooltips first.
    """
    known = Known(_declared(graph) if shapes is None else shapes, _storage(graph))
    picture = diagram(graph, fold=fold, parameters=parameters)
    if len(picture.boxes) > _MAX_BOXES:
        picture = diagram(graph, fold=_MAX_BOXES, parameters=parameters)
    text = _draw(picture, known, tooltips=True)
    if len(text.encode()) > MAX_BYTES:
        text = _draw(picture, known, tooltips=False)
    return text


def _declared(graph: Graph) -> Shapes:
    """The shapes that follow from `__shape__`; none if no variable has it or they contradict each other."""
    from symjax.lowering.infer import infer_shapes

    if not any("__shape__" in v.attrs for v in graph.inputs):
        return {}
    try:
        return infer_shapes(graph, {}).values
    except MXNetError:
        return {}


def _storage(graph: Graph) -> Storage | None:
    """The storage types; None if nothing is sparse or they contradict each other."""
    from symjax.sparse.storage import infer_storage

    try:
        found = infer_storage(graph)
    except MXNetError:
        return None
    return None if found.is_dense else found


def _draw(picture: Diagram, known: Known, *, tooltips: bool) -> str:
    from symjax.symbol._layout import layout

    lines = [_lines(box, known) for box in picture.boxes]
    sizes = [_size(box, text) for box, text in zip(picture.boxes, lines, strict=True)]
    plan = layout(sizes, [(a, b) for a, b, _ in picture.edges])
    parts = [_edges(plan)]
    for box, text, size, center in zip(picture.boxes, lines, sizes, plan.centers, strict=True):
        parts.append(_box(box, text, size, center, _tooltip(box, known) if tooltips else ""))
    parts += _labels(picture, plan, known)
    width, height = _n(plan.width), _n(plan.height)
    used = {box.family for box in picture.boxes}
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sjx" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="Symbol graph">\n<style>{_style(used)}</style>\n'
        f'<rect class="bg" width="{width}" height="{height}" rx="6"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _style(used: set[str]) -> str:
    # An SVG inside a web page shares its style sheet with the page: every rule is kept below the class sjx.
    light, dark = [], []
    for family in sorted(used):
        fill, line, dark_fill, dark_line = _COLOURS[family]
        light.append(f".sjx .{family} rect{{fill:{fill};stroke:{line}}}")
        dark.append(f".sjx .{family} rect{{fill:{dark_fill};stroke:{dark_line}}}")
    return (
        f".sjx{{max-width:100%;height:auto}}.sjx text{{font:{_SMALL}px {_FONT};text-anchor:middle;fill:#57606a}}"
        f".sjx .t{{font-size:{_TITLE}px;font-weight:600;fill:#1f2328}}"
        ".sjx .bg{fill:#fff;stroke:none}.sjx .e{fill:none;stroke:#8c959f;stroke-width:1.2}"
        ".sjx .a{fill:#8c959f}.sjx .s{text-anchor:start;paint-order:stroke;stroke:#fff;stroke-width:3px;"
        "stroke-linejoin:round}.sjx .l{text-anchor:end}.sjx .m{text-anchor:middle}.sjx .output .t{fill:#fff}"
        ".sjx .unknown rect{stroke-dasharray:5 3}"
        + "".join(light)
        + "@media(prefers-color-scheme:dark){.sjx text{fill:#9da7b3}.sjx .t{fill:#e6edf3}"
        ".sjx .bg{fill:#0d1117}.sjx .e{stroke:#6e7681}.sjx .a{fill:#6e7681}.sjx .s{stroke:#0d1117}"
        ".sjx .output .t{fill:#0d1117}" + "".join(dark) + "}"
    )


# ---- boxes


def _lines(box: Box, known: Known) -> list[str]:
    """The texts of a box, the first in bold."""
    if box.family == "output":
        return [clip(box.title, 34)]
    if box.family == "input":
        text = known.text(box.nodes[0], 0)
        return [clip(box.title, 34), *([text] if text else [])]
    if len(box.nodes) > 1:
        return [clip(box.title, 40), box.detail, box.name]
    title = clip(box.title, 32)
    fallback = known.fallback(box.nodes[0])
    lines = [f"{title} {clip(box.detail, 44 - len(title))}".strip(), clip(box.name, 38)]
    return [*lines, fallback] if fallback else lines


def _size(box: Box, lines: Sequence[str]) -> tuple[float, float]:
    width = max(_text_width(t, _SMALL if i else _TITLE * 1.12) for i, t in enumerate(lines))
    return max(width + 20, 56.0), 11.0 + 15.0 * len(lines)


def _text_width(text: str, size: float) -> float:
    """An estimate that no usual sans-serif face exceeds."""
    units = sum(
        0.95 if c in _WIDE or ord(c) > 0x2E80 else 0.36 if c in _NARROW else 0.68 if c.isupper() else 0.58 for c in text
    )
    return units * size


def _box(box: Box, lines: Sequence[str], size: tuple[float, float], center: Point, tooltip: str) -> str:
    (w, h), (x, y) = size, center
    left, top = _n(x - w / 2), _n(y - h / 2)
    round_ = _n(h / 2) if box.family in ("input", "output") else "4"
    parts = [f'<g class="{box.family}">', f"<title>{_text(tooltip)}</title>" if tooltip else ""]
    if len(box.nodes) > 1:  # a second sheet behind the first
        parts.append(f'<rect x="{_n(x - w / 2 + 4)}" y="{_n(y - h / 2 + 4)}" width="{_n(w)}" height="{_n(h)}" rx="4"/>')
    parts.append(f'<rect x="{left}" y="{top}" width="{_n(w)}" height="{_n(h)}" rx="{round_}"/>')
    first = y - h / 2 + 17.5
    for i, line in enumerate(lines):
        kind, content = ("", _text(line)) if i else (' class="t"', _heading(box, line))
        parts.append(f'<text x="{_n(x)}" y="{_n(first + 15 * i)}"{kind}>{content}</text>')
    return "".join(parts) + "</g>"


def _heading(box: Box, line: str) -> str:
    """The first line: the operator in bold, its parameters not."""
    if len(box.nodes) != 1 or box.family == "input":
        return _text(line)
    title, _, detail = line.partition(" ")
    return _text(title) + (f'<tspan dx="5" font-weight="400">{_text(detail)}</tspan>' if detail else "")


def _tooltip(box: Box, known: Known) -> str:
    if box.family in ("input", "output"):
        return box.name
    if len(box.nodes) > 1:
        names = [n.name for n in box.nodes]
        listed = names if len(names) <= 8 else [*names[:4], "…", *names[-3:]]
        return clip("\n".join(listed), 300)
    node = box.nodes[0]
    rows = [f"{node.name} ({box.title})", *(f"{k} = {v}" for k, v in sorted(node.attrs.items()))]
    rows += [f"{w.name}{_of(w, known)}" for w in dict.fromkeys(box.weights)]
    rows += [f"→ {text}" for text in (known.text(node, i) for i in range(node.num_visible)) if text]
    return clip("\n".join(rows), 400)


def _of(node: Node, known: Known) -> str:
    text = known.text(node, 0)
    return f": {text}" if text else ""


# ---- edges


def _edges(plan: Layout) -> str:
    lines, heads = [], []
    for route in plan.routes:
        (x, y), *rest = route
        d = [f"M{_n(x)} {_n(y)}"]
        for u, v in rest:
            if abs(u - x) < 0.5:
                d.append(f"V{_n(v)}")
            else:
                middle = _n((y + v) / 2)
                d.append(f"C{_n(x)} {middle} {_n(u)} {middle} {_n(u)} {_n(v)}")
            x, y = u, v
        lines.append("".join(d))
        heads.append(f"M{_n(x)} {_n(y)}l-3.5-6h7z")
    return f'<path class="e" d="{"".join(lines)}"/>\n<path class="a" d="{"".join(heads)}"/>'


def _labels(picture: Diagram, plan: Layout, known: Known) -> list[str]:
    """The shape of each entry that flows, once, below its source."""
    out: list[str] = []
    done: set[Any] = set()
    ends: dict[int, tuple[float, float]] = {}  # how far left and right the edges of a box go
    for (a, _, _), route in zip(picture.edges, plan.routes, strict=True):
        low, high = ends.get(a, (route[1][0], route[1][0]))
        ends[a] = min(low, route[1][0]), max(high, route[1][0])
    for (a, _, e), route in zip(picture.edges, plan.routes, strict=True):
        text = known.text(e.node, e.index)
        if e in done or text is None or picture.boxes[a].family == "input":
            continue
        x, y = route[0]
        place = (_n(x), _n(y), e.index % 2)
        if place in done:
            continue
        done |= {e, place}
        low, high = ends[a]
        if low < x - 1 and high > x + 1:  # edges go to both sides: the space between them is free
            kind, dx, dy = "s m", 0, 29
        elif high > x + 1:
            kind, dx, dy = "s l", -5, 15
        else:
            kind, dx, dy = "s", 5, 15
        dy += 11 * (e.index % 2)
        out.append(f'<text class="{kind}" x="{_n(x + dx)}" y="{_n(y + dy)}">{text}</text>')
    return out


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub("�", text))


def _n(value: float) -> str:
    """A coordinate in few letters."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))
