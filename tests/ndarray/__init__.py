"""Snippets of NDArray code whose results MXNet 1.9.1 recorded; see `record`."""
