"""Non-finite losses and loss spikes: what they change, and what is reported."""

import json
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.data.random_records import write_data_set
from official.xlnet.checkpoints.model_directory import create_model_dir, load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.lane_schedule import LaneSchedule, Position
from official.xlnet.errors import DivergedError
from official.xlnet.modeling.models import xlnet_pretrainer
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.metrics_log import EVENTS_FILE
from official.xlnet.training import divergence, replay
from official.xlnet.training.divergence import Watch
from official.xlnet.training.pretraining import pretrain
from official.xlnet.training.run_data import RunData
from tests.helpers.compiled import make_model, state
from tests.helpers.tiny import random_windows


@pytest.mark.parametrize("clip_norm", [0.0, 1.0])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_gradient_changes_nothing(clip_norm, bad, monkeypatch):
    model = make_model(clip_norm=clip_norm)
    model.train_step(random_windows(0))
    before = [*state(model), *(v.numpy() for v in model.optimizer.variables[2:])]
    accumulate = xlnet_pretrainer.accumulate

    def spoil(*arguments):
        gradients, loss_sum, memory = accumulate(*arguments)
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        gradients[5] += bad * tf.cast(tf.range(tf.size(gradients[5])) == 0, tf.float32)[0]
        memory = tf.where(tf.range(memory.shape[2])[:, None] == 1, bad, memory)
        return gradients, loss_sum, memory

    monkeypatch.setattr(xlnet_pretrainer, "accumulate", spoil)
    memory = model.memory.states.numpy()
    model.reset_metrics()
    metrics = model.train_step(random_windows(1))
    assert not np.isfinite(metrics["gradient_norm"])
    assert int(model.optimizer.iterations) == 2
    assert np.isfinite(model.memory.states).all()
    model.memory.states.assign(memory)
    after = [*state(model), *(v.numpy() for v in model.optimizer.variables[2:])]
    for ours, theirs in zip(after, before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def without_targets(batch, rows=slice(None)):
    can_be_target = batch["can_be_target"].numpy()
    can_be_target[rows] = False
    return {**batch, "can_be_target": tf.constant(can_be_target)}


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "adamw"},
        {"optimizer": "lamb", "precision": "mixed_float16"},
        {"optimizer": "muon", "accumulate_steps": 2, "kind": "causal", "bidirectional": False},
        {"optimizer": "adamw", "kind": "denoising", "parallel_slices": 2, "clip_norm": 0},
    ],
    ids=str,
)
def test_a_step_without_targets_changes_nothing_but_the_memory(changes):
    model = make_model(weight_decay=0.3, **changes)
    metrics = model.train_step(random_windows(0))
    scale = float(model.optimizer.loss_scale) if model.has_loss_scale else None
    before = [*state(model)[:-1], *(v.numpy() for v in model.optimizer.variables[2:])]
    memory = model.memory.states.numpy()
    none = without_targets(random_windows(1))
    again = model.train_step(none)
    for name in ("loss", "gradient_norm", "targets"):  # Means and sums over both steps.
        assert float(again[name]) == float(metrics[name]) > 0
    assert scale is None or float(model.optimizer.loss_scale) == scale
    after = [*state(model)[:-1], *(v.numpy() for v in model.optimizer.variables[2:])]
    for ours, theirs in zip(after, before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert np.any(memory != model.memory.states.numpy())
    assert int(model.optimizer.iterations) == 2  # The data goes on.
    model.reset_metrics()
    alone = model.train_step(none)
    assert np.isnan(alone["loss"]) and np.isnan(alone["gradient_norm"]) and alone["targets"] == 0
    model.reset_metrics()
    assert np.isnan(model.test_step(none)["loss"])


@pytest.mark.slow
@pytest.mark.parametrize("slices", [{"accumulate_steps": 2}, {"parallel_slices": 2}], ids=str)
def test_a_slice_without_targets_leaves_the_loss_to_the_others(slices):
    batch = without_targets(random_windows(0), slice(2))
    settings = {"adam_epsilon": 1e-3, "num_layers": 1}
    models = [make_model(**settings, **changes) for changes in ({}, slices)]
    metrics = [model.train_step(batch) for model in models]
    for name in ("loss", "targets"):
        assert float(metrics[0][name]) == pytest.approx(float(metrics[1][name]), rel=1e-5)
    for one, other in zip(*map(state, models), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_replay_finds_the_layer_the_windows_and_the_weights():
    model = make_model()
    batch = random_windows(3, batch=11)
    assert replay.first_bad_value(model, batch) == replay.Finding("", [])
    losses_B = np.concatenate([replay.row_losses(model, x) for x in replay._slices(batch)])
    worst = replay.worst_windows(model, batch, 3)
    order = np.argsort(-losses_B)[:3]
    assert [window for window, _ in worst] == batch["window_id"].numpy()[order].tolist()
    assert worst[0][1] == pytest.approx(losses_B.max())

    # One word piece overflows: only the windows that hold it are to blame.
    embeddings = model.encoder.word_embedding.embeddings
    saved = embeddings.numpy()
    piece = int(batch["token_ids"][9, 0])
    embeddings.scatter_nd_update([[piece]], [np.full(saved.shape[1], 1e38)])
    finding = replay.first_bad_value(model, batch)
    holds = (batch["token_ids"].numpy() == piece).any(axis=1)
    first = np.flatnonzero(holds)[0] // 8 * 8
    suspects = batch["window_id"].numpy()[first : first + 8][holds[first : first + 8]]
    assert finding.where == "the output of layer_0"
    assert set(finding.windows) <= set(suspects.tolist())
    assert finding.windows
    embeddings.assign(saved)
    assert replay.first_bad_value(model, batch).where == ""

    kernel = model.encoder.blocks[1].feed_forward.trainable_variables[0]
    kernel.assign(kernel * np.nan)
    assert replay.first_bad_value(model, batch).where == f"the weights {kernel.name}"


class Events(list):
    def event(self, kind, **details):
        self.append({"kind": kind, **details})


def make_watch(skip, events):
    model = make_model()
    batches = {}
    training, records = model.config.training, mock.Mock()
    records.split.return_value.configure_mock(num_lanes=6, windows_per_lane=5, files={})
    data = RunData(training, records, tf.distribute.get_strategy())
    data.start_step, data.schedule = 100, LaneSchedule(Position.start(4), windows_per_lane=5)
    data.batch = lambda step: batches.setdefault(step, random_windows(step - 101))
    return Watch(model, data, events, skip=skip)


def test_a_spike_is_reported_with_its_windows():
    events = Events()
    watcher = make_watch(True, events)
    rng = np.random.default_rng(0)
    for step in range(101, 301):
        watcher.good(step, step, 3 + 0.1 * rng.standard_normal())
    assert not events
    watcher.good(301, 301, 9.0)
    (event,) = events
    assert (event["kind"], event["step"], event["loss"]) == ("loss spike", 301, 9.0)
    # Step 301 is 200 after the position: 40 lanes in, row b reads number 160 + b.
    assert event["windows"] == [number % 6 * 5 for number in range(160, 164)]
    batch = random_windows(200)
    assert {window for window, _ in event["worst_windows"]} <= set(batch["window_id"].numpy())


def test_bad_steps_stop_a_run_or_are_skipped_for_a_while(monkeypatch):
    monkeypatch.setattr(replay, "first_bad_value", lambda *_: replay.Finding("", []))
    with pytest.raises(DivergedError, match=r"step 101: loss nan.*windows 0, 5, 10, 15"):
        make_watch(False, Events()).bad(101, 101, np.nan, 1.0)
    events = Events()
    watcher = make_watch(True, events)
    for step in range(101, 101 + divergence._MOST_BAD_STEPS - 1):
        watcher.bad(step, step, 1.0, np.inf)
    with pytest.raises(DivergedError):
        watcher.bad(110, 110, 1.0, np.inf)
    assert [event["step"] for event in events] == list(range(101, 111))


@pytest.mark.slow
def test_a_run_from_broken_weights_stops_and_names_the_layer(tmp_path):
    data = str(tmp_path / "data")
    write_data_set(data, 19, 7, 4, 5)
    tree = {
        "model": {"vocab_size": 97, "num_layers": 2, "d_model": 22, "num_heads": 2},
        "data": {"seq_len": 19, "reuse_len": 7, "num_predict": 3, "num_lanes": 4},
        "training": {"batch_size": 4, "num_steps": 9, "warmup_steps": 0},
    }
    config = XLNetConfig.from_dict(tree)
    config.set("d_inner=29")
    config.set("mem_len=7")
    broken = XLNetPretrainer(config)
    weights = broken.encoder.blocks[1].feed_forward.trainable_variables[0]
    weights.assign(tf.fill(weights.shape, 3e38))
    create_model_dir(str(tmp_path / "broken"), config, f"{data}/spiece.model")
    tf.train.Checkpoint(model=broken).save(str(tmp_path / "broken/ckpt"))
    with pytest.raises(DivergedError, match=r"step 1: loss nan.* the output of layer_1; windows"):
        pretrain(config, data, str(tmp_path / "model"), init_from=str(tmp_path / "broken"))
    (event,) = map(json.loads, (tmp_path / "model" / EVENTS_FILE).read_text().splitlines())
    assert sorted(event["windows"]) == [0, 5, 10, 15]
    assert not list(tmp_path.glob("model/ckpt-*")), "nothing is saved of a broken run"
    assert load_pretrainer(str(tmp_path / "broken")) is not None
