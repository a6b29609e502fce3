"""Models with random weights for benchmarks, and `xlnet` commands with their time and memory."""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from pydoc_data.topics import topics
from typing import Any

from official import xlnet
from official.xlnet.tokenization.special_tokens import VOCAB_FILE


def write_model(model_dir: str, create: Callable[[Any], Any], config: Any) -> None:
    """Writes the model directory of a model with random weights.

    Its vocabulary is trained on Python's own manual.

    Args:
      model_dir: directory to write.
      create: returns the model of a configuration.
      config: the configuration.
    """
    from official.xlnet.api.vocab import train_vocabulary

    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder, "text.txt")
        text.write_text("\n".join(topics.values()), encoding="utf-8")
        train_vocabulary([str(text)], folder, config.model.vocab_size)
        xlnet.save_pretrained(create(config), model_dir, os.path.join(folder, VOCAB_FILE))


def run_xlnet(*arguments: str) -> tuple[float, float]:
    """Runs an `xlnet` command and returns its seconds and peak resident memory in gigabytes."""
    start = time.monotonic()
    program = [sys.executable, "-m", "official.xlnet.cli", *arguments]
    process = os.posix_spawn(sys.executable, program, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"failed: xlnet {' '.join(arguments)}")
    return round(time.monotonic() - start, 1), round(usage.ru_maxrss * 1024 / 1e9, 2)
