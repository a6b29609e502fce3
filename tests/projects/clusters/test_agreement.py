"""Workers that differ end before the first step, all of them, with one sentence."""

import importlib.metadata
import os
import shutil

import pytest

from official.xlnet.projects.clusters.workers import describe_difference
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
    ("last", "aspect", "difference"),
    [
        (["--set=learning_rate=0.5"], "configuration", "training.learning_rate: 0.5, not "),
        (["--set=training.seed=9"], "configuration", "training.seed: 9, not "),
        (["--steps=7"], "last step and time", "[7, null], not [9, null]"),
        (["--data={path}/data"], "records", ", not "),
        (["--output={path}/elsewhere"], "checkpoint to resume from", "null, not {"),
    ],
)
def test_workers_that_differ_end_with_a_sentence(last, aspect, difference, pretraining, tmp_path):
    flags, path = pretraining
    shutil.copytree(path / "begun", tmp_path / "model")
    before = sorted(file.name for file in (tmp_path / "model").iterdir())
    own = [flag.format(path=path) for flag in last]
    flags = ["pretrain", *flags, f"--output={tmp_path}/model"]
    require_sentence(start_cluster("multi_worker", flags, last=own), aspect, difference)
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == before


def test_workers_with_another_keras_end_with_a_sentence(pretraining, tmp_path):
    """Before the first variable, which each Keras creates with other collective operations."""
    names = [f"{name} {importlib.metadata.version(name)}" for name in ("keras", "tf_keras")]
    is_legacy = os.environ.get("TF_USE_LEGACY_KERAS") == "1"
    first, last = reversed(names) if is_legacy else names
    flags = ["pretrain", *pretraining[0], f"--output={tmp_path}/model"]
    last_env = {"TF_USE_LEGACY_KERAS": "0" if is_legacy else "1"}
    processes = start_cluster("multi_worker", flags, last_env=last_env)
    require_sentence(processes, "Keras", f"({last}, not {first})")
    assert not (tmp_path / "model").exists()


def require_sentence(processes, aspect, difference):
    """Requires that both workers end with status 2, and name in what they differ."""
    # The last worker first: where it ends by itself, the other waits for it.
    for process in reversed(processes):
        _, err = process.communicate(timeout=300)
        expected = f"workers: expected the same {aspect} on all 2, got another one on worker 1"
        assert expected in err.splitlines()[-1] and difference in err.splitlines()[-1], err
        assert process.returncode == 2, err


def test_the_first_difference_is_named():
    saved = {"training": {"seed": 3, "rates": [1, 2]}, "model": {"width": 5}}
    assert describe_difference(saved, {**saved, "model": {"width": 7}}) == "model.width: 7, not 5"
    assert describe_difference(saved, {**saved, "model": {}}) == "model.width: null, not 5"
    assert describe_difference(saved, {**saved, "task": {"k": 1}}) == 'task: {"k": 1}, not null'
    assert describe_difference(saved, {**saved, "k": None}) == "k: null, not null"
    assert describe_difference({"k": True, "x": 1}, {"k": True, "x": 1.0}) == "x: 1.0, not 1"
    assert describe_difference([1], None) == "null, not [1]"
    assert describe_difference("a" * 99, "b") == f"b, not {'a' * 40}…"
