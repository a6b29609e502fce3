"""Pre-training: a configuration and a data set in, a model directory out."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.any_format import weights_checksum
from official.xlnet.configs.choices import CLUSTER_TIMEOUT
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.pretraining_dataset import Records, reading_errors
from official.xlnet.errors import DataError
from official.xlnet.files.arguments import weighted
from official.xlnet.files.locks import only_writer
from official.xlnet.runtime.distribution import prepare_devices
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.host import host_state_kept
from official.xlnet.runtime.pages import PretrainingRun, write_pages
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.training.pretraining_loop import PretrainingLoop
from official.xlnet.training.run_data import RunData

_FINAL_STEPS = 100  # The reported loss is the mean over these last steps.


@host_state_kept()
def run_pretraining(
    config: XLNetConfig,
    data: str | Sequence[str],
    output: str,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    init_from: str | None = None,
    strategy: str | tf.distribute.Strategy = "one_device",
    cpu_devices: int = 1,
    cluster_timeout: float = CLUSTER_TIMEOUT,
) -> dict[str, float]:
    """Pre-trains a model of a configuration; see `official.xlnet.api.pretrain.pretrain`."""
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
