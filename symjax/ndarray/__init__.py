"""Imperative arrays: `NDArray`, its functions, and every registered op as a function of NDArrays."""

from symjax.ndarray.ndarray import NDArray as NDArray
