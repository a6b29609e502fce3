"""Workers that are lost or never come: the others say so and end, and all go on when restarted."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.helpers.replicas.clusters import (
    finish,
    start_cluster,
    wait_for_step,
)
from tests.helpers.runs import losses_of

pytestmark = pytest.mark.nightly

STEPS = 40


def arguments(recipe, model_dir):
    return ["pretrain", f"--config={recipe}", f"--data={recipe}/data", f"--output={model_dir}"]


@pytest.mark.parametrize("program", ["official.xlnet.cli", "without_kernel_locks"])
def test_three_workers_lost_in_turn_one_for_good(recipe, undisturbed, program, tmp_path):
    """All are started again when all have ended, as a scheduler does; in the end there are two."""
    if program == "without_kernel_locks":
        program = f"tests.helpers.replicas.{program}"
    flags = arguments(recipe, tmp_path)
    for lost in (1, 0, 2):
        processes = start_cluster("multi_worker", flags, replicas=3, program=program)
        before = len(losses_of(tmp_path))
        wait_for_step(processes[0], tmp_path, before + 6)
        processes[lost].kill()
        for number, process in enumerate(processes):
            _, err = process.communicate(timeout=300)
            if number == lost:
                assert process.returncode == -signal.SIGKILL
            else:
                assert process.returncode == 76, err
                assert err.splitlines()[-1].startswith("xlnet pretrain: workers: lost "), err
        assert before < len(losses_of(tmp_path)) < STEPS
    result = finish(start_cluster("multi_worker", flags, replicas=2, program=program))
    assert result["step"] == STEPS
    np.testing.assert_allclose(losses_of(tmp_path), undisturbed, rtol=0, atol=1e-4)


@pytest.mark.parametrize("seconds", [5, 30])
def test_a_worker_that_stands_still_is_waited_for_or_lost(recipe, undisturbed, seconds, tmp_path):
    """For less than the ten seconds between which TensorFlow's workers hear of each other."""
    processes = start_cluster("multi_worker", arguments(recipe, tmp_path), replicas=2)
    wait_for_step(processes[0], tmp_path, 6)
    processes[1].send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    processes[1].send_signal(signal.SIGCONT)
    finish(processes, 0 if seconds < 10 else 76)
    losses = losses_of(tmp_path)
    np.testing.assert_allclose(losses, undisturbed[: len(losses)], rtol=0, atol=1e-4)
    assert (len(losses) == STEPS) == (seconds < 10)


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
        assert done.returncode == 2 and "strategy: multi_worker" in done.stderr
    assert not (tmp_path / "m").exists()
