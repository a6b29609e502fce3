"""TensorBoard profile of our training step.

View it with `tensorboard --logdir=DIR` (plugin `tensorboard-plugin-profile`).
"""

from __future__ import annotations

import collections
import glob
import os
import re
from typing import Any

_WARM_UP_STEPS = 2
_STEPS = 3  # Profiled steps.
_LISTED = 20  # Operation types in the result.


def trace_step(task: dict[str, Any], directory: str) -> dict[str, float]:
    """Profiles a few steps and writes the trace.

    Args:
      task: arguments of `ours.build`.
      directory: directory for the trace.

    Returns:
      Milliseconds per step by operation type, summed over threads, longest first.
    """
    import tensorflow as tf

    from benchmarks.training.ours import build

    work = build(**task)
    for _ in range(_WARM_UP_STEPS):
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
                if kind:  # Operation events are named name:Type.
                    milliseconds[kind.group(1)] += event.duration_ps / 1e9 / _STEPS
    return {kind: round(value, 1) for kind, value in milliseconds.most_common(_LISTED)}
