"""Pre-training: a configuration and a data set in, a model directory out."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence

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
from official.xlnet.training.run_end import end_set_aside

_FINAL_STEPS = 100  # The reported loss is the mean over these last steps.


@dataclasses.dataclass(frozen=True)
class PreparedPretraining:
    """A pre-training run whose data is open and whose directory is locked.

    Attributes:
      loop: the training loop; `loop.train(inputs, init_from)` runs the remaining steps.
      inputs: checksums of what the run is made from.
      records: the data sets; the first one is evaluated.
      paths: their directories.
      output: the model directory.
    """

    loop: PretrainingLoop
    inputs: dict[str, str | None]
    records: Sequence[Records]
    paths: Sequence[str]
    output: str

    def finish(self) -> dict[str, float]:
        """Returns the result of the run, see `pretrain`, and writes its pages.

        Raises:
          DataError: no window had a target.
        """
        loop, history = self.loop, read_history(self.output)
        if not history:
            where = ", ".join(self.paths)
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
            is_tpu = isinstance(loop.strategy, tf.distribute.TPUStrategy)
            is_alone = loop.strategy.num_replicas_in_sync == 1 and not is_tpu
            has_learned = result["loss"] < (loop.unigram_loss or 0.0)
            run = PretrainingRun(
                directory=self.output,
                result=result,
                records=self.records[0],
                unigram_loss=loop.unigram_loss,
                model=loop.state.model if is_alone and has_learned else None,
            )
            write_pages("pretraining", self.output, lambda: run)
        return result


@contextlib.contextmanager
def prepared_pretraining(
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
) -> Iterator[PreparedPretraining]:
    """Context manager that opens the data of a run and locks its directory.

    See `official.xlnet.api.pretrain.pretrain` for the arguments. The random state of Python and
    NumPy is restored at the end.
    """
    with host_state_kept(), end_set_aside(output), contextlib.ExitStack() as stack:
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
        stack.enter_context(only_writer(output, loop.is_chief))
        stack.enter_context(reading_errors(paths[0], "train", *paths[1:]))
        stack.enter_context(loop.workers.lost_worker_errors())
        yield PreparedPretraining(loop, inputs, records, paths, output)
