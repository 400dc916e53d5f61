"""symjax: Apache MXNet symbol graphs on JAX."""

__version__ = "0.1.0"
