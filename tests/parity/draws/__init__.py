"""Random cases by family of ops; see `tests.parity.draw`."""
