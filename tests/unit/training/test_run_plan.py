"""What a run says before it starts: by hand."""

import re

import pytest

from official.xlnet.data.schema import SplitManifest
from official.xlnet.training import run_plan
from tests.helpers.tiny import tiny_config

DATA = SplitManifest(
    documents=3, tokens=11000, windows=1000, dropped_tokens=0, num_lanes=2,
    windows_per_lane=500, files={},
)  # fmt: skip


def config(rate=2e-3):
    return tiny_config(batch_size=6, seq_len=29, reuse_len=11, learning_rate=rate)


def test_the_plan_names_sizes_and_passes():
    text = run_plan.plan(config(), DATA, steps=5000)
    assert f"{config().model.num_parameters / 1e6:.1f} M parameters" in text
    assert "5,000 steps of 6 x 29 tokens (0.9 M tokens)" in text  # 870,000
    assert "30.0 passes over 1,000 windows" in text
    # Equation D.1 by hand: ln(302e6) = 19.526.
    assert run_plan.usual_learning_rate(302_000_000) == pytest.approx(5.151e-4, rel=1e-3)


@pytest.mark.parametrize(
    ("rate", "steps", "is_continued", "expected"),
    [
        (2e-3, 5000, False, None),
        (2e-3, 17_000, False, r"read 102 times, expected at most 100; .*train for 16,666 steps"),
        (0.5, 50, False, r"learning_rate: 0.5 is far from 0\.00"),
        (1e-6, 50, False, r"learning_rate: 1e-06 is far from 0\.00"),
        (1e-6, 50, True, None),
    ],
)
def test_what_cannot_be_right_is_a_warning(rate, steps, is_continued, expected):
    found = run_plan.warnings(config(rate), DATA, steps, is_continued)
    assert len(found) == (expected is not None)
    assert expected is None or re.search(expected, found[0])
