"""What `print_summary` prints and `plot_network` draws, as functions of `mx`: real MXNet, or symjax."""

from __future__ import annotations

import contextlib
import io
from typing import Any


def nets(mx: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Networks of which MXNet counts right, with shapes."""
    d = mx.sym.Variable("data")
    n = mx.sym.Convolution(d, num_filter=8, kernel=(3, 3), stride=(2, 2), name="c1")
    n = mx.sym.BatchNorm(n, name="bn", fix_gamma=False)
    n = mx.sym.Activation(n, act_type="relu", name="act")
    m = mx.sym.LeakyReLU(n, act_type="leaky", name="leaky")
    n = mx.sym.Concat(n, m * 2, dim=1, name="both")
    n = mx.sym.Convolution(n, num_filter=4, kernel=(1, 1), num_group=2, no_bias=True, name="c2")
    n = mx.sym.Pooling(n, kernel=(2, 2), stride=(2, 2), pool_type="avg", name="pool")
    n = mx.sym.Pooling(n, kernel=(1, 1), global_pool=True, pool_type="max", name="end")
    n = mx.sym.FullyConnected(mx.sym.Flatten(n, name="flat"), num_hidden=10, name="fc")
    image = mx.sym.SoftmaxOutput(n, name="softmax")
    mlp = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=5, name="fc")
    long = "a_layer_whose_name_is_so_long_that_it_must_be_cut_off"
    mlp = mx.sym.FullyConnected(mlp, num_hidden=3, no_bias=True, name=long)
    return {"image": (image, {"data": (2, 3, 16, 16)}), "mlp": (mlp, {"data": (4, 7)}),
            "embedding": (mx.sym.Embedding(mx.sym.Variable("data"), input_dim=10, output_dim=4, name="e"),
                          {"data": (2, 3)})}  # fmt: skip


def summary(mx: Any, net: Any, **kwargs: Any) -> list[str]:
    """The lines that `print_summary` prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        mx.visualization.print_summary(net, **kwargs)
    return text.getvalue().splitlines()


def run_summaries(mx: Any) -> dict[str, list[str]]:
    found = {k: summary(mx, net, shape=shape) for k, (net, shape) in nets(mx).items()}
    net, shape = nets(mx)["mlp"]
    found["narrow"] = summary(mx, net, shape=shape, line_length=80, positions=[30, 45, 60, 80])
    return found


class Recorder:
    """Stands for `graphviz.Digraph`: notes what is drawn."""

    def __init__(self, name: str, format: str) -> None:
        self.drawn: list[Any] = [["digraph", {"name": name, "format": format}]]

    def node(self, **kwargs: Any) -> None:
        self.drawn.append(["node", kwargs])

    def edge(self, **kwargs: Any) -> None:
        self.drawn.append(["edge", kwargs])


def run_plots(mx: Any) -> dict[str, Any]:
    """What is drawn; `graphviz.Digraph` must be a Recorder."""
    found = {}
    for name, (net, shape) in nets(mx).items():
        for kind, kwargs in {"plain": {}, "shapes": {"shape": shape, "title": "net", "save_format": "png"},
                             "colours": {"node_attrs": {"shape": "rect", "fixedsize": "false"}}}.items():  # fmt: skip
            found[f"{name} {kind}"] = mx.visualization.plot_network(net, **kwargs).drawn
    return found
