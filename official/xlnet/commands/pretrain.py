"""Pre-trains a model on a data set of `xlnet prepare`.

Running the same command again resumes an interrupted run.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.choices import STRATEGIES
from official.xlnet.files.staging import on_local_disk

FLAGS = flags.FlagValues()
_CONFIG = flags.DEFINE_string(
    "config", None, "Configuration: YAML file or model directory.", required=True, flag_values=FLAGS
)
_DATA = flags.DEFINE_string(
    "data", None, "Data set of `xlnet prepare`.", required=True, flag_values=FLAGS
)
_MODEL_DIR = flags.DEFINE_string(
    "model_dir", None, "Output model directory.", required=True, flag_values=FLAGS
)
_STEPS = flags.DEFINE_integer(
    "steps",
    None,
    "Stop at this step; default: training.num_steps, over which the learning rate is scheduled.",
    lower_bound=1,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_MINUTES = flags.DEFINE_float(
    "minutes",
    None,
    "Stop after this time, in minutes.",
    lower_bound=0,
    upper_bound=10_000_000,
    flag_values=FLAGS,
)
_INIT_FROM = flags.DEFINE_string(
    "init_from", None, "Model directory to initialize the weights from.", flag_values=FLAGS
)
_STRATEGY = flags.DEFINE_enum(
    "strategy", "one_device", STRATEGIES, "Distribution strategy.", flag_values=FLAGS
)
_CPU_DEVICES = flags.DEFINE_integer(
    "cpu_devices",
    1,
    "Number of logical CPU devices, for --strategy=mirrored without GPUs.",
    lower_bound=1,
    upper_bound=256,
    flag_values=FLAGS,
)
_SET = flags.DEFINE_multi_string(
    "set", [], "Configuration override key=value; may be repeated.", flag_values=FLAGS
)


@on_local_disk(FLAGS, reads=["config", "data", "init_from"], resumes=["model_dir"])
def run() -> dict[str, Any]:
    """Runs pre-training; returns `step`, `loss` (nats per target) and `tokens_per_second`."""
    from official.xlnet.training.pretraining import pretrain

    return pretrain(
        load_config(_CONFIG.value, _SET.value),
        _DATA.value,
        _MODEL_DIR.value,
        steps=_STEPS.value,
        minutes=_MINUTES.value,
        init_from=_INIT_FROM.value,
        strategy=_STRATEGY.value,
        cpu_devices=_CPU_DEVICES.value,
    )
