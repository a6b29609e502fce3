"""`pretrain`: a configuration and a data set in, a model directory out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from official.xlnet.api.arguments import Model, Override
from official.xlnet.api.verbs import TRAIN, register_verb
from official.xlnet.configs.choices import CLUSTER_TIMEOUT
from official.xlnet.configs.experiment import XLNetConfig, recipe_path
from official.xlnet.configs.key_marks import OF_FINETUNING
from official.xlnet.configs.registry import STRATEGIES
from official.xlnet.configs.validation import require
from official.xlnet.files.arguments import COMMAS, Path, RunDirectory, Strategy
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOfRegistry, Range
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb("pretrain", group=TRAIN)
@public(overrides="set", data_dir="data", model_dir="output")
def pretrain(
    config: Path | XLNetConfig,
    data: Path | Annotated[Sequence[Path], COMMAS],
    output: RunDirectory,
    set: Sequence[Override] = (),
    steps: Annotated[int, Range(1)] | None = None,
    minutes: Annotated[float, Range(0, 10_000_000)] | None = None,
    init_from: Model | None = None,
    strategy: Annotated[str, OneOfRegistry(STRATEGIES)] | Strategy = "one_device",
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
      cluster_timeout: longest wait for the other workers of a run, in seconds.

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
    from official.xlnet.checkpoints.any_format import load_config

    if isinstance(config, str):
        config = load_config(recipe_path(config), set)
    else:
        config = config.changed(set)
    training = config.training
    for key, default in training.unused_keys(OF_FINETUNING, training.own_keys()).items():
        expected = f"{default!r}, as only fine-tuning reads it"
        require(False, f"training.{key}", expected, getattr(training, key))
    with loading_tensorflow():
        from official.xlnet.training.pretraining import prepared_pretraining
    with prepared_pretraining(
        config,
        data,
        output,
        steps=steps,
        minutes=minutes,
        init_from=init_from,
        strategy=strategy,
        cpu_devices=cpu_devices,
        cluster_timeout=cluster_timeout,
    ) as run:
        run.loop.train(run.inputs, init_from)
        return run.finish()
