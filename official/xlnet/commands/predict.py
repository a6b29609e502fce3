"""Predicts with a fine-tuned model: a file in, JSON lines out.

Rows are read, predicted and written a few batches at a time, in their order.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from absl import flags

from official.xlnet.finetuning import load_task, predict_examples
from official.xlnet.task_data import stream_task

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_INPUT = flags.DEFINE_string("input", None, "What to read.", required=True, flag_values=FLAGS)
_OUTPUT = flags.DEFINE_string("output", None, "JSON lines.", required=True, flag_values=FLAGS)


def run() -> dict[str, Any]:
    """Returns `rows`, `rows_per_second`, and counts of what was cut."""
    model, task = load_task(_MODEL.value)
    examples = stream_task(_INPUT.value, task.config.task)
    rows, start = 0, time.monotonic()
    temporary = _OUTPUT.value + ".tmp"
    os.makedirs(os.path.dirname(os.path.abspath(temporary)), exist_ok=True)
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            for prediction in predict_examples(model, task, examples):
                file.write(json.dumps(prediction, ensure_ascii=False) + "\n")
                rows += 1
        os.replace(temporary, _OUTPUT.value)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    seconds = max(time.monotonic() - start, 1e-9)
    return {"rows": rows, "rows_per_second": round(rows / seconds, 1), **task.counts}
