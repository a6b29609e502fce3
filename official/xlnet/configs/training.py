"""`training` section of the configuration: optimizer, schedule, checkpoints and evaluation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from typing import Annotated, Any

from official.xlnet.configs.base import Section
from official.xlnet.configs.choices import PRODUCTS
from official.xlnet.configs.key_marks import (
    FIXED,
    MAY_CHANGE,
    OF_FINETUNING,
    OF_PRETRAINING,
    KeyMark,
    UnreadWith,
)
from official.xlnet.configs.registry import OPTIMIZERS, SCHEDULES
from official.xlnet.configs.validation import (
    COUNT,
    COUNT_OR_NONE,
    NOT_NEGATIVE,
    POSITIVE,
    RATE,
    SEED,
    Range,
    require,
)
from official.xlnet.files.schema import OneOf

# Optimizers that do not read `muon_scale`; `register_optimizer` adds those of others.
WITHOUT_SCALE = {"adamw", "lamb"}
LARGEST_SAVED_MEMORY = 1 << 30  # Bytes, 1 GiB; see `checkpoint_memory`.
_WITHOUT_COOLDOWN = UnreadWith("schedule", ("polynomial", "cosine"))


@dataclasses.dataclass
class TrainingConfig(Section):
    """Batch size, optimizer, learning rate schedule and run control.

    Attributes:
      batch_size: global batch size in windows (or examples), summed over replicas.
      num_steps: number of training steps, over which the learning rate is scheduled.
      learning_rate: peak learning rate.
      warmup_steps: number of linear warm-up steps, starting from 0.
      end_learning_rate: learning rate at step `num_steps`.
      schedule: learning rate after the warm-up: `polynomial` decay, `cosine` decay, or
        `constant_with_cooldown`.
      decay_power: power of the polynomial decay; 1 is linear.
      cooldown_share: share of the steps after the warm-up in which the rate falls at the end, with
        `constant_with_cooldown`.
      cooldown: form of this cooldown: `linear`; or `sqrt`, 1 - √u after a share u of it.
      optimizer: `adamw`; `lamb` for large batches; or `muon`, which orthogonalizes the momentum of
        the layers' matrices and is AdamW for all other weights.
      weight_decay: decoupled weight decay; biases and layer normalization are excluded.
      adam_beta_1: exponential decay rate of the first moment estimates.
      adam_beta_2: exponential decay rate of the second moment estimates.
      adam_epsilon: constant added to the denominator for numerical stability.
      muon_scale: root mean square of Muon's update of a matrix, in units of the learning rate.
      clip_norm: maximum global gradient norm; 0 disables gradient clipping.
      layer_decay: layer-wise learning rate decay: ratio of a layer's learning rate to the
        learning rate of the layer above it.
      decay_embedding: whether the embedding counts as the lowest layer in this decay; false for
        the full learning rate, as in the paper.
      freeze_embeddings: whether the word embedding is frozen: it stays as it is, and the optimizer
        keeps nothing for it.
      freeze_layers: number of lowest layers that are frozen.
      freeze_network: whether the whole encoder is frozen, as with `task.freeze_encoder`, and only
        the head is trained, or what an objective has besides; without dropout in the encoder.
      lora_rank: rank of the low-rank adapters (LoRA) that fine-tuning trains with the head in the
        place of all weights, and adds to the weights in the end; 0 for none.
      accumulate_steps: gradient accumulation steps: the batch is split into this many
        micro-batches, which are computed in sequence before one update.
      parallel_slices: number of micro-batches computed in parallel, each on its own CPU cores;
        faster for small networks. 0: as many as there are CPU cores (at most 4), as far as the
        batch can be divided; 1 on a GPU or TPU.
      release_memory: whether freed tensor memory is returned to the operating system immediately
        (CPU only); lowers peak memory, but a step may take twice as long.
      precision: compute precision: `float32`, `mixed_bfloat16`, or, with dynamic loss scaling,
        `mixed_float16`, for GPUs without bfloat16.
      products: type that the float32 operands of matrix products are rounded to, in training and
        its evaluations: `float32`, or `bfloat16`, faster on CPUs with the instructions for it.
      jit_compile: whether the training step is compiled with XLA as a whole; None: on a single GPU.
        On TPUs it always is.
      steps_per_execution: number of steps per call of the compiled training function.
      checkpoint_steps: number of steps between checkpoints.
      keep_checkpoints: number of most recent checkpoints to keep, besides the best one by
        held-out loss; pre-training only.
      checkpoint_memory: whether checkpoints hold the recurrent memory of all rows, as float32
        [L, B, M, D]; without it a resumed run starts with an empty one. None: up to 1 GiB.
        Pre-training only.
      evaluation_steps: number of steps between evaluations on the held-out split; 0 disables
        them. Pre-training only; fine-tuning evaluates after each `checkpoint_steps`.
      on_bad_step: what to do after a non-finite loss or gradient, for which no update is applied:
        `stop` training, or `skip` the batch, up to ten times in a row.
      json_log: whether TensorBoard scalars are also written to `logs/scalars.jsonl`.
      seed: random seed of weight initialization, target sampling and dropout.
    """

    section = "training"
    chooser = "optimizer"

    batch_size: Annotated[int, COUNT] = 16
    num_steps: Annotated[int, COUNT] = 10000
    learning_rate: Annotated[float, POSITIVE] = 1e-4
    warmup_steps: Annotated[int, COUNT_OR_NONE] = 1000
    end_learning_rate: Annotated[float, NOT_NEGATIVE] = 0.0
    schedule: Annotated[str, SCHEDULES] = "polynomial"
    decay_power: Annotated[
        float, NOT_NEGATIVE, UnreadWith("schedule", ("cosine", "constant_with_cooldown"))
    ] = 1.0
    cooldown_share: Annotated[float, Range(0, 1, open_low=True), _WITHOUT_COOLDOWN] = 0.2
    cooldown: Annotated[str, OneOf(("linear", "sqrt")), _WITHOUT_COOLDOWN] = "linear"
    optimizer: Annotated[str, OPTIMIZERS] = "adamw"
    weight_decay: Annotated[float, NOT_NEGATIVE] = 0.01
    adam_beta_1: Annotated[float, RATE] = 0.9
    adam_beta_2: Annotated[float, RATE] = 0.999
    adam_epsilon: Annotated[float, POSITIVE] = 1e-6
    muon_scale: Annotated[float, POSITIVE, UnreadWith("optimizer", WITHOUT_SCALE)] = 0.2
    clip_norm: Annotated[float, NOT_NEGATIVE] = 1.0
    layer_decay: Annotated[float, Range(0, 1, open_low=True)] = 1.0
    decay_embedding: bool = True
    freeze_embeddings: Annotated[bool, FIXED] = False
    freeze_layers: Annotated[int, Range(0, 1000), FIXED] = 0
    freeze_network: Annotated[bool, FIXED] = False
    lora_rank: Annotated[int, COUNT_OR_NONE, OF_FINETUNING] = 0
    accumulate_steps: Annotated[int, COUNT, MAY_CHANGE] = 1
    parallel_slices: Annotated[int, COUNT_OR_NONE, MAY_CHANGE] = 1
    release_memory: Annotated[bool, MAY_CHANGE] = False
    precision: Annotated[str, OneOf(("float32", "mixed_bfloat16", "mixed_float16")), MAY_CHANGE] = (
        "float32"
    )
    products: Annotated[str, OneOf(PRODUCTS), MAY_CHANGE] = "float32"
    jit_compile: Annotated[bool | None, MAY_CHANGE] = None
    steps_per_execution: Annotated[int, COUNT, MAY_CHANGE] = 1
    checkpoint_steps: Annotated[int, COUNT, MAY_CHANGE] = 500
    keep_checkpoints: Annotated[int, COUNT, MAY_CHANGE, OF_PRETRAINING] = 2
    checkpoint_memory: Annotated[bool | None, MAY_CHANGE, OF_PRETRAINING] = None
    evaluation_steps: Annotated[int, COUNT_OR_NONE, MAY_CHANGE, OF_PRETRAINING] = 0
    on_bad_step: Annotated[str, OneOf(("stop", "skip")), MAY_CHANGE] = "stop"
    json_log: Annotated[bool, MAY_CHANGE] = False
    seed: Annotated[int, SEED, FIXED] = 0

    @property
    def num_slices(self) -> int:
        """Number of micro-batches that a batch has to be divisible into."""
        return self.accumulate_steps * max(1, self.parallel_slices)

    def saves_memory(self, num_bytes: int) -> bool:
        """Whether checkpoints hold a recurrent memory of a number of bytes."""
        if self.checkpoint_memory is None:
            return num_bytes <= LARGEST_SAVED_MEMORY
        return self.checkpoint_memory

    def unused_keys(self, mark: KeyMark, keys: Collection[str]) -> dict[str, Any]:
        """Returns {key: default} of keys of a kind of training that have other values.

        Args:
          mark: `OF_PRETRAINING` or `OF_FINETUNING`.
          keys: names of the keys of interest.
        """
        defaults: dict[str, Any] = {}
        for key in self.marked_keys(mark):
            default = getattr(type(self), key)
            if key in keys and getattr(self, key) != default:
                defaults[key] = default
        return defaults

    def require_shares(self, num_replicas: int, even: bool = False) -> None:
        """Raises `ConfigError` unless replicas, and their micro-batches, have equal shares.

        Args:
          num_replicas: number of replicas that share a batch.
          even: whether each replica needs an even number of rows, for both directions of text.
        """
        multiple = math.lcm(num_replicas * self.num_slices, num_replicas * (2 if even else 1))
        parts = f"{num_replicas} replicas" + (", each with rows in both directions" if even else "")
        if self.num_slices > 1:
            parts += f", each with {self.num_slices} micro-batches"
        expected = f"a multiple of {multiple}, for {parts}"
        require(self.batch_size % multiple == 0, "training.batch_size", expected, self.batch_size)

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        super().check()
        require(
            self.batch_size % self.num_slices == 0,
            "training.accumulate_steps and parallel_slices",
            f"together a divisor of batch_size = {self.batch_size}",
            (self.accumulate_steps, self.parallel_slices),
        )
        require(
            0 <= self.warmup_steps <= self.num_steps,
            "training.warmup_steps",
            f"from 0 to num_steps = {self.num_steps}",
            self.warmup_steps,
        )

    def check_with(self, config: Any) -> None:
        """Raises `ConfigError` if all layers that would get adapters are frozen."""
        if not self.lora_rank:
            return
        expected = "false with training.lora_rank, whose adapters are in the encoder"
        require(not config.task.freeze_encoder, "task.freeze_encoder", expected, True)
        require(not self.freeze_network, "training.freeze_network", expected, True)
        num_layers = config.model.num_layers
        require(
            self.freeze_layers < num_layers,
            "training.freeze_layers",
            f"below model.num_layers = {num_layers} with training.lora_rank, whose adapters are in "
            "the other layers",
            self.freeze_layers,
        )
