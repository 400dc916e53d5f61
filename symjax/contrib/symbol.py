"""`mx.contrib.symbol` is `mx.symbol.contrib`."""

import sys

from symjax.symbol import contrib

sys.modules[__name__] = contrib
