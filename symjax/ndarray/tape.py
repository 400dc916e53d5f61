"""Recording of imperative calls for differentiation: thread-local flags and the tape's nodes."""

from __future__ import annotations

import threading


class _State(threading.local):
    """Whether calls are recorded, and whether ops run in training mode; one per thread."""

    recording = False
    training = False


STATE = _State()
