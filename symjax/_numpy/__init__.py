"""What `mx.np` and `mx.sym.np` share: the definitions of their functions, methods and fallbacks."""

from __future__ import annotations

from symjax._numpy import arrays as arrays
from symjax._numpy import creation as creation
from symjax._numpy import elementwise as elementwise
from symjax._numpy import linalg as linalg
from symjax._numpy import random as random
from symjax._numpy import shape as shape
