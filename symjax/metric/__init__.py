"""Numbers that tell how good predictions are (MXNet's `mx.metric`), added up on the device."""

from symjax.metric._base import (
    CompositeEvalMetric,
    CustomMetric,
    EvalMetric,
    alias,
    check_label_shapes,
    create,
    np,
    register,
)
from symjax.metric._classes import (
    F1,
    MCC,
    PCC,
    Accuracy,
    CrossEntropy,
    NegativeLogLikelihood,
    Perplexity,
    TopKAccuracy,
)
from symjax.metric._values import MAE, MSE, RMSE, Caffe, Loss, PearsonCorrelation, Torch

__all__ = ["F1", "MAE", "MCC", "MSE", "PCC", "RMSE", "Accuracy", "Caffe", "CompositeEvalMetric", "CrossEntropy",
           "CustomMetric", "EvalMetric", "Loss", "NegativeLogLikelihood", "PearsonCorrelation", "Perplexity",
           "TopKAccuracy", "Torch", "alias", "check_label_shapes", "create", "np", "register"]  # fmt: skip
