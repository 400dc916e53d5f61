"""Bridges from symbols to the JAX world; each module imports what it needs when it is used."""
