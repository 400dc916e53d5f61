"""_contrib_fft and _contrib_ifft, which MXNet runs on a GPU only: compared with NumPy."""

import numpy as np

from tests.parity.case import Case, op_case


def forward(x: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The transform as pairs (real, imaginary)."""
    z = np.fft.fft(x["data"])
    return {"out0": np.stack([z.real, z.imag], -1).reshape(*z.shape[:-1], -1).astype(x["data"].dtype)}


def backward(x: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The real part of the inverse, not divided by the length."""
    d = x["data"]
    z = np.fft.ifft(d[..., ::2] + 1j * d[..., 1::2])
    return {"out0": (z.real * z.shape[-1]).astype(d.dtype)}


CASES: list[Case] = [
    *(op_case("_contrib_fft", {"data": s}, {"compute_size": 4}, id=str(s), better=True, expected=forward)
      for s in ((2, 4), (2, 5), (1, 2, 2, 3))),
    *(op_case("_contrib_ifft", {"data": s}, {"compute_size": 4}, id=str(s), better=True, expected=backward)
      for s in ((2, 8), (2, 10), (1, 2, 2, 6))),
]  # fmt: skip
