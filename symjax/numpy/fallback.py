"""Functions of `mx.np` that are numpy's own: given an `mx.np.ndarray` they run on the host and return one."""

from __future__ import annotations

from typing import Any

import numpy as onp

NAMES = ["allclose", "apply_along_axis", "apply_over_axes", "argpartition", "argwhere", "array_equal", "array_equiv",
         "choose", "compress", "corrcoef", "correlate", "count_nonzero", "cov", "digitize", "divmod", "extract",
         "flatnonzero", "float_power", "frexp", "heaviside", "histogram2d", "histogram_bin_edges", "histogramdd",
         "i0", "interp", "intersect1d", "isclose", "isin", "ix_", "lexsort", "min_scalar_type", "modf", "nanargmax",
         "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmedian", "nanmin", "nanpercentile", "nanprod",
         "nanquantile", "nanstd", "nansum", "nanvar", "ndim", "partition", "packbits", "piecewise", "poly",
         "polyadd", "polydiv", "polyfit", "polyint", "polymul", "polysub", "positive", "promote_types", "ptp",
         "real", "result_type", "rollaxis", "roots", "searchsorted", "select", "setdiff1d", "setxor1d", "signbit",
         "size", "spacing", "take_along_axis", "tril_indices_from", "trim_zeros", "triu_indices_from", "union1d",
         "unpackbits", "unwrap", "vander"]
RENAMED = {"alltrue": "all", "in1d": "isin", "trapz": "trapezoid"}
"""Names that numpy 2 has no more, and those they have now."""
FINANCIAL = ("mirr", "npv", "pmt", "ppmt", "pv", "rate")
"""Functions that numpy moved to the package numpy-financial; with MXNet 1.9.1 they raise as well."""
LINALG = ("cond", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "qr")

__all__ = [*NAMES, *RENAMED, "msort"]  # pyright: ignore[reportUnsupportedDunderAll] - made when asked for


def msort(a: Any) -> Any:
    """Returns the array sorted along its first axis."""
    return onp.sort(a, axis=0)


def __getattr__(name: str) -> Any:
    if name in RENAMED or name in NAMES:
        return getattr(onp, RENAMED.get(name, name))
    if name in FINANCIAL:
        raise AttributeError(f"mx.np.{name}: numpy has no financial functions any more; use numpy-financial")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
