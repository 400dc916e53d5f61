"""Ops without parity cases: why MXNet cannot be asked by a symbol on a CPU, and which tests check them instead."""

from __future__ import annotations

_UPDATES = ("multi_sgd", "multi_sgd_mom", "multi_mp_sgd", "multi_mp_sgd_mom")

TABLE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("changes several arrays in place, which MXNet has for imperative calls alone; checked against the update of one",
     "tests/test_optimizer_ops.py",
     (*(f"{p}{n}_update" for n in _UPDATES for p in ("", "preloaded_")), "_multi_adamw_update", "_multi_lamb_update",
      "_multi_mp_adamw_update", "_multi_mp_lamb_update", "mp_lamb_update_phase2", "reset_arrays")),
    ("takes a row_sparse gradient alone; checked against its formula", "tests/test_optimizer_ops.py",
     ("_contrib_group_adagrad_update",)),
    ("MXNet computes it on GPUs alone; checked against its definition", "tests/test_ops_without_oracle.py",
     ("_contrib_PSROIPooling", "_contrib_DeformablePSROIPooling", "_contrib_ModulatedDeformableConvolution")),
    ("MXNet computes it on GPUs alone; checked against a loop", "tests/test_image_ops.py", ("_contrib_count_sketch",)),
    ("moves data between devices or into an array that is there; no graph holds it", "tests/test_ops_without_oracle.py",
     ("_copyto", "_CrossDeviceCopy", "_set_value")),
    ("takes and gives csr; checked against records of MXNet's imperative calls", "tests/test_dgl_ops.py",
     ("_contrib_dgl_adjacency", "_contrib_dgl_csr_neighbor_non_uniform_sample",
      "_contrib_dgl_csr_neighbor_uniform_sample", "_contrib_dgl_graph_compact", "_contrib_dgl_subgraph",
      "_contrib_edge_id", "_contrib_getnnz")),
    ("takes or gives sparse arrays; checked by the recorded table of storage types", "tests/parity/test_storage.py",
     ("cast_storage", "_sparse_retain")),
    ("calls Python of the user; checked against records of MXNet's", "tests/test_custom_op.py",
     ("Custom", "_Native", "_NDArray")),
    ("stands for something of another process and cannot run in MXNet either", "tests/test_custom_op.py",
     ("_CachedOp", "_CachedOpThreadSafe", "_CustomFunction", "_NoGradient")),
    ("MXNet's wheel has its OpenCV functions for imperative calls alone", "tests/test_image_ops.py",
     ("_cvimdecode", "_cvimread", "_cvimresize", "_cvcopyMakeBorder", "_imdecode")),
    ("not an operator of MXNet 1.9.1; checked against its meaning in NumPy", "tests/test_plugins.py",
     ("WarpCTC", "ChannelwiseConvolution", "CuDNNBatchNorm", "QActivation", "QConvolution", "QFullyConnected",
      "MoonOutput")),
    ("not an operator of MXNet: the gradient of a graph as a node", "tests/test_graph.py", ("_symjax_gradient",)),
)  # fmt: skip
"""(reason, where, ops)."""

ELSEWHERE = {name: (reason, where) for reason, where, names in TABLE for name in names}
