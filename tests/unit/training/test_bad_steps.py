"""Non-finite losses and loss spikes: what they change, and what is reported."""

import dataclasses
import json
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.api.pretrain import pretrain
from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint
from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
from official.xlnet.checkpoints.saving import save_pretrained
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.lane_schedule import LaneSchedule, Position
from official.xlnet.errors import DivergedError
from official.xlnet.files.schema import conform
from official.xlnet.modeling.models import xlnet_pretrainer, xlnet_task_model
from official.xlnet.runtime.metrics_log import EVENTS_FILE
from official.xlnet.training import run_health
from official.xlnet.training.bad_steps import cause, report_bad_step
from official.xlnet.training.run_data import RunData
from tests.conformance.test_runs_of_keys import FINE_TUNING, fine_tuning
from tests.helpers.compare import assert_all_close, assert_all_equal
from tests.helpers.compiled import make_model, state
from tests.helpers.tiny import MEMORY, random_windows
from tests.helpers.world import eagerly

slow = pytest.mark.slow


def without_targets(batch, rows=slice(None)):
    can_be_target = batch["can_be_target"].numpy()
    can_be_target[rows] = False
    return {**batch, "can_be_target": tf.constant(can_be_target)}


def spoiled(bad, accumulated=xlnet_pretrainer.accumulated):
    """`accumulated`, with one bad gradient and bad values in the memory."""

    def spoil(*arguments):
        summed = accumulated(*arguments)

        def with_bad_values(task, seed):
            gradients, loss_sum, memory = summed(task, seed)
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
            gradients[5] += bad
            memory = tf.where(tf.range(memory.shape[2])[:, None] == 1, bad, memory)
            return gradients, loss_sum, memory

        return with_bad_values

    return spoil


def weights_and_optimizer(model):
    """Values that a bad step leaves alone: all but the number of the step."""
    moments = [variable for variable in model.optimizer.variables if len(variable.shape)]
    variables = [*model.trainable_variables, *moments]
    assert len(variables) == 3 * len(model.trainable_variables)
    scale = float(getattr(model.optimizer, "loss_scale", 1))
    return [scale, *(variable.numpy() for variable in variables)]


@pytest.mark.parametrize(
    ("bad", "changes"),
    [
        (np.nan, {}),
        pytest.param(np.inf, {"clip_norm": 0.0}, marks=slow),
        pytest.param(None, {"optimizer": "lamb", "precision": "mixed_float16"}, marks=slow),
        (None, {"optimizer": "muon", "accumulate_steps": 2, "kind": "causal"}),
        pytest.param(None, {"kind": "denoising", "parallel_slices": 2, "clip_norm": 0}, marks=slow),
    ],
    ids=str,
)
def test_a_bad_step_or_one_without_targets_changes_no_weight(bad, changes, monkeypatch):
    model = make_model(
        num_layers=1, weight_decay=0.3, bidirectional="kind" not in changes, **changes
    )
    batch, worse = random_windows(0), random_windows(1)
    worse = without_targets(worse) if bad is None else worse
    metrics = model.train_step(batch)
    valid = np.minimum(batch["context_length"], MEMORY).mean() / MEMORY
    assert float(metrics["memory_valid"]) == pytest.approx(valid)
    before, memory = weights_and_optimizer(model), model.memory.states.numpy()
    if bad is not None:
        monkeypatch.setattr(xlnet_pretrainer, "accumulated", spoiled(bad))
    of_both = model.train_step(worse)
    assert_all_equal(weights_and_optimizer(model), before)
    assert int(model.optimizer.iterations) == 2  # The data goes on, and so does the memory.
    states = model.memory.states.numpy()
    assert np.isfinite(states).all() and np.any(states != memory)
    if bad is None:
        for name in ("loss", "gradient_norm", "targets"):
            assert float(of_both[name]) == float(metrics[name]) > 0
        model.reset_metrics()
        assert np.isnan(model.test_step(worse)["loss"])
    else:
        assert not np.isfinite(of_both["gradient_norm"])


@pytest.mark.slow
@pytest.mark.parametrize("slices", [{"accumulate_steps": 2}, {"parallel_slices": 2}], ids=str)
def test_a_slice_without_targets_leaves_the_loss_to_the_others(slices):
    batch = without_targets(random_windows(0), slice(2))
    settings = {"adam_epsilon": 1e-3, "num_layers": 1}
    models = [make_model(**settings, **changes) for changes in ({}, slices)]
    metrics = [model.train_step(batch) for model in models]
    for name in ("loss", "targets"):
        assert float(metrics[0][name]) == pytest.approx(float(metrics[1][name]), rel=1e-5)
    assert_all_close(*map(state, models), atol=1e-5)


def test_replay_finds_the_layer_the_windows_and_the_weights():
    model, batch = make_model(), random_windows(3, batch=11)
    ids = batch["window_id"].numpy()
    assert cause.first_bad_value(model, batch) is None

    # One word piece overflows: only the windows that hold it are to blame.
    embeddings = model.encoder.word_embedding.embeddings
    saved, piece = embeddings.numpy(), int(batch["token_ids"][9, 0])
    embeddings.assign(np.where(np.arange(len(saved))[:, None] == piece, 1e38, saved))
    where, windows = cause.first_bad_value(model, batch)
    holds = np.flatnonzero((batch["token_ids"].numpy() == piece).any(axis=1))
    first_slice = holds[holds // 8 == holds[0] // 8]
    assert where == "the output of layer_0"
    assert {*windows} and {*windows} <= {*ids[first_slice].tolist()}
    embeddings.assign(saved)

    kernel = model.encoder.blocks[1].feed_forward.trainable_variables[0]
    kernel.assign(kernel * np.nan)
    assert cause.first_bad_value(model, batch) == (
        f"the weights {getattr(kernel, 'path', kernel.name)}",
        [],
    )


def run_data():
    """Data of a run that is at step 100."""
    records = mock.Mock()
    records.split.return_value.configure_mock(num_lanes=6, windows_per_lane=5, files={})
    data = RunData(make_model(num_layers=1).config.training, records, tf.distribute.get_strategy())
    data.start_step, data.batch = 100, lambda step: random_windows(step - 101)
    data.parts[0].schedule = LaneSchedule(Position.start(4), windows_per_lane=5)
    return data


def make_watch(recent_loss=None):
    """A `SpikeWatch` of a run that is at step 100, and its log."""
    log = mock.Mock()
    return run_health.SpikeWatch(run_data(), log, recent_loss), log


@pytest.mark.parametrize("resumed_at", [None, 102, 250])
def test_a_spike_is_reported_with_its_windows_also_after_resuming(resumed_at):
    watch, log = make_watch()
    rng = np.random.default_rng(0)
    for step in range(101, 301):
        watch.add(step, step, 3 + 0.1 * rng.standard_normal())
        if step == resumed_at:
            assert not log.event.called
            saved = json.loads(json.dumps(dataclasses.asdict(watch.recent_loss)))
            watch, log = make_watch(conform(saved, run_health.RecentLoss, "record"))
    assert not log.event.called
    watch.add(301, 301, 9.0)
    (((kind,), event),) = log.event.call_args_list
    assert (kind, event["step"], event["loss"]) == ("loss spike", 301, 9.0)
    # Step 301 is 200 after the position: 40 lanes in, row b reads number 160 + b.
    assert event["windows"] == [number % 6 * 5 for number in range(160, 164)]


def test_the_cause_of_a_bad_step_names_its_windows(monkeypatch):
    monkeypatch.setattr(cause, "first_bad_value", lambda *_: None)
    log = mock.Mock()
    diagnosis = cause.cause_of_bad_steps(mock.Mock(), run_data(), 101, 101)
    assert diagnosis["windows"] == [0, 5, 10, 15]
    with pytest.raises(DivergedError, match=r"step 101: .* loss nan .*windows 0, 5, 10, 15; the"):
        metrics = {"loss": np.nan, "gradient_norm": 1.0}
        report_bad_step(log, 101, metrics, diagnosis, num_consecutive=1, skip=False)
    assert log.event.call_args.kwargs["windows"] == diagnosis["windows"]


@pytest.mark.slow
def test_a_run_from_broken_weights_stops_and_names_the_layer(world, tmp_path):
    model = load_pretrainer(world.pretrained)
    weights = model.encoder.blocks[0].feed_forward.trainable_variables[0]
    weights.assign(tf.fill(weights.shape, 3e38))
    save_pretrained(model, str(tmp_path / "broken"), f"{world.vocab}/spiece.model")
    config, output = XLNetConfig.load(world.config), tmp_path / "model"
    with pytest.raises(DivergedError, match=r"step 1: .*loss nan.* the output of layer_0; windows"):
        pretrain(config, world.data, str(output), init_from=str(tmp_path / "broken"))
    (event,) = map(json.loads, (output / EVENTS_FILE).read_text().splitlines())
    assert len(event["windows"]) == config.training.batch_size
    assert not [*output.glob("ckpt-*")], "nothing is saved of a broken run"


@pytest.mark.slow
def test_fine_tuning_skips_a_bad_step_and_counts_it_in_its_checkpoint(monkeypatch, tmp_path):
    config = XLNetConfig.from_dict(FINE_TUNING).changed(["training.on_bad_step=skip"])
    config.training.checkpoint_steps = 1
    accumulated, steps = xlnet_task_model.accumulated, []

    def spoiled(*arguments):
        steps.append(len(steps) + 1)
        plain = accumulated(*arguments)

        def with_bad_value(task, seed):
            gradients, loss_sum, memory = plain(task, seed)
            gradients[5] += np.nan if steps[-1] in (2, 3) else 0
            return gradients, loss_sum, memory

        return with_bad_value

    monkeypatch.setattr(xlnet_task_model, "accumulated", spoiled)
    with eagerly():
        run = fine_tuning(config, str(tmp_path))
    assert steps == [1, 2, 3]
    events = map(json.loads, (tmp_path / "model" / EVENTS_FILE).read_text().splitlines())
    assert [(x["event"], x["step"]) for x in events] == [("bad step", 2), ("bad step", 3)]
    assert newest_checkpoint(run).record["bad_steps"] == 2
