"""`mx.contrib.ndarray` is `mx.ndarray.contrib`."""

import sys

from symjax.ndarray import contrib

sys.modules[__name__] = contrib
