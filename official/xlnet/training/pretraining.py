"""Pre-training loop: data, model and `fit`, resumable from checkpoints.

A checkpoint holds the whole state of a run: weights, optimizer, recurrent memory and the position
in the data. Batches, targets, factorization orders and dropout are functions of position and
step, so a run that is killed and restarted takes the same steps as one that is not.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import tensorflow as tf
import tf_keras
from absl import logging

from official.xlnet.checkpoints import model_directory
from official.xlnet.checkpoints.any_format import load_config, weights_checksum
from official.xlnet.checkpoints.checkpoint_files import (
    CheckpointWriter,
    SavedState,
    newest_checkpoint,
)
from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.pretraining_dataset import Records, reading_errors
from official.xlnet.data.run_inputs import check_inputs
from official.xlnet.errors import DataError, PreemptedError
from official.xlnet.files.locks import only_writer
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.distribution import can_compile, is_chief, prepare_devices
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.memory import require_memory, rows_at_once
from official.xlnet.runtime.preemption import TerminationSignal
from official.xlnet.runtime.progress import Progress
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.training import run_plan
from official.xlnet.training.callbacks import RunCallback
from official.xlnet.training.optimization import create_optimizer
from official.xlnet.training.run_data import RunData
from official.xlnet.training.target_count import count_targets, warn_of_few_targets

_FINAL_STEPS = 100  # The reported loss is the mean over these last steps.


def pretrain(
    config: XLNetConfig,
    data_dir: str,
    model_dir: str,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    init_from: str | None = None,
    strategy: str = "one_device",
    cpu_devices: int = 1,
) -> dict[str, float]:
    """Pre-trains a model, or resumes a pre-training run, and writes a model directory.

    Args:
      config: the experiment configuration. A run that is resumed may change `training` only, except
        `training.seed`.
      data_dir: data set directory, written by `xlnet prepare`.
      model_dir: model directory to create, or to resume from.
      steps: step to stop at, counted from the start of the first run. None:
        `training.num_steps`. The learning rate is scheduled over `training.num_steps` either way.
      minutes: time limit in minutes. None for no limit.
      init_from: model directory to initialize the weights of a new run from. None for random
        initialization.
      strategy: distribution strategy; see `create_strategy`. A run may be resumed with another
        number of replicas.
      cpu_devices: number of virtual CPU devices; see `create_strategy`.

    Returns:
      A dictionary with
        step: the last step.
        loss: mean training loss over the last 100 steps with targets, in nats per target.
        tokens_per_second: throughput over the recent steps, excluding the first execution.
        steps_without_targets: steps of this call without any target, which have no loss and change
          no weight.

    Raises:
      ConfigError: the configuration is invalid or does not match the data set or `model_dir`.
      DataError: the data set or a model directory cannot be read.
      PreemptedError: SIGTERM was received; a checkpoint was saved.
      DivergedError: the loss or gradient norm is not finite.
    """
    config.check()
    steps = config.training.num_steps if steps is None else steps
    distribution = prepare_devices(config.training, strategy, cpu_devices)
    vocab = os.path.join(init_from or data_dir, VOCAB_FILE)
    records = Records(data_dir, config, vocab if init_from else None)
    rows = rows_at_once(config.training, distribution.num_replicas_in_sync)
    require_memory(config.model, rows, config.data.seq_len, training=True)
    tf_keras.utils.set_random_seed(config.training.seed)
    data = RunData(config.training, records, distribution)
    with only_writer(model_dir, is_chief(distribution)):
        saved = newest_checkpoint(model_dir)
        _write_model_dir(config, model_dir, vocab, saved, data, init_from, is_chief(distribution))
        with distribution.scope():
            state = _create_state(config, init_from if saved is None else None)
        if saved is not None:
            model_directory.restore_run(saved.prefix, model=state.model, optimizer=state.optimizer)
        start_step = int(state.optimizer.iterations.numpy())
        data.go_to(start_step, saved)
        state.model.compile(
            state.optimizer,
            jit_compile=config.training.jit_compile and can_compile(distribution),
            steps_per_execution=config.training.steps_per_execution,
        )
        tokens_per_second, steps_without_targets = 0.0, 0
        if start_step < steps:
            _announce(config, data, steps, init_from, distribution)
            writer = CheckpointWriter(
                state, model_dir, config.training.keep_checkpoints, is_chief(distribution)
            )
            with TerminationSignal() as termination:
                run = RunCallback(config, model_dir, data, writer, termination, steps, minutes)
                _fit(state, data, data_dir, steps - start_step, run)
            tokens_per_second = run.tokens_per_second
            steps_without_targets = run.steps_without_targets
            if run.preempted:
                step = int(state.optimizer.iterations.numpy())
                raise PreemptedError(f"preempted at step {step}; checkpoint saved in {model_dir}")
        losses = [line["loss"] for line in read_history(model_dir)]
        if not losses:
            raise DataError(f"{data_dir}: expected windows with targets, got no target in any step")
        return {
            "step": int(state.optimizer.iterations.numpy()),
            "loss": float(np.mean(losses[-_FINAL_STEPS:])),
            "tokens_per_second": tokens_per_second,
            "steps_without_targets": steps_without_targets,
        }


def _fit(
    state: tf.train.Checkpoint, data: RunData, data_dir: str, num_steps: int, run: RunCallback
) -> None:
    """Takes steps with `Model.fit`; the callback logs, saves and stops."""
    with reading_errors(data_dir, "train"):
        state.model.fit(data.training(), steps_per_epoch=num_steps, verbose=0, callbacks=[run])


def _announce(
    config: XLNetConfig,
    data: RunData,
    steps: int,
    init_from: str | None,
    distribution: tf.distribute.Strategy,
) -> None:
    """Says what the run is about to do, and warns of what cannot be right."""
    if not is_chief(distribution):
        return
    replicas = distribution.num_replicas_in_sync
    Progress(sys.stderr).keep(run_plan.plan(config, data.lanes, steps, replicas))
    for warning in run_plan.warnings(config, data.lanes, steps, init_from is not None):
        logging.warning(warning)
    with reading_errors(data.records.path, "train"):
        sections = ObjectiveSections.of(config)
        warn_of_few_targets(count_targets(data.batch(0), sections), sections)


def _write_model_dir(
    config: XLNetConfig,
    model_dir: str,
    vocab: str,
    saved: SavedState | None,
    data: RunData,
    init_from: str | None,
    chief: bool,
) -> None:
    """Creates the model directory of a new run, or updates the configuration of a resumed one."""
    inputs = {"records": data.checksum, "initial weights": weights_checksum(init_from)}
    check_inputs(model_dir, inputs, saved is not None, chief)
    if saved is not None:
        _check_resumable(config, model_dir)
        data.records.check_vocabulary(os.path.join(model_dir, VOCAB_FILE))
    if chief:
        if saved is None:
            model_directory.create_model_dir(model_dir, config, vocab)
        else:
            config.save(model_dir)


def _create_state(config: XLNetConfig, init_from: str | None) -> tf.train.Checkpoint:
    """Creates the model, with random weights or those of `init_from`, and its optimizer."""
    if init_from:
        model = model_directory.load_pretrainer(init_from, config)
    else:
        model = XLNetPretrainer(config)
    optimizer = create_optimizer(config.training, config.model.num_layers)
    optimizer.build(model.trainable_variables)
    return tf.train.Checkpoint(model=model, optimizer=optimizer)


def _check_resumable(config: XLNetConfig, model_dir: str) -> None:
    """Raises `ConfigError` if the run in `model_dir` cannot be resumed with `config`."""
    if not os.path.exists(os.path.join(model_dir, CONFIG_FILE)):
        raise DataError(
            f"{model_dir}: expected a model directory, got a checkpoint without {CONFIG_FILE}"
        )
    saved = load_config(model_dir)
    for section, keys in (
        ("model", tuple(saved.model.as_dict())),
        ("data", tuple(saved.data.as_dict())),
        ("objective", tuple(saved.objective.as_dict())),
        ("training", ("seed",)),
    ):
        model_directory.check_same(saved, config, section, keys, model_dir)
