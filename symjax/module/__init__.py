"""Modules: graphs with their parameters and an optimizer, trained by `fit` (MXNet's `mx.mod`)."""

from __future__ import annotations

from symjax.module.base_module import BaseModule
from symjax.module.bucketing_module import BucketingModule
from symjax.module.module import Module
from symjax.module.python_module import PythonLossModule, PythonModule
from symjax.module.sequential_module import SequentialModule

__all__ = ["BaseModule", "BucketingModule", "Module", "PythonLossModule", "PythonModule", "SequentialModule"]
