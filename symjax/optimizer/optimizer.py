"""All optimizers by the path that they have in MXNet."""

from symjax.optimizer._adaptive import FTML as FTML
from symjax.optimizer._adaptive import LAMB as LAMB
from symjax.optimizer._adaptive import AdaDelta as AdaDelta
from symjax.optimizer._adaptive import AdaGrad as AdaGrad
from symjax.optimizer._adaptive import Adam as Adam
from symjax.optimizer._adaptive import Adamax as Adamax
from symjax.optimizer._adaptive import Ftrl as Ftrl
from symjax.optimizer._adaptive import Nadam as Nadam
from symjax.optimizer._adaptive import RMSProp as RMSProp
from symjax.optimizer._base import Optimizer as Optimizer
from symjax.optimizer._base import create as create
from symjax.optimizer._base import register as register
from symjax.optimizer._sgd import DCASGD as DCASGD
from symjax.optimizer._sgd import LARS as LARS
from symjax.optimizer._sgd import LBSGD as LBSGD
from symjax.optimizer._sgd import NAG as NAG
from symjax.optimizer._sgd import SGD as SGD
from symjax.optimizer._sgd import SGLD as SGLD
from symjax.optimizer._sgd import Signum as Signum
from symjax.optimizer._sgd import Test as Test
from symjax.optimizer._sgd import ccSGD as ccSGD
from symjax.optimizer.updater import Updater as Updater
from symjax.optimizer.updater import get_updater as get_updater

__all__ = [
    "DCASGD", "FTML", "LAMB", "LARS", "LBSGD", "NAG", "SGD", "SGLD", "AdaDelta", "AdaGrad", "Adam", "Adamax", "Ftrl",
    "Nadam", "Optimizer", "RMSProp", "Signum", "Test", "Updater", "ccSGD", "create", "get_updater", "register",
]
