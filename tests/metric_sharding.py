"""Metrics of predictions that are spread over eight devices: run by `test_metric` in a process that has as many.

`python -m tests.metric_sharding` prints the values as JSON, with how many compilations later batches took.
"""

from __future__ import annotations

import json

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import symjax as mx
from tests.compiles import compiles
from tests.metric_cases import CASES, ROWS, batch


def main() -> None:
    devices = jax.devices()
    mesh = Mesh(np.array(devices[:ROWS]), ("batch",))
    found = {}
    for name, (metric, kwargs, kind) in CASES.items():
        m = mx.metric.create(metric, **kwargs)
        later = []
        for i in range(3):
            labels, preds = batch(mx, kind, 10 * i + 7)
            spread = [jax.device_put(p._data, NamedSharding(mesh, PartitionSpec("batch"))) for p in preds]
            if i == 1:
                labels = [jax.device_put(x._data, s.sharding) for x, s in zip(labels, spread, strict=True)]
            with compiles() as count:
                m.update(labels, spread)
            later.append(count.n)
        m.update(*batch(mx, kind, 7))  # and one of a single device
        found[name] = [float(m.get()[1]), later[2]]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
