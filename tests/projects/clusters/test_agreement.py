"""Workers that differ end before the first step, all of them, with one sentence."""

import shutil

import pytest

from tests.helpers.replicas.clusters import start_cluster
from tests.helpers.world import command

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pretraining(world, tmp_path_factory):
    """Flags of a run of two workers, and the directory of one of 4 steps by one."""
    path = tmp_path_factory.mktemp("agreement")
    flags = [f"--config={world.config}", f"--data={world.data}", "--set=num_steps=9"]
    flags += ["--set=batch_size=4", "--set=warmup_steps=0", "--set=checkpoint_steps=2"]
    command("pretrain", *flags, "--steps=4", output=path / "begun")
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
        (["--output={path}/elsewhere"], "checkpoint to resume from"),
    ],
)
def test_workers_that_differ_end_with_a_sentence(last, aspect, pretraining, tmp_path):
    flags, path = pretraining
    shutil.copytree(path / "begun", tmp_path / "model")
    before = sorted(file.name for file in (tmp_path / "model").iterdir())
    own = [flag.format(path=path) for flag in last]
    flags = ["pretrain", *flags, f"--output={tmp_path}/model"]
    # The last worker first: where it ends by itself, the other waits for it.
    for process in reversed(start_cluster("multi_worker", flags, last=own)):
        _, err = process.communicate(timeout=300)
        expected = f"workers: expected the same {aspect} on all 2, got another one on worker 1"
        assert expected in err.splitlines()[-1], err
        assert process.returncode == 2, err
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == before
