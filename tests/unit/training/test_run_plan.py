"""What a run says before it starts: by hand."""

import re

import pytest

from official.xlnet.data.schema import SplitManifest
from official.xlnet.training import run_plan
from tests.helpers.tiny import tiny_config


def make(windows=1000, **changes):
    config = tiny_config(batch_size=6, seq_len=29, reuse_len=11, learning_rate=2e-3, **changes)
    data = SplitManifest(
        documents=3, tokens=windows * 11, windows=windows, dropped_tokens=0, num_lanes=2,
        windows_per_lane=windows // 2, files={},
    )  # fmt: skip
    return config, data


def test_the_plan_names_sizes_and_passes():
    config, data = make()
    text = run_plan.plan(config, data, steps=5000)
    assert f"{config.model.num_parameters / 1e6:.1f} M parameters" in text
    assert "5,000 steps of 6 x 29 tokens (0.9 M tokens)" in text  # 870,000
    assert "30.0 passes over 1,000 windows" in text


@pytest.mark.parametrize(
    ("changes", "steps", "expected"),
    [
        ({}, 17_000, r"read 102 times, expected at most 100; .* or train for 16,666 steps"),
        ({"learning_rate": 0.5}, 50, "learning_rate: 0.5 is far from 0.00"),
        ({"learning_rate": 1e-6}, 50, "learning_rate: 1e-06 is far from 0.00"),
    ],
)
def test_what_cannot_be_right_is_a_warning(changes, steps, expected):
    config, data = make()
    for key, value in changes.items():
        setattr(config.training, key, value)
    (warning,) = run_plan.warnings(config, data, steps)
    assert re.search(expected, warning)
