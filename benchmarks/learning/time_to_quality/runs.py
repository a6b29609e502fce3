"""Data of all contestants, their training runs, each in a process of its own, and evaluation."""

from __future__ import annotations

import dataclasses
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from typing import Any

import numpy as np

from official.xlnet.files.json_files import read_json

VOCAB_SIZES = {"tiny": 4000, "small": 8000}  # Of each recipe.
WINDOWS = "windows.npy"
# The targets of evaluation, whatever a recipe trains on: HF's collator has a third, too.
EVALUATION: dict[str, Any] = {
    "num_predict": 42,
    "target_ratio": 3.0,
    "target_unit": "word",
    "max_span": 5,
}
NUM_CHECKPOINTS = 6  # Of a run, evenly spaced.
_DONE = "done"
_OF_THE_RUN = ("num_steps", "checkpoint_steps", "keep_checkpoints", "seed")
_PEERS = "benchmarks.learning.time_to_quality.peers"


@dataclasses.dataclass(frozen=True)
class Run:
    """A training run.

    Attributes:
      text: name of the text.
      peer: `ours`, `hf` or `tfm` (tf-models-official).
      seed: random seed.
      steps: number of steps, over which the learning rate is scheduled.
      rate: peak learning rate, for peers.
      overrides: `key=value` overrides of our recipe.
      recipe: name of the recipe, whose shape peers have, too.
    """

    text: str
    peer: str
    seed: int
    steps: int = 0
    rate: float = 0.0
    overrides: tuple[str, ...] = ()
    recipe: str = "tiny"

    @property
    def settings(self) -> dict[str, Any]:
        """{section.key: value} of our recipe with the overrides; empty for peers.

        These say which run it was, as the recipe of a name changes. What follows from the other
        attributes, and checkpoints, are left out.
        """
        if self.peer != "ours":
            return {}
        from official.xlnet.configs.experiment import XLNetConfig

        tree = XLNetConfig.load(config_of(self.recipe), list(self.overrides)).as_dict()
        return {
            f"{section}.{key}": list(value) if isinstance(value, tuple) else value
            for section in ("model", "data", "training")
            for key, value in tree[section].items()
            if key not in _OF_THE_RUN
        }

    @property
    def name(self) -> str:
        """Name of the run's directory."""
        parts = [f"{self.rate:g}"]
        if self.peer == "ours":
            settings = json.dumps(self.settings, sort_keys=True).encode()
            parts = [*self.overrides, f"{zlib.crc32(settings):08x}"]
        parts = [self.peer, f"{self.steps}steps", *parts, f"seed{self.seed}"]
        return re.sub(r"[^\w.=-]", "_", "-".join(parts))

    def directory(self, output: str) -> str:
        """Directory of its text in that of all runs."""
        return os.path.join(output, self.recipe, self.text)


def config_of(recipe: str) -> str:
    """Path of a recipe."""
    return f"configs/{recipe}.yaml"


def prepare_data(text: str, recipe: str, output: str) -> None:
    """Trains the vocabulary and writes records and windows, unless they are there.

    Args:
      text: text file.
      recipe: a key of `VOCAB_SIZES`.
      output: directory for `vocab`, `data` and `windows.npy` int32 [n, T], the windows of
        forward text.
    """
    from official.xlnet.api.prepare import prepare
    from official.xlnet.api.vocab import train_vocabulary
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.data.pretraining_dataset import pretraining_dataset

    windows = os.path.join(output, WINDOWS)
    if os.path.exists(windows):
        return
    config = XLNetConfig.load(config_of(recipe))
    vocab, data = (os.path.join(output, name) for name in ("vocab", "data"))
    train_vocabulary([text], vocab, config.model.vocab_size or VOCAB_SIZES[recipe])
    prepare([text], vocab, config, data)
    rows = [
        batch["token_ids"][~batch["is_reversed"]]
        for batch in pretraining_dataset(data, 16, "train", epochs=1).as_numpy_iterator()
    ]
    np.save(windows, np.concatenate(rows))


def is_trained(run: Run, directory: str) -> bool:
    """Whether a run has finished in the directory of its text."""
    return os.path.exists(os.path.join(directory, run.name, _DONE))


def train(run: Run, directory: str) -> None:
    """Runs a process that trains.

    Args:
      run: the run. One of ours that was interrupted goes on, a peer's starts anew.
      directory: directory of the text, see `prepare_data`.
    """
    output = os.path.join(directory, run.name)
    if run.peer != "ours":
        shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output, exist_ok=True)
    command = _our_command if run.peer == "ours" else _peer_command
    words = [sys.executable, "-m", *command(run, directory, output)]
    subprocess.run(words, check=True, stdout=sys.stderr)
    pathlib.Path(output, _DONE).touch()


def evaluate_checkpoints(run: Run, directory: str) -> dict[str, Any]:
    """Evaluates the checkpoints of a trained run.

    Args:
      run: the run.
      directory: directory of the text.

    Returns:
      A dictionary of `curve`, a list of [step, loss] for each checkpoint, of `loss`, that of the
      last one, and of `unigram_loss`.
    """
    curve, metrics = [], {}
    for step, path in sorted(_checkpoints(run, os.path.join(directory, run.name)).items()):
        metrics = _metrics(run, path, step, directory)
        curve.append([step, round(metrics["loss"], 4)])
    unigram_loss = round(metrics["unigram_loss"], 4)
    return {"loss": curve[-1][1], "unigram_loss": unigram_loss, "curve": curve}


def _our_command(run: Run, directory: str, output: str) -> list[str]:
    from official.xlnet.configs.experiment import XLNetConfig

    recipe = XLNetConfig.load(config_of(run.recipe))
    warmup_steps = min(recipe.training.warmup_steps, run.steps // 8)
    overrides = [
        f"training.warmup_steps={warmup_steps}",
        *run.overrides,
        f"training.num_steps={run.steps}",
        f"training.seed={run.seed}",
        f"training.checkpoint_steps={-(-run.steps // NUM_CHECKPOINTS)}",
        f"training.keep_checkpoints={NUM_CHECKPOINTS + 1}",
    ]
    return [
        "official.xlnet.cli",
        "pretrain",
        f"--config={config_of(run.recipe)}",
        f"--data={os.path.join(directory, 'data')}",
        f"--output={os.path.join(output, 'model')}",
        *(f"--set={override}" for override in overrides),
    ]


def _peer_command(run: Run, directory: str, output: str) -> list[str]:
    return [
        f"{_PEERS}.{run.peer}",
        f"--config={config_of(run.recipe)}",
        f"--output={output}",
        f"--windows={os.path.join(directory, WINDOWS)}",
        f"--vocab={os.path.join(directory, 'vocab', 'spiece.model')}",
        f"--data={os.path.join(directory, 'data')}",
        f"--rate={run.rate}",
        f"--steps={run.steps}",
        f"--seed={run.seed}",
    ]


def _checkpoints(run: Run, output: str) -> dict[int, str]:
    """{step: the file that was written last} of a run's checkpoints."""
    if run.peer == "ours":
        folder, pattern = os.path.join(output, "model"), r"ckpt-(\d+)\.index"
    else:
        folder, pattern = output, r"step-(\d+)"
    found = [(re.fullmatch(pattern, name), name) for name in os.listdir(folder)]
    return {int(match[1]): os.path.join(folder, name) for match, name in found if match}


def _metrics(run: Run, path: str, step: int, directory: str) -> dict[str, float]:
    """What `xlnet evaluate` says about a checkpoint, as a model directory of its own."""
    from official.xlnet.api.convert import convert
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.training.evaluation import evaluate

    if run.peer == "tfm":  # Evaluated by its own process, on the same targets.
        return read_json(path)
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model")
        if run.peer == "hf":
            convert(path, model)
        else:
            os.mkdir(model)
            for pattern in ("config.yaml", "spiece.model", f"ckpt-{step}.*"):
                for file in glob.glob(os.path.join(os.path.dirname(path), pattern)):
                    shutil.copy(file, model)
        config = XLNetConfig.load(model)
        recipe = XLNetConfig.load(config_of(run.recipe))
        config.data = dataclasses.replace(recipe.data, **EVALUATION)
        config.training = dataclasses.replace(recipe.training, seed=0)
        if run.peer == "hf":
            config.model.mem_len = 0
        config.save(model)
        return evaluate(model, os.path.join(directory, "data"))
