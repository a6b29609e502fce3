"""Pre-training: a configuration and a data set in, a model directory out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.any_format import load_config, weights_checksum
from official.xlnet.configs.choices import CLUSTER_TIMEOUT
from official.xlnet.configs.experiment import XLNetConfig, recipe_path
from official.xlnet.configs.registry import STRATEGIES
from official.xlnet.configs.validation import require
from official.xlnet.data.pretraining_dataset import Records, reading_errors
from official.xlnet.errors import DataError
from official.xlnet.files.arguments import COMMAS, Path, RunDirectory, weighted
from official.xlnet.files.locks import only_writer
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOfRegistry, Range
from official.xlnet.runtime.distribution import prepare_devices
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.host import host_state_kept
from official.xlnet.runtime.pages import PretrainingRun, write_pages
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.training.pretraining_loop import PretrainingLoop
from official.xlnet.training.run_data import RunData

_FINAL_STEPS = 100  # The reported loss is the mean over these last steps.


@public(overrides="set", data_dir="data", model_dir="output")
@host_state_kept()
def pretrain(
    config: Path | XLNetConfig,
    data: Path | Annotated[Sequence[Path], COMMAS],
    output: RunDirectory,
    set: Sequence[str] = (),
    steps: Annotated[int, Range(1)] | None = None,
    minutes: Annotated[float, Range(0, 10_000_000)] | None = None,
    init_from: Path | None = None,
    strategy: Annotated[str, OneOfRegistry(STRATEGIES)] | tf.distribute.Strategy = "one_device",
    cpu_devices: Annotated[int, Range(1, 256)] = 1,
    cluster_timeout: Annotated[float, Range(1, 1_000_000)] = CLUSTER_TIMEOUT,
) -> dict[str, float]:
    """Pre-trains a model on a data set of `xlnet prepare`.

    To resume an interrupted run, run the same command again. In Python, the random state of Python
    and NumPy is restored; TensorFlow and Keras stay seeded with `training.seed`.

    Args:
      config: YAML file, trained model in any format, or a loaded configuration. A resumed run may
        change `training` only, except `training.seed` and frozen weights.
      data: data set directory of `xlnet prepare`; or several with their shares of a batch:
        `a:3,b:1`. The first one is evaluated.
      output: model directory to create, or to resume from.
      set: configuration override `key=value`, see `XLNetConfig.load`; may be repeated. A loaded
        configuration stays as it is.
      steps: step to stop at, counted from the start of the first run; default:
        `training.num_steps`, over which the learning rate is scheduled either way.
      minutes: time limit in minutes; default: none.
      init_from: model to start a new run from; default: random weights.
      strategy: distribution strategy; see `create_strategy`. A run may be resumed with another
        number of replicas.
      cpu_devices: number of virtual CPU devices, for `mirrored` without GPUs.
      cluster_timeout: longest wait for the other workers of `multi_worker`, in seconds.

    Returns:
      A dictionary with
        step: the last step.
        loss: mean training loss over the last 100 steps, in nats per target.
        tokens_per_second: throughput over the recent steps, excluding the first execution.
        steps_without_targets: steps of this call without any target, which have no loss and change
          no weight.

    Raises:
      ConfigError: the configuration is invalid or does not match the data set or `output`.
      DataError: the data set or a model directory cannot be read.
      PeerLostError: another worker was lost, or did not come in time.
      PreemptedError: SIGTERM was received; a checkpoint was saved.
      KeyboardInterrupt: SIGINT was received (Ctrl-C, Stop in a notebook); a checkpoint was saved.
      DivergedError: the loss or gradient norm is not finite.

    Example:
      $ xlnet pretrain --config=configs/tiny.yaml --data=runs/data --output=runs/model

      >>> pretrain("configs/tiny.yaml", "runs/data", "runs/model", ["training.num_steps=1000"])
    """
    if isinstance(config, str):
        config = load_config(recipe_path(config), set)
    else:
        config = config.changed(set)
    rank = config.training.lora_rank
    require(not rank, "training.lora_rank", "0, as adapters are for fine-tuning", rank)
    distribution = prepare_devices(config.training, strategy, cpu_devices, cluster_timeout)
    several = [data] if isinstance(data, str) else data
    paths, shares = zip(*map(weighted, several), strict=True)
    vocab = os.path.join(init_from or paths[0], VOCAB_FILE)
    records = [Records(path, config, vocab) for path in paths]
    run_data = RunData(config.training, records, distribution, shares)
    inputs = {"records": run_data.checksum, "initial weights": weights_checksum(init_from)}
    loop = PretrainingLoop(
        config,
        run_data,
        init_from is not None,
        output=output,
        vocab=vocab,
        strategy=distribution,
        last_step=config.training.num_steps if steps is None else steps,
        minutes=minutes,
    )
    with (
        only_writer(output, loop.is_chief),
        reading_errors(paths[0], "train", *paths[1:]),
        loop.workers.lost_worker_errors(),
    ):
        loop.train(inputs, init_from)
        history = read_history(output)
        if not history:
            where = ", ".join(paths)
            raise DataError(f"{where}: expected windows with targets, got no target in any step")
        first = history[-1]["step"] - _FINAL_STEPS  # A line may be of several steps.
        losses = [line["loss"] for line in history if line["step"] > first]
        result = {
            "step": loop.step,
            "loss": float(np.mean(losses)),
            "tokens_per_second": loop.tokens_per_second,
            "steps_without_targets": loop.steps_without,
        }
        if loop.is_chief and loop.step > loop.start:
            is_tpu = isinstance(distribution, tf.distribute.TPUStrategy)
            is_alone = distribution.num_replicas_in_sync == 1 and not is_tpu
            has_learned = result["loss"] < (loop.unigram_loss or 0.0)
            run = PretrainingRun(
                directory=output,
                result=result,
                records=records[0],
                unigram_loss=loop.unigram_loss,
                model=loop.state.model if is_alone and has_learned else None,
            )
            write_pages("pretraining", output, lambda: run)
        return result
