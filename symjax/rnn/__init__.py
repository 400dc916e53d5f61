"""Recurrent cells that build symbols, sentences in buckets, checkpoints with unpacked weights: MXNet's `mx.rnn`."""

from __future__ import annotations

from symjax.io import DataBatch, DataDesc, DataIter
from symjax.model import load_checkpoint, save_checkpoint
from symjax.rnn import io, rnn, rnn_cell
from symjax.rnn.io import BucketSentenceIter, encode_sentences
from symjax.rnn.rnn import do_rnn_checkpoint, load_rnn_checkpoint, rnn_unroll, save_rnn_checkpoint
from symjax.rnn.rnn_cell import (
    BaseConvRNNCell,
    BaseRNNCell,
    BidirectionalCell,
    ConvGRUCell,
    ConvLSTMCell,
    ConvRNNCell,
    DropoutCell,
    FusedRNNCell,
    GRUCell,
    LSTMCell,
    ModifierCell,
    ResidualCell,
    RNNCell,
    RNNParams,
    SequentialRNNCell,
    ZoneoutCell,
)

__all__ = ["BaseConvRNNCell", "BaseRNNCell", "BidirectionalCell", "BucketSentenceIter", "ConvGRUCell", "ConvLSTMCell",
           "ConvRNNCell", "DataBatch", "DataDesc", "DataIter", "DropoutCell", "FusedRNNCell", "GRUCell", "LSTMCell",
           "ModifierCell", "RNNCell", "RNNParams", "ResidualCell", "SequentialRNNCell", "ZoneoutCell",
           "do_rnn_checkpoint", "encode_sentences", "io", "load_checkpoint", "load_rnn_checkpoint", "rnn", "rnn_cell",
           "rnn_unroll", "save_checkpoint", "save_rnn_checkpoint"]
