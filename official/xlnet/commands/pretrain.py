"""Pre-trains a model on a data set.

A run that was stopped continues where it was when the same command runs again.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.runtime.distribution import STRATEGIES
from official.xlnet.training.pretraining import pretrain

FLAGS = flags.FlagValues()
_CONFIG = flags.DEFINE_string(
    "config", None, "YAML file or model directory.", required=True, flag_values=FLAGS
)
_DATA = flags.DEFINE_string(
    "data", None, "Data set of `xlnet prepare`.", required=True, flag_values=FLAGS
)
_MODEL_DIR = flags.DEFINE_string(
    "model_dir", None, "Directory of the model.", required=True, flag_values=FLAGS
)
_STEPS = flags.DEFINE_integer(
    "steps",
    None,
    "Stop at this step; default: training.num_steps, which the learning rate goes by.",
    lower_bound=1,
    flag_values=FLAGS,
)
_MINUTES = flags.DEFINE_float(
    "minutes", None, "Stop after so much time.", lower_bound=0, flag_values=FLAGS
)
_INIT_FROM = flags.DEFINE_string(
    "init_from", None, "Model directory to take the first weights from.", flag_values=FLAGS
)
_STRATEGY = flags.DEFINE_enum(
    "strategy", "one_device", list(STRATEGIES), "Devices to use.", flag_values=FLAGS
)
_CPU_DEVICES = flags.DEFINE_integer(
    "cpu_devices",
    1,
    "Logical devices to cut the CPU into, to try --strategy=mirrored without GPUs.",
    lower_bound=1,
    flag_values=FLAGS,
)
_SET = flags.DEFINE_multi_string(
    "set", [], "key=value: overrides a key of the configuration.", flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Returns `step`, `loss` (nats per target) and `tokens_per_second`."""
    return pretrain(
        XLNetConfig.load(_CONFIG.value, _SET.value),
        _DATA.value,
        _MODEL_DIR.value,
        steps=_STEPS.value,
        minutes=_MINUTES.value,
        init_from=_INIT_FROM.value,
        strategy=_STRATEGY.value,
        cpu_devices=_CPU_DEVICES.value,
    )
