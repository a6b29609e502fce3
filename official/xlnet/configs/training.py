"""Section `training`: batch, optimizer, learning rate schedule and run control."""

from __future__ import annotations

import dataclasses

from official.modeling import hyperparams
from official.xlnet.configs.validation import require, require_one_of


@dataclasses.dataclass
class TrainingConfig(hyperparams.Config):
    """Batch, optimizer, schedule and run control.

    Attributes:
      batch_size: windows in a step, over all replicas.
      num_steps: steps of the schedule.
      learning_rate: peak learning rate.
      warmup_steps: steps of linear warm-up from 0.
      end_learning_rate: learning rate at `num_steps`.
      decay_power: power of the polynomial decay; 1 is linear.
      weight_decay: decoupled weight decay; not for biases and layer norm.
      adam_beta_1: decay of the first moment.
      adam_beta_2: decay of the second moment.
      adam_epsilon: added to the root of the second moment.
      clip_norm: global gradient norm above which gradients are scaled down; 0 switches it off.
      layer_decay: factor between the learning rates of one layer and the layer below it.
      accumulate_steps: slices of a batch that are computed one after the other before an update.
      parallel_slices: slices of a batch, or of such a slice, that are computed side by side, each
        on CPU cores of its own; faster for small networks.
      release_memory: whether the memory of tensors that are no longer needed goes back to the
        system at once, on a CPU; a lower peak, for a step that may take twice as long.
      precision: `float32` or `mixed_bfloat16`.
      jit_compile: whether XLA compiles the whole step.
      steps_per_execution: steps run between two returns to Python.
      checkpoint_steps: steps between two checkpoints.
      keep_checkpoints: newest checkpoints to keep, besides that of the lowest held-out loss.
      evaluation_steps: steps between two evaluations on the held-out lanes; 0: none.
      on_bad_step: what follows a loss or gradient that is not finite, which changes no weight:
        `stop`, or `skip` to go on with the next windows.
      json_log: whether the figures for TensorBoard also go to `logs/scalars.jsonl`.
      seed: seed of initial weights, targets, orders and dropout.
    """

    batch_size: int = 16
    num_steps: int = 10000
    learning_rate: float = 1e-4
    warmup_steps: int = 1000
    end_learning_rate: float = 0.0
    decay_power: float = 1.0
    weight_decay: float = 0.01
    adam_beta_1: float = 0.9
    adam_beta_2: float = 0.999
    adam_epsilon: float = 1e-6
    clip_norm: float = 1.0
    layer_decay: float = 1.0
    accumulate_steps: int = 1
    parallel_slices: int = 1
    release_memory: bool = False
    precision: str = "float32"
    jit_compile: bool = False
    steps_per_execution: int = 1
    checkpoint_steps: int = 500
    keep_checkpoints: int = 2
    evaluation_steps: int = 0
    on_bad_step: str = "stop"
    json_log: bool = False
    seed: int = 0

    def in_one_piece(self, batch_size: int) -> TrainingConfig:
        """The same with batches of another size, which nothing slices: no gradient is computed."""
        return dataclasses.replace(
            self, batch_size=batch_size, accumulate_steps=1, parallel_slices=1
        )

    def check(self) -> None:
        """Raises `ConfigError` where a value is out of range or values contradict each other."""
        require(self.batch_size >= 1, "training.batch_size", "at least 1", self.batch_size)
        slices = self.accumulate_steps, self.parallel_slices
        require(
            min(slices) >= 1 and self.batch_size % (slices[0] * slices[1]) == 0,
            "training.accumulate_steps and parallel_slices",
            f"together a divisor of batch_size = {self.batch_size}",
            slices,
        )
        require(self.num_steps >= 1, "training.num_steps", "at least 1", self.num_steps)
        require(
            0 <= self.warmup_steps <= self.num_steps,
            "training.warmup_steps",
            f"from 0 to num_steps = {self.num_steps}",
            self.warmup_steps,
        )
        require(self.learning_rate > 0, "training.learning_rate", "above 0", self.learning_rate)
        for key in ("checkpoint_steps", "keep_checkpoints", "steps_per_execution"):
            require(getattr(self, key) >= 1, f"training.{key}", "at least 1", getattr(self, key))
        require(
            self.evaluation_steps >= 0,
            "training.evaluation_steps",
            "0 or more",
            self.evaluation_steps,
        )
        require_one_of("training.on_bad_step", self.on_bad_step, ("stop", "skip"))
        require_one_of("training.precision", self.precision, ("float32", "mixed_bfloat16"))
