"""Quantizes a float32 graph: layers become their int8 forms, with what converts between them.

    data ── Convolution ── Activation ── softmax
            weight

becomes, quantized with `offline={"weight"}`,

    data ── quantize_v2 ─┬─ quantized_conv ── requantize ── quantized_act ── dequantize ── softmax
    weight_quantize, weight_quantize_min, weight_quantize_max

where every int8 value travels with the two ends of its range. Names, and which operators take part, are MXNet's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal

from symjax.lowering import registry
from symjax.lowering.errors import MXNetError
from symjax.lowering.graph import Entry, Graph, Node, copy_graph

Mode = Literal["full", "smart"]

PREFIX = "quantized_"
_INT8 = ("_contrib_quantized_", "_sg_mkldnn_")


@dataclasses.dataclass(frozen=True)
class Form:
    """How an operator is quantized.

    Attributes:
      op: the name of the quantized operator.
      applies: whether a node's parameters allow it.
      must: it is worth quantizing by itself; others are quantized between such ones only (mode "smart").
      requantize: its output is int32, which is narrowed.
      plain: which inputs stay float32, by node and position.
      asymmetric: which inputs get uint8 with an offset.
      float_output: its output is float32.
      attrs: attributes that it gets besides the node's.
    """

    op: str
    applies: Callable[[Any], bool] = lambda p: True
    must: bool = False
    requantize: bool = False
    plain: Callable[[Node, int], bool] = lambda node, i: False
    asymmetric: Collection[int] = ()
    float_output: bool = False
    attrs: Mapping[str, str] = dataclasses.field(default_factory=dict)


def _beside_data(node: Node, i: int) -> bool:
    """Weights and statistics of a fused convolution; what it adds is quantized like its data."""
    graph = node.subgraphs[0]
    summands = {e.node for n in graph.nodes if n.op is not None and n.op.name == "elemwise_add" for e in n.inputs}
    return i != 0 and graph.inputs[i] not in summands


FORMS: dict[str, Form] = {
    "Convolution": Form("_contrib_quantized_conv", must=True, requantize=True),
    "FullyConnected": Form("_contrib_quantized_fully_connected", must=True, requantize=True),
    "Embedding": Form("_contrib_quantized_embedding", lambda p: p.dtype == "float32",
                      plain=lambda node, i: i == 0),
    "elemwise_mul": Form("_contrib_quantized_elemwise_mul", requantize=True),
    "RNN": Form("_contrib_quantized_rnn", lambda p: p.mode == "lstm" and p.projection_size is None, must=True,
                plain=lambda node, i: i != 0, asymmetric=(0,), float_output=True, attrs={"quantized": "true"}),
    "Pooling": Form("_contrib_quantized_pooling", lambda p: p.pool_type in ("max", "avg")),
    "Concat": Form("_contrib_quantized_concat", lambda p: p.dim > 0),
    "Flatten": Form("_contrib_quantized_flatten"),
    "Activation": Form("_contrib_quantized_act", lambda p: p.act_type == "relu"),
    "elemwise_add": Form("_contrib_quantized_elemwise_add", requantize=True),
    "BatchNorm": Form("_contrib_quantized_batch_norm", plain=lambda node, i: i != 0),
    "_sg_mkldnn_conv": Form("_sg_mkldnn_conv", lambda p: not p.quantized, must=True, requantize=True,
                            plain=_beside_data, attrs={"quantized": "true"}),
    "_sg_mkldnn_fully_connected": Form("_sg_mkldnn_fully_connected", lambda p: not p.quantized, must=True,
                                       requantize=True, attrs={"quantized": "True"}),
    "_sg_mkldnn_selfatt_qk": Form("_sg_mkldnn_selfatt_qk", lambda p: not p.quantized, must=True, requantize=True,
                                  attrs={"quantized": "True"}),
    "_sg_mkldnn_selfatt_valatt": Form("_sg_mkldnn_selfatt_valatt", lambda p: not p.quantized, must=True,
                                      requantize=True, attrs={"quantized": "True"}),
}  # fmt: skip

NAMED = frozenset((
    "Activation", "BatchNorm", "BatchNorm_v1", "BilinearSampler", "Concat", "Convolution", "Convolution_v1",
    "Correlation", "Crop", "Deconvolution", "Dropout", "FullyConnected", "GridGenerator", "GroupNorm",
    "IdentityAttachKLSparseReg", "InstanceNorm", "L2Normalization", "LRN", "LayerNorm", "LeakyReLU", "MakeLoss", "Pad",
    "Pooling", "Pooling_v1", "RNN", "ROIPooling", "SVMOutput", "SequenceLast", "SequenceMask", "SequenceReverse",
    "SliceChannel", "SoftmaxActivation", "SoftmaxOutput", "SpatialTransformer", "SwapAxis", "UpSampling",
    "_CrossDeviceCopy", "_contrib_BatchNormWithReLU", "_contrib_DeformableConvolution",
    "_contrib_DeformablePSROIPooling", "_contrib_ModulatedDeformableConvolution", "_contrib_MultiBoxDetection",
    "_contrib_MultiBoxPrior", "_contrib_MultiBoxTarget", "_contrib_MultiProposal", "_contrib_PSROIPooling",
    "_contrib_Proposal", "_contrib_ROIAlign", "_contrib_RROIAlign", "_contrib_SyncBatchNorm", "_contrib_count_sketch",
    "_contrib_fft", "_contrib_hawkesll", "_contrib_ifft", "_contrib_index_array",
    "_contrib_interleaved_matmul_encdec_qk", "_contrib_interleaved_matmul_encdec_valatt",
    "_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_selfatt_valatt", "_rnn_param_concat",
    "col2im", "elemwise_add", "im2col", "softmax", "softmin",
))  # fmt: skip
"""Operators whose outputs MXNet names; those of others are numbered in the names made here."""


@dataclasses.dataclass(frozen=True)
class Quantized:
    """A quantized graph.

    Attributes:
      graph: the graph.
      calibrate: the values whose ranges it wants to know (see `set_ranges`): their name, and where they are in the
        graph that was quantized.
    """

    graph: Graph
    calibrate: Mapping[str, Entry]


def quantize(
    graph: Graph,
    *,
    mode: Mode = "smart",
    out_type: str = "int8",
    excluded_names: Collection[str] = (),
    excluded_ops: Collection[str] = (),
    offline: Collection[str] = (),
    channel_wise: bool = False,
) -> Quantized:
    """Replaces what can be quantized by its int8 form; see the module's text.

    Args:
      graph: the graph.
      mode: "full" quantizes all that can be; "smart" the layers, and what lies between layers.
      out_type: "int8", "uint8" or "auto", for data and narrowed results.
      excluded_names: nodes to leave alone, also by a name inside a fused node.
      excluded_ops: operators to leave alone.
      offline: variables that are given quantized: v becomes v_quantize, v_quantize_min and v_quantize_max.
      channel_wise: fused linear layers keep float32 weights, which they quantize with a scale per channel.

    Raises:
      MXNetError: the mode is unknown.
    """
    if mode not in ("full", "smart"):
        raise MXNetError(f"quantize_mode is {mode!r}, expected 'full' or 'smart'")
    chosen = _chosen(graph, set(excluded_names), set(excluded_ops))
    if mode == "smart":
        chosen = _between(graph, chosen)
    return _Rewriter(graph, chosen, out_type, frozenset(offline), channel_wise).run()


def set_ranges(graph: Graph, ranges: Mapping[str, tuple[float, float]]) -> Graph:
    """Writes calibrated ranges into the nodes that want one; see `Quantized.calibrate` for the names."""
    new = Graph(copy_graph(graph.outputs))
    for old, node in zip(graph.nodes, new.nodes, strict=True):
        name = _range_name(old)
        if name is not None and name in ranges:
            low, high = ranges[name]
            node.attrs |= {"min_calib_range": f"{low:f}", "max_calib_range": f"{high:f}"}
    return new


def _range_name(node: Node) -> str | None:
    """The name of the value whose range a node wants."""
    if node.op is None:
        return None
    if node.op.name in ("_contrib_quantize_v2", "_contrib_quantize_asym", "_contrib_requantize"):
        return value_name(node.inputs[0])
    return value_name(Entry(node, 0)) if node.op.name == "_contrib_quantized_batch_norm" else None


def value_name(e: Entry) -> str:
    """The name of a value in float32, also where it is given quantized."""
    if e.node.op is None:
        return e.node.name
    name = e.node.op.name
    quantized = name.startswith(_INT8)
    stem = e.node.name.removeprefix(PREFIX) if quantized else e.node.name
    return f"{stem}_{_label(e)}"


def _label(e: Entry) -> str:
    node = e.node
    assert node.op is not None
    if node.op.name in NAMED or node.op.name.startswith(_INT8):
        return node.op.output_names(node.params)[e.index]
    return str(e.index)


# ---- what is quantized


def _chosen(graph: Graph, names: set[str], ops: set[str]) -> dict[Node, Form]:
    found = {}
    for node in graph.nodes:
        form = FORMS.get(node.op.name) if node.op is not None else None
        if form is None or node.op is None or node.name in names or node.op.name in ops:
            continue
        if form.applies(node.params) and not names & {n.name for g in node.subgraphs for n in g.nodes if n.op}:
            found[node] = form
    return found


def _between(graph: Graph, chosen: dict[Node, Form]) -> dict[Node, Form]:
    """The layers among the chosen, and those others that lie before one and behind one."""
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for e in node.inputs:
            readers.setdefault(e.node, []).append(node)
    layers = [n for n, form in chosen.items() if form.must]

    def reached(step: Callable[[Node], Iterator[Node]]) -> set[Node]:
        seen: set[Node] = set()
        waiting = list(layers)
        while waiting:
            for n in step(waiting.pop()):
                if n in chosen and not chosen[n].must and n not in seen:
                    seen.add(n)
                    waiting.append(n)
        return seen

    before = reached(lambda n: (e.node for e in n.inputs))
    behind = reached(lambda n: iter(readers.get(n, ())))
    return {n: form for n, form in chosen.items() if form.must or (n in before and n in behind)}


# ---- the rewriting


class _Rewriter:
    """Builds the new graph node by node.

    `plain` holds what stands for an entry as float32, `ranged` what stands for it quantized: the value and the two ends
    of its range. Each is made when it is first asked for.
    """

    def __init__(self, graph: Graph, chosen: Mapping[Node, Form], out_type: str, offline: frozenset[str],
                 channel_wise: bool) -> None:
        self.graph, self.chosen, self.out_type, self.offline = graph, chosen, out_type, offline
        self.channel_wise = channel_wise
        self.plain: dict[Entry, Entry] = {}
        self.ranged: dict[Entry, tuple[Entry, Entry, Entry]] = {}
        self.wants: dict[Node, Entry] = {}

    def run(self) -> Quantized:
        for node in self.graph.nodes:
            if node in self.chosen:
                self._quantized(node, self.chosen[node])
            else:
                self._copied(node)
        new = Graph([self._plain(e) for e in self.graph.outputs])
        names = ((_range_name(n), self.wants[n]) for n in new.nodes if n in self.wants)
        return Quantized(new, {name: e for name, e in names if name is not None})

    def _copied(self, node: Node) -> None:
        new = node.copy()
        new.inputs = [self._plain(e) for e in node.inputs]
        for i in range(node.num_outputs):
            self.plain[Entry(node, i)] = Entry(new, i)

    def _quantized(self, node: Node, form: Form) -> None:
        attrs = {**node.attrs, **form.attrs}
        per_channel = self.channel_wise and form.op == "_sg_mkldnn_fully_connected"
        if per_channel:
            attrs["channel_wise_quantize"] = "True"
        new = Node(registry.get(form.op), PREFIX + node.name, attrs, (), node.subgraphs)
        ends: list[Entry] = []
        for i, e in enumerate(node.inputs):
            if form.plain(node, i) or (per_channel and i != 0):
                new.inputs.append(self._plain(e))
                continue
            value, *pair = self._ranged(e, i in form.asymmetric)
            new.inputs.append(value)
            ends += pair
        new.inputs += ends
        if form.float_output:
            for i in range(node.num_outputs):
                self.plain[Entry(node, i)] = Entry(new, i)
            return
        first = Entry(node, 0)
        if form.requantize:
            narrow = Node(registry.get("_contrib_requantize"), f"requantize_{node.name}", {"out_type": self.out_type},
                          [Entry(new, i) for i in range(3)])
            self.wants[narrow] = first
            new = narrow
        elif form.op == "_contrib_quantized_batch_norm":
            self.wants[new] = first
        self.ranged[first] = (Entry(new, 0), Entry(new, 1), Entry(new, 2))

    def _plain(self, e: Entry) -> Entry:
        """What stands for an entry as float32."""
        if e not in self.plain:
            if e not in self.ranged:
                raise MXNetError(f"output {e.output_name!r} of a quantized operator is used, but has no quantized "
                                 f"form; exclude {e.node.name!r} (excluded_sym_names)")
            self.plain[e] = Entry(Node(registry.get("_contrib_dequantize"), f"{e.node.name}_dequantize", {},
                                       self.ranged[e]), 0)
        return self.plain[e]

    def _ranged(self, e: Entry, asymmetric: bool) -> tuple[Entry, Entry, Entry]:
        """What stands for an entry as int8."""
        if e not in self.ranged:
            self.ranged[e] = self._given(e) if e.node.op is None and e.node.name in self.offline else self._made(
                e, asymmetric)
        return self.ranged[e]

    def _given(self, e: Entry) -> tuple[Entry, Entry, Entry]:
        value, low, high = (Entry(Node(None, f"{e.node.name}_quantize{end}"), 0) for end in ("", "_min", "_max"))
        return value, low, high

    def _made(self, e: Entry, asymmetric: bool) -> tuple[Entry, Entry, Entry]:
        name = e.node.name if e.node.op is None else f"{e.node.name}_{_label(e)}"
        op, attrs = ("asym", {}) if asymmetric else ("v2", {"out_type": self.out_type})
        new = Node(registry.get(f"_contrib_quantize_{op}"), f"{name}_quantize", attrs, [self._plain(e)])
        self.wants[new] = e
        return Entry(new, 0), Entry(new, 1), Entry(new, 2)
