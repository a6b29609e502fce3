"""Pre-training from the path of a recipe."""

from __future__ import annotations

from collections.abc import Sequence

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.files.arguments import checks_arguments
from official.xlnet.training import pretraining


@checks_arguments("config", "data_dir", "model_dir", "init_from", steps=1, minutes=0)
def pretrain(
    config: str | XLNetConfig,
    data_dir: str,
    model_dir: str,
    overrides: Sequence[str] = (),
    steps: int | None = None,
    minutes: float | None = None,
    init_from: str | None = None,
    strategy: str = "one_device",
) -> dict[str, float]:
    """Pre-trains a model, or resumes a run, and writes a model directory.

    Args:
      config: YAML file, trained model in any format, or a loaded configuration.
      data_dir: data set directory, written by `xlnet prepare`.
      model_dir: model directory to create, or to resume from.
      overrides: `key=value` strings for a `config` that is a path; see `XLNetConfig.load`.
      steps: step to stop at; see `training.pretraining.pretrain`, also for what follows.
      minutes: time limit in minutes.
      init_from: trained model in any format to initialize the weights of a new run from.
      strategy: distribution strategy.

    Returns:
      `step`, `loss` (nats per target) and `tokens_per_second`.

    Raises:
      ConfigError: the configuration is invalid or does not match the data set or `model_dir`.
      DataError: the data set or a model cannot be read.
      PreemptedError: SIGTERM was received; a checkpoint was saved.
      DivergedError: the loss or gradient norm is not finite.

    Example:
      >>> pretrain("configs/tiny.yaml", "runs/data", "runs/model", ["training.num_steps=1000"])
    """
    if isinstance(config, str):
        config = load_config(config, list(overrides))
    return pretraining.pretrain(
        config,
        data_dir,
        model_dir,
        steps=steps,
        minutes=minutes,
        init_from=init_from,
        strategy=strategy,
    )
