"""Workers that differ end before the first step, all of them, with one sentence."""

import shutil
import subprocess
import sys

import pytest

from tests.helpers.replicas.clusters import start_cluster, wait_for_step
from tests.helpers.world import command

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pretraining(world, tmp_path_factory):
    """Flags of a run of two workers, and the directory of one of 4 steps by one."""
    path = tmp_path_factory.mktemp("agreement")
    flags = [f"--config={world.config}", f"--data={world.data}", "--set=num_steps=9"]
    flags += ["--set=batch_size=4", "--set=warmup_steps=0", "--set=checkpoint_steps=2"]
    command("pretrain", *flags, "--steps=4", model_dir=path / "begun")
    prepared = {"input": world.text, "vocab": world.vocab, "config": world.config}
    command("prepare", "--num_workers=1", "--min_words=9", output=path / "data", **prepared)
    return flags, path


@pytest.mark.parametrize(
    ("last", "aspect"),
    [
        (["--set=learning_rate=0.5"], "configuration"),
        (["--set=training.seed=9"], "configuration"),
        (["--steps=7"], "last step and time"),
        (["--data={path}/data"], "records"),
        (["--model_dir={path}/elsewhere"], "checkpoint to resume from"),
    ],
)
def test_workers_that_differ_end_with_a_sentence(last, aspect, pretraining, tmp_path):
    flags, path = pretraining
    shutil.copytree(path / "begun", tmp_path / "model")
    before = sorted(file.name for file in (tmp_path / "model").iterdir())
    own = [flag.format(path=path) for flag in last]
    flags = ["pretrain", *flags, f"--model_dir={tmp_path}/model"]
    processes = start_cluster("multi_worker", flags, last=own)
    for process in processes:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 2, err
        expected = f"workers: expected the same {aspect} on all 2, got another one on worker 1"
        assert expected in err.splitlines()[-1]
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == before


def test_the_loss_of_a_worker_is_a_sentence(pretraining, tmp_path):
    """The same command goes on."""
    flags, _ = pretraining
    flags = ["pretrain", *flags, f"--model_dir={tmp_path}", "--set=num_steps=100000"]
    processes = start_cluster("multi_worker", flags)
    wait_for_step(processes[0], tmp_path, 3)
    processes[1].kill()
    _, err = processes[0].communicate(timeout=300)
    assert processes[0].returncode == 76, err
    assert "workers: lost worker 1; run the same command again" in err.splitlines()[-1]


def test_a_strategy_without_a_cluster_is_refused(pretraining, tmp_path):
    """Each process would train alone, and write into one directory."""
    flags, _ = pretraining
    program = [sys.executable, "-m", "official.xlnet.cli", "pretrain", *flags]
    program += [f"--model_dir={tmp_path}/model", "--strategy=multi_worker"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "multi_worker expected a cluster" in done.stderr
