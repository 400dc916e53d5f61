"""Passes: pure functions from graph to graph, one in each file."""
