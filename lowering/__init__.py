"""The compiler of symjax: operator registry, graph, inference, passes and lowering to JAX.

Imported as ``symjax.lowering`` only. The folder lies at the top level of the repository and is linked into the package.
"""

if __name__ != "symjax.lowering":
    raise ImportError(
        f"this package was imported as {__name__!r}; import it as 'symjax.lowering': "
        f"a second copy would register every op twice"
    )

from symjax.lowering.memory import keep_memory

keep_memory()
