"""A directed graph as DOT text, with the interface of `graphviz.Digraph`; drawn without Graphviz as SVG."""

from __future__ import annotations

import os
import shutil
import subprocess
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symjax.lowering.errors import MXNetError


class Picture:
    """A picture of a symbol.

    Args:
      name: its name, and the files'.
      format: what `render` makes: "svg", or any format of the program `dot`, if that is installed.
      symbol: what is drawn.
      shapes: shapes of its inputs by name, for the drawing.
      hide_weights: leave weights out of the drawing.
    """

    def __init__(self, name: str, format: str, symbol: Any, shapes: Mapping[str, Any] | None,
                 hide_weights: bool) -> None:
        self.name, self.format = name, format
        self.body: list[str] = []
        self._symbol, self._shapes, self._hide_weights = symbol, shapes, hide_weights

    # ---- DOT

    def node(self, name: str, label: str | None = None, **attrs: str) -> None:
        """Adds a box."""
        self.body.append(f"\t{_quoted(name)}{_attributes(label, attrs)}")

    def edge(self, tail_name: str, head_name: str, label: str | None = None, **attrs: str) -> None:
        """Adds an arrow."""
        self.body.append(f"\t{_quoted(tail_name)} -> {_quoted(head_name)}{_attributes(label, attrs)}")

    @property
    def source(self) -> str:
        """The picture in Graphviz's language."""
        return "\n".join([f"digraph {_quoted(self.name)} {{", *self.body, "}"]) + "\n"

    def __str__(self) -> str:
        return self.source

    # ---- drawing

    def _repr_svg_(self) -> str:
        from symjax.lowering.infer import infer_shapes
        from symjax.symbol._svg import render

        graph = self._symbol._graph
        named = self._shapes or {}
        known = {n: tuple(named[n.name]) for n in graph.inputs if n.name in named}
        shapes = infer_shapes(graph, known).values if known else None
        return render(graph, shapes, parameters=not self._hide_weights)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None, **_: Any) -> dict[str, str]:
        return {"image/svg+xml": self._repr_svg_(), "text/plain": self.source}

    def pipe(self, format: str | None = None) -> bytes:
        """Returns the picture drawn, as bytes.

        Raises:
          MXNetError: a format other than "svg" needs the program `dot`, which is not there.
        """
        kind = format or self.format
        dot = shutil.which("dot")
        if dot is not None:
            text = self.source.encode()
            return subprocess.run([dot, f"-T{kind}"], input=text, capture_output=True, check=True).stdout
        if kind != "svg":
            raise MXNetError(f"drawing {self.name!r} as {kind} needs Graphviz's program dot, which is not on the path: "
                             f"install Graphviz, or use save_format='svg', which needs nothing")
        return self._repr_svg_().encode()

    def save(self, filename: str | os.PathLike[str] | None = None,
             directory: str | os.PathLike[str] | None = None) -> str:
        """Writes the DOT text to `<name>.gv` or a file of another name, and returns its path."""
        path = Path(directory or "") / (filename or f"{self.name}.gv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source, encoding="utf-8")
        return str(path)

    def render(self, filename: str | os.PathLike[str] | None = None, directory: str | os.PathLike[str] | None = None,
               view: bool = False, cleanup: bool = False, format: str | None = None) -> str:
        """Writes the DOT text and, beside it with the format as another ending, the picture.

        Args:
          filename: of the DOT text; `<name>.gv` if None.
          directory: where; made if it is not there.
          view: open the picture.
          cleanup: remove the DOT text afterwards.
          format: other than the picture's own.

        Returns:
          The path of the picture.

        Raises:
          MXNetError: a format other than "svg" needs the program `dot`, which is not there.
        """
        kind = format or self.format
        drawn = self.pipe(kind)
        path = self.save(filename, directory)
        made = f"{path}.{kind}"
        Path(made).write_bytes(drawn)
        if cleanup:
            os.remove(path)
        if view:
            webbrowser.open(Path(made).resolve().as_uri())
        return made

    def view(self, filename: str | os.PathLike[str] | None = None,
             directory: str | os.PathLike[str] | None = None) -> str:
        """Renders and opens the picture; returns its path."""
        return self.render(filename, directory, view=True)


def _attributes(label: str | None, attrs: Mapping[str, str]) -> str:
    every = ({} if label is None else {"label": label}) | dict(sorted(attrs.items()))
    return " [" + " ".join(f"{k}={_quoted(str(v))}" for k, v in every.items()) + "]" if every else ""


def _quoted(text: str) -> str:
    shown = "".join(c if c.isprintable() or c == "\n" else "�" for c in text)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
