"""What every training run tells of its speed, its losses and the time left, and how it ends."""

import contextlib
import types
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import DataError, DivergedError
from official.xlnet.training import finetuning_loop
from official.xlnet.training import loop as loop_module
from official.xlnet.training.finetuning_loop import EvaluationState, FineTuningLoop
from official.xlnet.training.loop import Loop
from official.xlnet.training.pretraining_loop import PretrainingLoop


@pytest.fixture
def loop(monkeypatch, tmp_path):
    """A loop as if `train` had begun after step 10; its clock is `loop.now`."""
    loop = Loop(XLNetConfig(), str(tmp_path), "", tf.distribute.get_strategy(), last_step=1000)
    loop.config.training.checkpoint_steps, loop.now = 10_000, 0.0
    monkeypatch.setattr(loop_module.time, "monotonic", lambda: loop.now)
    optimizer = types.SimpleNamespace(learning_rate=0.1, loss_scale=8.0)
    model = types.SimpleNamespace(stop_training=False, has_loss_scale=False, optimizer=optimizer)
    loop.set_model(model)
    loop.state = types.SimpleNamespace(model=model, optimizer=optimizer)
    loop.step = loop.start = loop._saved_step = 10
    loop.log, loop._writer = mock.Mock(), mock.Mock()
    loop._loss_scale, loop._deadline = 1.0, float("inf")
    loop._termination = types.SimpleNamespace(received=False)
    return loop


def told(loop, batch, **metrics):
    """The progress line after a step."""
    usual = {"loss": 1.5, "targets": 7.0, "gradient_norm": 2.5}
    loop.on_train_batch_end(batch, {**usual, **metrics})
    return loop.log.show.call_args.args[0]


def test_speed_and_time_left_are_of_the_latest_executions(loop):
    """The first step compiles for 90 s; steps take 5 s; the machine sleeps for an hour; 2 s."""
    lines = []
    for batch in range(150):
        loop.now += {0: 90, 20: 3600}.get(batch, 5 if batch < 20 else 2)
        lines.append(told(loop, batch))
    assert lines[0] == "step 11/1000  loss 1.5000"
    assert lines[1] == "step 12/1000  loss 1.5000  82:20 left"
    assert loop.steps_per_second == pytest.approx(1 / 2)
    assert lines[149].endswith("28:00 left")  # 840 steps.


def test_a_limit_of_time_is_what_is_left_and_ends_the_run(loop):
    loop._deadline = 100.0
    for batch, now, left in ((0, 40, "  1:00 left"), (1, 100, "  0:00 left")):
        loop.now = now
        assert told(loop, batch).endswith(left)
        assert loop.model.stop_training == (batch == 1) and not loop._preempted
    loop.on_train_end()
    loop._writer.save.assert_called_once_with(12, bad_steps=0)


@pytest.mark.parametrize(
    ("scales", "loss", "norm", "wanted"),
    [
        ((16, 8), 1.5, np.inf, "overflow"),
        ((8, 8), 1.5, 2.5, "history"),
        ((8, 8), 1.5, np.inf, "diverged"),  # As 1, the lowest scale, stays.
        ((16, 8), np.nan, np.inf, "diverged"),
    ],
)
def test_an_overflow_is_skipped_and_what_no_scale_repairs_is_a_divergence(
    loop, scales, loss, norm, wanted
):
    loop._loss_scale, loop.model.optimizer.loss_scale = scales
    loop.model.has_loss_scale = True
    stops = pytest.raises(DivergedError, match="step 11: expected a finite loss")
    with stops if wanted == "diverged" else contextlib.nullcontext():
        told(loop, 0, loss=loss, gradient_norm=norm)
    assert loop.log.history.called == (wanted == "history")
    events = [call.args[0] for call in loop.log.event.call_args_list]
    assert events == {"overflow": ["overflow"], "diverged": ["bad step"]}.get(wanted, [])


@pytest.mark.parametrize(
    ("bad", "resumed", "stops_at"),
    [  # Of steps from 11 on, those that are bad; how many were so at the checkpoint.
        (range(11, 40), 0, 20),
        (range(11, 40), 7, 13),
        ([11, 12, *range(14, 40)], 7, 23),
        ([*range(11, 20), *range(21, 30)], 0, None),
    ],
)
def test_bad_steps_are_skipped_until_there_are_ten_in_a_row(loop, bad, resumed, stops_at):
    loop.config.training.on_bad_step = "skip"
    loop._resume({"bad_steps": resumed} if resumed else {})  # Earlier versions have no such key.
    counts = []
    with contextlib.nullcontext() if stops_at is None else pytest.raises(DivergedError) as error:
        for batch in range(25):
            # A loss may be finite where a gradient is not.
            told(loop, batch, gradient_norm=np.nan if batch + 11 in bad else 1.0)
            counts.append(loop.record()["bad_steps"])
    taken = range(11, stops_at or 36)
    expected, number = [], resumed
    for step in taken:
        number = number + 1 if step in bad else 0
        expected.append(number)
    assert counts == expected
    assert stops_at is None or str(error.value).startswith(f"step {stops_at}: expected a finite")
    reported = [call.kwargs["step"] for call in loop.log.event.call_args_list]
    assert reported == [step for step in range(11, (stops_at or 35) + 1) if step in bad]
    assert loop.log.history.call_count == len([step for step in taken if step not in bad])


def test_a_damaged_number_of_bad_steps_is_one_sentence(loop):
    with pytest.raises(DataError, match=r"bad_steps of the newest checkpoint: expected .*'many'"):
        loop._resume({"bad_steps": "many"})


def test_steps_without_targets_are_counted_and_reported_once(loop):
    for batch in (2, 5):  # Three steps an execution.
        assert "no targets" in told(loop, batch, targets=0.0, loss=float("nan"))
    assert loop.steps_without == 6 and not loop.log.history.called
    assert [call.args[0] for call in loop.log.event.call_args_list] == ["steps without targets"]


@pytest.mark.parametrize(("targets", "shown"), [(0.0, "no targets"), (7.0, "loss nan")])
def test_a_bad_step_is_not_shown_as_one_without_targets(targets, shown):
    loop = types.SimpleNamespace(_baseline=types.SimpleNamespace(loss=5), tokens_per_second=0.0)
    metrics = {"loss": float("nan"), "targets": targets}
    assert PretrainingLoop.describe(loop, metrics) == f"{shown} (unigrams 5.000)"


@pytest.mark.parametrize(
    ("metric", "values", "saved"),
    [
        ("accuracy", [0.5, 0.25, 0.75], [1, 3]),
        ("pearson", [None, None, -0.5, None, 0.25], [1, 2, 3, 5]),
        ("root_mean_squared_error", [None, 3.0, 4.0, 2.0, None], [1, 2, 4]),
    ],
)
def test_the_best_checkpoint_by_any_metric(metric, values, saved, monkeypatch):
    """Of errors the lowest; an undefined one is better than none."""
    task = mock.Mock(config=XLNetConfig.from_dict({"task": {"metric": metric, "patience": 9}}))
    written: list[int] = []
    loop = mock.Mock(config=task.config, _task=task, evaluations=EvaluationState(), _last_step=9)
    loop._best.save, loop.state.model.encoder.lora = written.append, None
    loop.config.training.checkpoint_steps = 1
    for loop.step, value in enumerate(values, start=1):
        evaluation = mock.Mock(return_value=([], {metric: value}))
        monkeypatch.setattr(finetuning_loop, "evaluate_examples", evaluation)
        assert FineTuningLoop.evaluate(loop, loop.step - 1)
    assert written == saved and loop.evaluations.best_step == saved[-1]
    assert loop.evaluations.best == values[saved[-1] - 1]
    assert "undefined" in loop.log.log_line.call_args_list[0][0][0] or values[0] is not None
