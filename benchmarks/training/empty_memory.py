"""Loss of a run that resumes with an empty recurrent memory, beside the run that keeps it.

    python -m benchmarks.training.empty_memory --steps=400 --text='docs/*.md'

Trains a small model with memory, resumes it twice from the same checkpoint, with and without the
rows of the memory, and prints the difference of the losses in nats, step by step.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from unittest import mock

from official import xlnet
from official.xlnet.checkpoints import model_directory
from official.xlnet.runtime.history import read_history

_SECTIONS = {
    "model": {"num_layers": 4, "d_model": 128, "num_heads": 4, "d_inner": 512, "mem_len": 96},
    "data": {"seq_len": 128, "reuse_len": 64, "num_predict": 63, "target_ratio": 2.0},
    "training": {"learning_rate": 0.002, "warmup_steps": 40, "parallel_slices": 0},
}


def losses_after(steps: int, more_steps: int, text: str, folder: str) -> dict[str, list[float]]:
    """Losses of the steps after a resume, with the memory of the checkpoint and without."""
    config = xlnet.XLNetConfig.from_dict(_SECTIONS)
    config.model.dropout = config.model.dropatt = 0.0
    config.training.num_steps = steps + more_steps
    vocab, data = f"{folder}/vocab", f"{folder}/data"
    xlnet.train_vocabulary(text, vocab, size=2000)
    xlnet.prepare(text, vocab, config, data)
    xlnet.pretrain(config, data, f"{folder}/with", steps=steps)
    shutil.copytree(f"{folder}/with", f"{folder}/without")
    restore_run = model_directory.restore_run

    def restore_without_memory(path, state):
        restore_run(path, state)
        state.model.memory.is_saved = False

    xlnet.pretrain(config, data, f"{folder}/with")
    with mock.patch.object(model_directory, "restore_run", restore_without_memory):
        xlnet.pretrain(config, data, f"{folder}/without")
    return {
        name: [line["loss"] for line in read_history(f"{folder}/{name}")][-more_steps:]
        for name in ("with", "without")
    }


def main() -> None:
    """Prints the difference of the losses as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--more_steps", type=int, default=12)
    parser.add_argument("--text", default=os.path.join("docs", "*.md"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        losses = losses_after(options.steps, options.more_steps, options.text, folder)
    pairs = zip(losses["without"], losses["with"], strict=True)
    losses["difference"] = [round(without - kept, 4) for without, kept in pairs]
    print(json.dumps(losses))


if __name__ == "__main__":
    main()
