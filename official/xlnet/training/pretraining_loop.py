"""The loop of pre-training: its model, data, held-out evaluation and diagnosis of bad steps."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import tensorflow as tf
from absl import logging

from official.xlnet.checkpoints.checkpoint_files import SavedState, best_heldout_loss
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.key_marks import FIXED
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.pretraining_dataset import reading_errors
from official.xlnet.errors import require_data
from official.xlnet.files.schema import conform
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.perplexity import perplexity
from official.xlnet.training import run_health, run_plan, target_counts
from official.xlnet.training.loop import Loop, interval_passed
from official.xlnet.training.run_data import RunData

_START_WINDOWS = 1000  # Read when a run starts; takes about a second.
_RECENT_LOSS = "recent_loss"  # Key of the records of checkpoints.


class PretrainingLoop(Loop):
    """A pre-training run.

    Args:
      config: the experiment configuration.
      data: the training and held-out data.
      is_continued: whether a new run starts from the weights of another model.
      **arguments: see `Loop`.

    Attributes:
      unigram_loss: loss of the unigram baseline; None before the first step of the call.
    """

    def __init__(self, config: XLNetConfig, data: RunData, is_continued: bool, **arguments):
        super().__init__(config, num_kept=config.training.keep_checkpoints, **arguments)
        self._data, self._is_continued = data, is_continued
        self._heldout_loss: float | None = None
        self.unigram_loss: float | None = None

    @property
    def tokens_per_second(self) -> float:
        """Throughput over the recent executions, excluding the first one, which compiles."""
        tokens = self.config.training.batch_size * self.config.data.seq_len
        return self.steps_per_second * tokens

    def create_model(self, init_from: str | None) -> XLNetPretrainer:
        if init_from:
            from official.xlnet.checkpoints.pretrained_directory import load_pretrainer

            return load_pretrainer(init_from, self.config)
        return XLNetPretrainer(self.config)

    def batches(self, saved: SavedState | None) -> tf.data.Dataset:
        memory = self.state.model.memory
        self._has_memory = memory is None or saved is None or memory.is_saved
        if memory is not None:
            memory.is_saved = self.config.training.saves_memory(memory.saved_bytes)
        self._data.go_to(self.step, saved, self._has_memory)
        return self._data.training()

    def settings_to_keep(self, saved: XLNetConfig) -> dict[str, Any]:
        sections = {name: getattr(saved, name).as_dict() for name in ("model", "data", "objective")}
        training_keys: list[str] = []
        for settings in saved.training.settings_in_use():
            training_keys += settings.marked_keys(FIXED)
        return {**sections, "training": training_keys}

    def begin(self) -> None:
        """Logs the plan of the run, and warnings about unusual settings."""
        config, data = self.config, self._data
        self.log.log_line(run_plan.plan(config, data.lanes, self._last_step))
        for part in data.parts if len(data.parts) > 1 else ():
            self.log.log_line(
                f"{part.records.path}: {part.rows} of {config.training.batch_size} rows, "
                f"{self._last_step * part.rows / part.lanes.windows:,.1f} passes over "
                f"{part.lanes.windows:,} windows"
            )
        self._log_memory()
        if self.is_chief:
            for warning in run_plan.warnings(
                config, data.lanes, self._last_step, self._is_continued
            ):
                logging.warning(warning)
        with reading_errors(data.paths[0], "train", *data.paths[1:]):
            windows = data.first_windows(_START_WINDOWS)
            first = next(windows)
            p_V = run_health.unigram_distribution(
                itertools.chain([first], windows), config.model.vocab_size
            )
        if self.is_chief:
            sections = ObjectiveSections.of(config)
            target_counts.warn_of_few_targets(
                target_counts.count_targets([first], sections), sections
            )
        self._baseline = run_health.UnigramBaseline(
            p_V, config.training.warmup_steps, self._last_step
        )
        if not self._baseline.is_checked(self.step):
            for line in read_history(self.output):
                self._baseline.add(line["loss"])
        self.unigram_loss = self._baseline.loss
        where = f"{self.output}: {_RECENT_LOSS} of the newest checkpoint"
        recent_loss = conform(self.resumed.get(_RECENT_LOSS, {}), run_health.RecentLoss, where)
        self._watch = run_health.SpikeWatch(data, self.log, recent_loss)
        self._best_loss = best_heldout_loss(self.output)

    def _log_memory(self) -> None:
        """Logs if the memory of rows was not in a checkpoint, or will not be."""
        memory = self.state.model.memory
        if not self._has_memory:
            steps = -(-self.config.model.mem_len // self.config.data.reuse_len)
            self.log.log_line(
                "the checkpoint has no recurrent memory: all rows start with an empty one, which "
                f"is full again after {steps} steps (training.checkpoint_memory)"
            )
        if memory is not None and not memory.is_saved:
            self.log.log_line(
                f"checkpoints do not hold the recurrent memory, {memory.saved_bytes / 1e9:,.1f} GB "
                "(training.checkpoint_memory)"
            )

    def accept(self, before: int, metrics: dict[str, float]) -> None:
        self._watch.add(before + 1, self.step, metrics["loss"])
        recent = self._baseline.not_beaten(before, self.step, metrics["loss"])
        if recent is not None:
            self.log.event(
                "no better than the unigram baseline (docs/symptoms.md)",
                step=self.step,
                loss=round(recent, 4),
                unigram_loss=round(self._baseline.loss, 4),
            )

    def diagnose(self, before: int) -> dict[str, Any]:
        from official.xlnet.training.bad_steps.cause import cause_of_bad_steps

        return cause_of_bad_steps(self.state.model, self._data, before + 1, self.step)

    def scalars(self, metrics: dict[str, float]) -> dict[str, float]:
        # A mean over no labels at all, of an auxiliary objective, is not a number.
        scalars = {name: value for name, value in metrics.items() if not math.isnan(value)}
        if self.state.model.has_loss_scale:
            scalars["loss_scale"] = self._loss_scale
        scalars["perplexity"] = perplexity(metrics["loss"])
        scalars["tokens_per_second"] = self.tokens_per_second
        return super().scalars(metrics) | scalars

    def describe(self, metrics: dict[str, float]) -> str:
        shown = f"loss {metrics['loss']:.3f}" if metrics["targets"] else "no targets"
        unigrams = f"(unigrams {self._baseline.loss:.3f})"
        # The first execution compiles, and says nothing about speed.
        rate = f"  {self.tokens_per_second:.0f} tokens/s" if self.tokens_per_second else ""
        return f"{shown} {unigrams}{rate}"

    def evaluate(self, before: int) -> bool:
        self._heldout_loss = None
        interval = self.config.training.evaluation_steps
        if not (interval and interval_passed(interval, before, self.step)):
            return False
        data, num_batches = self._data.heldout
        path = self._data.records.path
        with reading_errors(path, "heldout"):
            result = self.model.evaluate(data, steps=num_batches, verbose=0, return_dict=True)
        loss = float(result["loss"])
        require_data(
            not math.isnan(loss),
            f"{path}, split heldout",
            "windows with targets, or training.evaluation_steps=0",
            "none with a target",
        )
        self.log.scalars(self.step, heldout_loss=loss, heldout_perplexity=perplexity(loss))
        is_best = loss < self._best_loss
        self._heldout_loss, self._best_loss = loss, min(self._best_loss, loss)
        return is_best

    def evaluated_on(self) -> Any:
        splits = self._data.records.manifest.splits
        return [
            splits["heldout"].files if "heldout" in splits else {},
            best_heldout_loss(self.output),
        ]

    def record(self) -> dict[str, Any]:
        return {
            **super().record(),
            "heldout_loss": self._heldout_loss,
            _RECENT_LOSS: dataclasses.asdict(self._watch.recent_loss),
            **self._data.record(self.step),
        }
