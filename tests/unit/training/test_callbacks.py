"""What a run tells of its speed and of the time left."""

import types
from unittest import mock

import pytest
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.training import callbacks, finetuning_callback
from official.xlnet.training.finetuning_callback import FineTuningCallback

STEPS, TOKENS = 150, 3 * 7


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    times = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(callbacks.time, "monotonic", lambda: times.now)
    return times


@pytest.fixture
def callback(clock, tmp_path, monkeypatch):
    """A callback whose surroundings do nothing."""
    config = XLNetConfig()
    config.training.batch_size, config.data.seq_len = 3, 7
    config.training.evaluation_steps, config.training.checkpoint_steps = 0, 2 * STEPS
    data = types.SimpleNamespace(start_step=0, records=None)
    baseline = types.SimpleNamespace(loss=6.5, not_beaten=lambda *_: None)
    monkeypatch.setattr(callbacks, "UnigramBaseline", lambda *_: baseline)
    termination = types.SimpleNamespace(received=False)
    callback = callbacks.RunCallback(
        config,
        str(tmp_path),
        data,
        mock.Mock(),
        termination,
        last_step=1000,
        minutes=None,
    )
    callback._strategy = tf.distribute.get_strategy()
    callback._watch, callback._log = mock.Mock(), mock.Mock()
    callback._watch.see.return_value = False
    callback.set_model(types.SimpleNamespace(stop_training=False, has_loss_scale=False))
    return callback


def test_speed_and_time_left_are_of_the_latest_executions(callback, clock):
    """Steps take 5 s, the machine sleeps for an hour, steps take 2 s."""
    told = {}
    for step in range(1, STEPS + 1):
        clock.now += 3600 if step == 20 else 5 if step < 20 else 2
        callback.on_train_batch_end(step - 1, {"loss": 1.5, "gradient_norm": 1.0, "targets": 7.0})
        told[step] = callback._log.progress.call_args.args[0]
    assert "left" not in told[1]  # The first execution was compiled first.
    loss = "loss 1.500 (unigrams 6.500)"
    assert told[2] == f"step 2/1000  {loss}  {TOKENS / 5:.0f} tokens/s  83:10 left"
    assert callback.tokens_per_second == pytest.approx(TOKENS / 2)
    assert told[STEPS].endswith("28:20 left")  # 850 steps.


def test_fine_tuning_tells_the_time_left_from_its_second_step_on(clock, tmp_path, monkeypatch):
    """The first step compiles for 90 s, the others take 2 s."""
    config = XLNetConfig()
    config.training.num_steps, config.training.checkpoint_steps = 40, 100
    model = tf.Module()
    model.encoder, model.head = tf.Module(), tf.Module()
    model.has_loss_scale = False
    model.optimizer = types.SimpleNamespace(iterations=tf.Variable(10), learning_rate=0.1)
    model.distribute_strategy = tf.distribute.get_strategy()
    run = tf.train.Checkpoint(model=model, state=finetuning_callback.EvaluationState())
    task = types.SimpleNamespace(config=config)
    termination = types.SimpleNamespace(received=False)
    callback = FineTuningCallback(task, [], str(tmp_path), run, termination)
    callback.set_model(model)
    callback.on_train_begin()
    told = []
    monkeypatch.setattr(callback._log, "progress", lambda text, is_last: told.append(text))
    for batch in range(3):
        clock.now += 2 if batch else 90
        callback.on_train_batch_end(batch, {"loss": 0.5, "targets": 3.0})
    callback.on_train_end()
    assert told == [
        "step 11/40  loss 0.5000",
        "step 12/40  loss 0.5000  0:56 left",
        "step 13/40  loss 0.5000  0:54 left",
    ]
