"""Workers that are lost or never come: the others say so and end, and all go on when restarted."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.runtime.history import read_history
from official.xlnet.training.pretraining import pretrain
from tests.helpers.replicas.clusters import (
    finish,
    free_ports,
    start_cluster,
    start_process,
    wait_for_step,
)
from tests.helpers.world import command

pytestmark = pytest.mark.slow

STEPS = 40
SETTINGS = ["num_lanes=12", "batch_size=12", "checkpoint_steps=4", "dropout=0", "dropatt=0"]


@pytest.fixture(scope="module")
def recipe(world, tmp_path_factory):
    """A directory with a configuration whose lanes two and three workers can share, and `data`."""
    path = str(tmp_path_factory.mktemp("recipe"))
    XLNetConfig.load(world.config, [*SETTINGS, f"num_steps={STEPS}"]).save(path)
    flags = {"input": world.text, "vocab": world.vocab, "config": path}
    command("prepare", "--num_workers=1", output=f"{path}/data", **flags)
    return path


@pytest.fixture(scope="module")
def undisturbed(recipe, tmp_path_factory):
    """The losses of a run on one device."""
    output = str(tmp_path_factory.mktemp("undisturbed"))
    pretrain(XLNetConfig.load(recipe), f"{recipe}/data", output)
    return [line["loss"] for line in read_history(output)]


def arguments(recipe, model_dir):
    return ["pretrain", f"--config={recipe}", f"--data={recipe}/data", f"--model_dir={model_dir}"]


@pytest.mark.parametrize("program", ["official.xlnet.cli", "without_kernel_locks"])
def test_three_workers_lost_in_turn_one_for_good(recipe, undisturbed, program, tmp_path):
    """All are started again when all have ended, as a scheduler does; in the end there are two."""
    if program == "without_kernel_locks":
        program = f"tests.helpers.replicas.{program}"
    flags = arguments(recipe, tmp_path)
    for lost in (1, 0, 2):
        processes = start_cluster("multi_worker", flags, replicas=3, program=program)
        before = len(read_history(str(tmp_path)))
        wait_for_step(processes[0], tmp_path, before + 6)
        processes[lost].kill()
        for number, process in enumerate(processes):
            _, err = process.communicate(timeout=300)
            if number == lost:
                assert process.returncode == -signal.SIGKILL
            else:
                assert process.returncode == 76, err
                assert err.splitlines()[-1].startswith("xlnet pretrain: workers: lost "), err
        assert before < len(read_history(str(tmp_path))) < STEPS
    result = finish(start_cluster("multi_worker", flags, replicas=2, program=program))
    assert result["step"] == STEPS
    losses = [line["loss"] for line in read_history(str(tmp_path))]
    np.testing.assert_allclose(losses, undisturbed, rtol=0, atol=1e-4)


def test_a_worker_that_never_comes_is_named(recipe, tmp_path):
    """To the end of --cluster_timeout; nothing is written."""
    flags = [*arguments(recipe, tmp_path / "model"), "--cluster_timeout=40"]
    *processes, absent = start_cluster("multi_worker", flags, replicas=3)
    absent.kill()
    absent.communicate()
    for process in processes:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 76, err
        assert re.search(r"waiting for worker 2 of 3 \(127\.0\.0\.1:\d+\), 3\d s", err), err
        sentence = "expected all of them within 40 s (--cluster_timeout), got none of worker 2 of 3"
        assert sentence in err.splitlines()[-1]
    assert not (tmp_path / "model").exists()


def test_torchruns_variables(recipe, undisturbed, tmp_path):
    """Which name the first host alone."""
    (port,) = free_ports(1)
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port - 1)}
    shared |= {name: x for name, x in os.environ.items() if name != "TF_CONFIG"}
    program = [sys.executable, "-m", "official.xlnet.cli", *arguments(recipe, tmp_path)]
    program += ["--strategy=multi_worker", "--steps=5"]
    processes = [start_process(program, {**shared, "RANK": str(rank)}) for rank in range(2)]
    assert finish(processes)["step"] == 5
    losses = [line["loss"] for line in read_history(str(tmp_path))]
    np.testing.assert_allclose(losses, undisturbed[:5], rtol=0, atol=1e-4)


def test_a_strategy_without_a_cluster_is_refused(recipe, tmp_path):
    """Each process would train alone, and write into one directory."""
    for variables in ({}, {"TF_CONFIG": json.dumps({"cluster": {}})}):
        program = [sys.executable, "-m", "official.xlnet.cli", *arguments(recipe, tmp_path / "m")]
        done = subprocess.run(
            [*program, "--strategy=multi_worker"],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2 and "multi_worker expected a cluster" in done.stderr
    assert not (tmp_path / "m").exists()
