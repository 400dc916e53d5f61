"""All recurrent cells, under the path that MXNet has them at."""

from __future__ import annotations

from symjax.rnn._base import BaseRNNCell, RNNParams
from symjax.rnn._cells import GRUCell, LSTMCell, RNNCell
from symjax.rnn._conv import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from symjax.rnn._fused import FusedRNNCell
from symjax.rnn._modifiers import ModifierCell, ResidualCell, ZoneoutCell
from symjax.rnn._stacks import BidirectionalCell, DropoutCell, SequentialRNNCell

__all__ = ["BaseConvRNNCell", "BaseRNNCell", "BidirectionalCell", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell",
           "DropoutCell", "FusedRNNCell", "GRUCell", "LSTMCell", "ModifierCell", "RNNCell", "RNNParams",
           "ResidualCell", "SequentialRNNCell", "ZoneoutCell"]
