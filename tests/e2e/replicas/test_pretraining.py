"""Runs on one device and on several replicas are the same run, and one continues another."""

import json
import os
import pathlib
import shutil
import sys

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.api.pretrain import pretrain
from official.xlnet.checkpoints.checkpoint_files import best_heldout_loss, newest_checkpoint
from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.lane_schedule import Position
from official.xlnet.training.optimization import OPTIMIZERS
from tests.helpers.replicas import keras_fit
from tests.helpers.replicas.clusters import (
    finish,
    recipe_of_replicas,
    start_cluster,
    start_process,
    strategies_of_replicas,
)
from tests.helpers.runs import losses_of

pytestmark = pytest.mark.slow

# Largest difference between one device and several, in loss and gradient norm: 8 bits of bfloat16
# are rounded alike in each row, but not in sums over rows.
PRECISIONS = {"float32": 1e-4, "mixed_bfloat16": 0.02, "mixed_float16": 0.02}
STEPS, LATER, BATCH = 9, 13, 8
SETTINGS = ["num_lanes=8", f"batch_size={BATCH}", f"evaluation_steps={STEPS}"]


@pytest.fixture(scope="module")
def recipe(world, tmp_path_factory):
    return recipe_of_replicas(world, tmp_path_factory, SETTINGS)


def assert_same_run(model_dir, other, loss_atol=1e-4, weight_atol=1e-3):
    np.testing.assert_allclose(losses_of(model_dir), losses_of(other), rtol=0, atol=loss_atol)
    ours, theirs = load_pretrainer(str(model_dir)), load_pretrainer(str(other))
    pairs = zip(ours.trainable_variables, theirs.trainable_variables, strict=True)
    for weight, expected in pairs:
        np.testing.assert_allclose(weight, expected, rtol=0, atol=weight_atol, err_msg=weight.name)


@pytest.fixture(scope="module")
def runs(recipe, tmp_path_factory):
    """(directory with runs, results) of `tests.helpers.replicas.mirrored`, and one device."""
    directory = tmp_path_factory.mktemp("runs")
    program = [sys.executable, "-m", "tests.helpers.replicas.mirrored", recipe, f"{recipe}/data"]
    process = start_process([*program, str(directory / "mirrored"), str(STEPS)], dict(os.environ))
    config = XLNetConfig.load(recipe)
    pretrain(config, f"{recipe}/data", str(directory / "one_device"), steps=LATER)
    return directory, finish([process])


def test_replicas_together_are_one_device_which_goes_on(recipe, runs, tmp_path):
    """With the memory of both replicas, and with the same weights on both."""
    directory, results = runs
    assert results["step"] == STEPS
    assert results["sums"] == [[2.0] * size for size in (3, 5, 2)]
    assert results["differing"] == {name: [] for name in OPTIMIZERS if name != "adamw"}
    found, wanted = (losses_of(directory / name) for name in ("mirrored", "one_device"))
    np.testing.assert_allclose(found, wanted[:STEPS], rtol=0, atol=1e-4)
    best = [best_heldout_loss(str(directory / name)) for name in ("mirrored", "one_device")]
    assert np.isfinite(best[0]) and best[0] == pytest.approx(best[1], abs=1e-4)
    model_dir = shutil.copytree(directory / "mirrored", tmp_path / "model")
    pretrain(XLNetConfig.load(recipe), f"{recipe}/data", str(model_dir), steps=LATER)
    assert_same_run(model_dir, directory / "one_device")


@pytest.mark.nightly
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("strategy", strategies_of_replicas())
def test_plain_fit_gives_every_replica_its_rows_and_their_memory(recipe, strategy, precision):
    setting = f"training.precision={precision}"
    arguments = ["--config", recipe, "--data", f"{recipe}/data", "--steps", str(STEPS)]
    program = "tests.helpers.replicas.keras_fit"
    processes = start_cluster(strategy, [*arguments, "--set", setting], program=program)
    one_device = tf.distribute.get_strategy()
    expected = keras_fit.fit(one_device, recipe, f"{recipe}/data", STEPS, [setting])
    assert np.mean([step["memory_valid"] for step in expected]) > 0.3
    for step, wanted in zip(finish(processes), expected, strict=True):
        assert step == pytest.approx(wanted, abs=PRECISIONS[precision])


def test_half_the_batch_goes_on_from_two_replicas(recipe, runs, tmp_path):
    """Four lanes in eight are put off; every window is still read once."""
    model_dir = str(shutil.copytree(runs[0] / "mirrored", tmp_path / "model"))
    smaller = XLNetConfig.load(recipe, [f"batch_size={BATCH // 2}"])
    assert pretrain(smaller, f"{recipe}/data", model_dir, steps=STEPS + 11)["step"] == STEPS + 11
    assert np.isfinite(losses_of(model_dir)).all()
    position = Position.from_dict(newest_checkpoint(model_dir).record["position"])
    pieces = [piece for piece in (*position.rows, *position.waiting) if piece is not None]
    lanes = json.loads(pathlib.Path(recipe, "data/manifest.json").read_text())["splits"]["train"]
    windows = lanes["windows_per_lane"]
    left = sum(windows - piece.window for piece in pieces)
    assert BATCH * STEPS + BATCH // 2 * 11 + left == windows * position.next_number
    assert len(position.rows) == BATCH // 2
    assert len({piece.number for piece in pieces}) == len(pieces)
