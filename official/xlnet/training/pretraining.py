"""A pre-training run: data, model and `fit`, from where an earlier run stopped.

The run's state is in its checkpoint: weights, optimizer, memory and the position in the data. A
batch, its targets, orders and dropout are functions of position and step, so a run that was
killed and started again takes the steps it would have taken.
"""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf
import tf_keras

from official.xlnet.checkpoints import model_directory
from official.xlnet.checkpoints.checkpoint_files import CheckpointWriter, newest_checkpoint
from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig
from official.xlnet.data.pretraining_dataset import pretraining_dataset, reading_errors
from official.xlnet.errors import DataError, PreemptedError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.allocator import release_memory
from official.xlnet.runtime.distribution import (
    can_compile,
    create_strategy,
    is_chief,
    limit_threads,
)
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.preemption import TerminationSignal
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.training.callbacks import RunCallback
from official.xlnet.training.optimization import create_optimizer
from official.xlnet.training.run_data import RunData

_FINAL_STEPS = 100  # The loss of a run is the mean over so many of its last steps.


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
    """Trains until a step or a time, and leaves a model directory that can be continued.

    Args:
      config: the configuration. That of a run to be continued may differ from the earlier one
        in `training` only, and there not in `seed`.
      data_dir: a data set of `xlnet prepare`.
      model_dir: where the model is, or is to be.
      steps: the step to stop at, counted from the start of the first run; `training.num_steps`
        by default. The learning rate goes by `training.num_steps` in any case.
      minutes: stop after so much time, if that is earlier.
      init_from: a model directory to take the first weights from.
      strategy: see `create_strategy`; another number of replicas may continue a run.
      cpu_devices: see `create_strategy`.

    Returns:
      step: the step that was reached.
      loss: mean over the last 100 steps, in nats per target.
      tokens_per_second: of the latest steps, without the first one.

    Raises:
      ConfigError, DataError: configuration, data and directories do not fit together.
      PreemptedError: SIGTERM came; the state is saved.
      DivergedError: a loss or gradient was no number.
    """
    steps = config.training.num_steps if steps is None else steps
    limit_threads(config.training)
    release_memory(config.training)
    distribution = create_strategy(strategy, cpu_devices)
    tf_keras.mixed_precision.set_global_policy(config.training.precision)
    tf_keras.utils.set_random_seed(config.training.seed)
    # Opened first: wrong data leaves no half-made model directory behind.
    vocab = os.path.join(init_from or data_dir, VOCAB_FILE)
    pretraining_dataset(data_dir, config.training.batch_size, config=config, vocab=vocab)
    data = RunData(config, data_dir, os.path.join(model_dir, VOCAB_FILE), distribution)
    saved = newest_checkpoint(model_dir)
    if saved is not None:
        _check_continues(config, model_dir)
    if is_chief(distribution):
        if saved is None:
            model_directory.create_model_dir(model_dir, config, vocab)
        else:
            config.save(model_dir)

    with distribution.scope():
        if init_from and saved is None:
            model = model_directory.load_pretrainer(init_from, config)
        else:
            model = XLNetPretrainer(config)
        optimizer = create_optimizer(config.training, config.model.num_layers)
        optimizer.build(model.trainable_variables)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer)
    if saved is not None:
        with model_directory.reading_checkpoint(saved.prefix):
            state.restore(saved.prefix).assert_consumed()
    start_step = int(optimizer.iterations.numpy())
    data.go_to(start_step, saved)
    model.compile(
        optimizer,
        jit_compile=config.training.jit_compile and can_compile(distribution),
        steps_per_execution=config.training.steps_per_execution,
    )
    tokens_per_second = 0.0
    if start_step < steps:
        keep = config.training.keep_checkpoints
        writer = CheckpointWriter(state, model_dir, keep, is_chief(distribution))
        with TerminationSignal() as termination:
            run = RunCallback(config, model_dir, data, writer, termination, steps, minutes)
            with reading_errors(data_dir, "train"):
                model.fit(
                    data.training(), steps_per_epoch=steps - start_step, verbose=0, callbacks=[run]
                )
        tokens_per_second = run.tokens_per_second
        if run.preempted:
            step = int(optimizer.iterations.numpy())
            raise PreemptedError(f"told to leave at step {step}, which is saved in {model_dir}")
    losses = [line["loss"] for line in read_history(model_dir)]
    return {
        "step": int(optimizer.iterations.numpy()),
        "loss": float(np.mean(losses[-_FINAL_STEPS:])),
        "tokens_per_second": tokens_per_second,
    }


def _check_continues(config: XLNetConfig, model_dir: str) -> None:
    """Raises `ConfigError` where a run with `config` would not be the one in `model_dir`."""
    if not os.path.exists(os.path.join(model_dir, CONFIG_FILE)):
        raise DataError(f"{model_dir} holds a checkpoint but no {CONFIG_FILE}: no model directory")
    saved = XLNetConfig.load(model_dir)
    for section, keys in (
        ("model", tuple(saved.model.as_dict())),
        ("data", tuple(saved.data.as_dict())),
        ("objective", tuple(saved.objective.as_dict())),
        ("training", ("seed",)),
    ):
        model_directory.check_same(saved, config, section, keys, model_dir)
