"""Steps with a non-finite loss or gradient norm, which are skipped or end a run.

Few runs have any, so few import this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from official.xlnet.errors import DivergedError
from official.xlnet.runtime.metrics_log import RunLog

_MOST_BAD_STEPS = 10  # A run stops after so many bad steps in a row even when skipping.


def report_bad_step(
    log: RunLog,
    step: int,
    metrics: Mapping[str, float],
    diagnosis: Mapping[str, Any],
    num_consecutive: int,
    skip: bool,
) -> None:
    """Reports a bad step, and ends the run unless it is skipped.

    Args:
      log: receives the event.
      step: last step of the execution.
      metrics: its `loss` and `gradient_norm` (before clipping), means over its steps.
      diagnosis: what is known of the cause: `first_bad_value`, and the ids of `windows`; or {}.
      num_consecutive: number of bad steps since the last one with finite values, with this one.
      skip: whether they are skipped (`training.on_bad_step`) rather than raised.

    Raises:
      DivergedError: steps are not skipped, or 10 in a row were.
    """
    loss, norm = metrics["loss"], metrics["gradient_norm"]
    log.event("bad step", step=step, **diagnosis, loss=repr(loss), gradient_norm=repr(norm))
    if skip and num_consecutive < _MOST_BAD_STEPS:
        return
    message = f"step {step}: expected a finite loss and gradient, got loss {loss}"
    message += f" and gradient norm {norm}"
    if diagnosis:
        windows = diagnosis["windows"]
        ids = ", ".join(map(str, windows[:8])) + (", …" if len(windows) > 8 else "")
        message += f"; first non-finite value: {diagnosis['first_bad_value']}; windows {ids}"
    if skip:
        message += f"; {num_consecutive} in a row were skipped"
    message += "; the weights are those before the step"
    raise DivergedError(f"{message}; a lower training.learning_rate may help")
