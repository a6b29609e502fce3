"""A TensorBoard trace of our training step, and where its time goes.

Show it with `tensorboard --logdir=DIR` (plug-in `tensorboard-plugin-profile`).
"""

from __future__ import annotations

import collections
import glob
import os
import re
from typing import Any

_STEPS = 3
_LISTED = 20


def trace_step(task: dict[str, Any], directory: str) -> dict[str, float]:
    """Writes a trace of a few steps.

    Args:
      task: arguments of `ours.build`.
      directory: where the trace goes.

    Returns:
      Milliseconds of a step by kind of operation, summed over threads, longest first.
    """
    import tensorflow as tf

    from benchmarks.training.ours import build

    work = build(**task)
    for _ in range(2):
        work.run()
    tf.profiler.experimental.start(directory)
    for _ in range(_STEPS):
        work.run()
    tf.profiler.experimental.stop()
    return _by_kind(directory)


def _by_kind(directory: str) -> dict[str, float]:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    files = glob.glob(os.path.join(directory, "plugins/profile/*/*.xplane.pb"))
    space = xplane_pb2.XSpace()
    with open(max(files, key=os.path.getmtime), "rb") as file:
        space.ParseFromString(file.read())
    milliseconds: collections.Counter[str] = collections.Counter()
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                kind = re.fullmatch(r".*:(\w+)", name, re.DOTALL)
                if kind:  # Operations are called name:Kind.
                    milliseconds[kind.group(1)] += event.duration_ps / 1e9 / _STEPS
    return {kind: round(value, 1) for kind, value in milliseconds.most_common(_LISTED)}
