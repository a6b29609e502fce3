"""One device, mirrored and multi-worker runs are the same run, and one continues another."""

import dataclasses
import os
import random
import shutil
import signal
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
import yaml

from benchmarks.data.random_records import write_data_set
from official.xlnet.checkpoints.checkpoint_files import best_heldout_loss, newest_checkpoint
from official.xlnet.checkpoints.model_directory import load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.lane_schedule import Position
from official.xlnet.data.schema import Manifest
from official.xlnet.runtime.history import read_history
from official.xlnet.training.pretraining import pretrain
from tests.helpers import keras_fit
from tests.helpers.replicas.clusters import finish, start_cluster, start_process

pytestmark = pytest.mark.slow

STEPS, LATER, LONG = 9, 13, 50
LANES, WINDOWS = 8, 7
CONFIG = {
    "model": {
        "vocab_size": 97,
        "num_layers": 1,
        "d_model": 22,
        "num_heads": 2,
        "d_inner": 29,
        "mem_len": 13,
        "dropout": 0.0,
        "dropatt": 0.0,
    },
    "data": {"seq_len": 19, "reuse_len": 7, "num_predict": 3, "num_lanes": LANES},
    "training": {
        "batch_size": 8,
        "num_steps": 60,
        "warmup_steps": 5,
        "learning_rate": 0.003,
        "checkpoint_steps": 4,
        "evaluation_steps": STEPS,
    },
}
CLUSTERS = ["mirrored", "multi_worker"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A directory with `config.yaml` and the data set `data`, of two splits."""
    directory = tmp_path_factory.mktemp("distributed")
    (directory / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    data, splits = str(directory / "data"), {}
    for split in ("train", "heldout"):
        write_data_set(data, 19, 7, LANES, WINDOWS, split=split)
        splits |= Manifest.load(data).splits
    dataclasses.replace(Manifest.load(data), splits=splits).save(data)
    return directory


@pytest.fixture(scope="module")
def config(files):
    return XLNetConfig.load(str(files / "config.yaml"))


def start(files, strategy, model_dir, steps, *changes):
    """Starts the processes of a run with two replicas."""
    paths = [f"--config={files / 'config.yaml'}", f"--data={files / 'data'}"]
    arguments = ["pretrain", *paths, f"--model_dir={model_dir}", f"--steps={steps}", *changes]
    return start_cluster(strategy, arguments)


def losses_of(model_dir):
    return [line["loss"] for line in read_history(str(model_dir))]


def assert_same_run(model_dir, other, loss_atol=1e-4, weight_atol=1e-3):
    np.testing.assert_allclose(losses_of(model_dir), losses_of(other), rtol=0, atol=loss_atol)
    ours, theirs = load_pretrainer(str(model_dir)), load_pretrainer(str(other))
    pairs = zip(ours.trainable_variables, theirs.trainable_variables, strict=True)
    for weight, expected in pairs:
        np.testing.assert_allclose(weight, expected, rtol=0, atol=weight_atol, err_msg=weight.name)


@pytest.fixture(scope="module")
def mirrored(files, config, tmp_path_factory):
    """(directory with runs, results) of `tests.helpers.replicas.mirrored`, and one device."""
    directory = tmp_path_factory.mktemp("runs")
    paths = [str(path) for path in (files / "config.yaml", files / "data", directory / "mirrored")]
    command = [sys.executable, "-m", "tests.helpers.replicas.mirrored", *paths, str(STEPS)]
    process = start_process(command, dict(os.environ))
    pretrain(config, str(files / "data"), str(directory / "one_device"), steps=LATER)
    return directory, finish([process])


def test_replicas_together_are_one_device_which_goes_on(files, config, mirrored, tmp_path):
    """With the memory of both replicas."""
    directory, results = mirrored
    assert results["step"] == STEPS
    wanted = losses_of(directory / "one_device")
    found = losses_of(directory / "mirrored")
    np.testing.assert_allclose(found, wanted[:STEPS], rtol=0, atol=1e-4)
    best = [best_heldout_loss(str(directory / name)) for name in ("mirrored", "one_device")]
    assert np.isfinite(best).all()
    assert best[0] == pytest.approx(best[1], abs=1e-4)
    model_dir = shutil.copytree(directory / "mirrored", tmp_path / "model")
    pretrain(config, str(files / "data"), str(model_dir), steps=LATER)
    assert_same_run(model_dir, directory / "one_device")


@pytest.mark.parametrize(
    "strategy", [pytest.param("mirrored", marks=pytest.mark.slow), "multi_worker"]
)
def test_plain_fit_gives_every_replica_its_rows_and_their_memory(files, strategy):
    paths = str(files / "config.yaml"), str(files / "data")
    arguments = ["--config", paths[0], "--data", paths[1], "--steps", str(STEPS)]
    processes = start_cluster(strategy, arguments, program="tests.helpers.keras_fit")
    expected = keras_fit.fit(tf.distribute.get_strategy(), *paths, STEPS)
    assert np.mean([step["memory_valid"] for step in expected]) > 0.3
    for step, wanted in zip(finish(processes), expected, strict=True):
        assert step == pytest.approx(wanted, abs=1e-4)


def test_half_the_batch_goes_on_from_two_replicas(files, mirrored, tmp_path):
    """Two lanes in four are put off; every window is still read once."""
    model_dir = str(shutil.copytree(mirrored[0] / "mirrored", tmp_path / "model"))
    smaller = XLNetConfig.load(str(files / "config.yaml"), ["batch_size=4"])
    figures = pretrain(smaller, str(files / "data"), model_dir, steps=STEPS + 11)
    assert figures["step"] == STEPS + 11
    assert np.isfinite(losses_of(model_dir)).all()
    record = newest_checkpoint(model_dir).record
    position = Position.from_dict(record["position"])
    pieces = [piece for piece in (*position.rows, *position.waiting) if piece is not None]
    left = sum(WINDOWS - piece.window for piece in pieces)
    assert 8 * STEPS + 4 * 11 + left == WINDOWS * position.next_number
    assert len(position.rows) == 4
    assert len({piece.number for piece in pieces}) == len(pieces)


@pytest.mark.parametrize("strategy", CLUSTERS)
def test_workers_killed_at_random_moments(files, tmp_path, strategy):
    """XLNET_TEST_KILLS says how often; when one worker dies, the others are ended too."""
    kills = int(os.environ.get("XLNET_TEST_KILLS", "5"))
    finish(start(files, strategy, tmp_path / "calm", LONG))
    killed = tmp_path / "killed"
    for _ in range(kills):
        processes = start(files, strategy, killed, LONG)
        before = len(losses_of(killed))
        moment = before + random.randint(0, 2 * LONG // kills)
        while len(losses_of(killed)) <= moment and processes[0].poll() is None:
            time.sleep(0.005)
        time.sleep(0.02 * random.random())
        random.shuffle(processes)
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            process.communicate()
    assert finish(start(files, strategy, killed, LONG))["step"] == LONG
    assert [line["step"] for line in read_history(str(killed))] == list(range(1, LONG + 1))
    assert_same_run(killed, tmp_path / "calm", loss_atol=1e-5, weight_atol=1e-5)
