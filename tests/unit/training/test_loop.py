"""What every training run tells of its speed and of the time left, and how it ends."""

import types
from unittest import mock

import pytest
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.training import loop as loop_module
from official.xlnet.training.loop import Loop


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    times = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(loop_module.time, "monotonic", lambda: times.now)
    return times


@pytest.fixture
def loop(clock, tmp_path):
    """A loop whose surroundings do nothing, as if `train` had begun after step 10."""
    config = XLNetConfig()
    config.training.checkpoint_steps = 10_000
    loop = Loop(config, str(tmp_path), "", tf.distribute.get_strategy(), last_step=1000)
    model = types.SimpleNamespace(stop_training=False, has_loss_scale=False)
    loop.set_model(model)
    loop.state = types.SimpleNamespace(
        model=model, optimizer=types.SimpleNamespace(learning_rate=0.1)
    )
    loop.step = loop._start = loop._saved_step = 10
    loop.log, loop._writer = mock.Mock(), mock.Mock()
    loop._loss_scale, loop._deadline = 1.0, float("inf")
    loop._termination = types.SimpleNamespace(received=False)
    return loop


def told(loop, batch, **metrics):
    """The progress line after a step."""
    loop.on_train_batch_end(batch, {"loss": 1.5, "targets": 7.0, **metrics})
    return loop.log.progress.call_args.args[0]


def test_speed_and_time_left_are_of_the_latest_executions(loop, clock):
    """The first step compiles for 90 s; steps take 5 s; the machine sleeps for an hour; 2 s."""
    lines = []
    for batch in range(150):
        clock.now += {0: 90, 20: 3600}.get(batch, 5 if batch < 20 else 2)
        lines.append(told(loop, batch))
    assert lines[0] == "step 11/1000  loss 1.5000"
    assert lines[1] == "step 12/1000  loss 1.5000  82:20 left"
    assert loop.steps_per_second == pytest.approx(1 / 2)
    assert lines[149].endswith("28:00 left")  # 840 steps.


def test_a_limit_of_time_is_what_is_left_and_ends_the_run(loop, clock):
    loop._deadline = 100.0
    clock.now = 40
    assert told(loop, 0).endswith("  1:00 left")
    assert not loop.model.stop_training
    clock.now = 100
    assert told(loop, 1).endswith("  0:00 left")
    assert loop.model.stop_training and not loop._preempted
    loop.on_train_end()
    loop._writer.save.assert_called_once_with(12)
