"""Jobs that are split over machines, killed and gone on with, or that follow a run."""

import itertools
import json
import os
import pathlib
import sys
import time
import types

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.registry import VERBS
from official.xlnet.errors import DataError
from official.xlnet.inference import generation, task_prediction
from official.xlnet.inference.embedding import TextEmbedder
from official.xlnet.inference.ensemble import Ensemble
from official.xlnet.inference.scoring import Scorer
from official.xlnet.jobs import file_embedding as embed
from official.xlnet.jobs import file_scoring, following
from official.xlnet.training.run_end import END_FILE
from tests.helpers.replicas.clusters import start_process
from tests.helpers.tiny import tiny_config
from tests.helpers.world import command, eagerly
from tests.helpers.wrong_input import refused, run

NUM_PARTS = 4


@pytest.fixture(autouse=True)
def short_units(monkeypatch):
    """Examples are predicted seven at a time."""
    monkeypatch.setattr(task_prediction, "_CHUNK_BATCHES", 1)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "kind", ["classification", pytest.param("ranking", marks=pytest.mark.slow)]
)
def test_outputs_of_all_parts_joined_are_that_of_one_command(world, kind, tmp_path):
    flags = {"model": world.task(kind).model, "input": world.task(kind).dev}
    whole = command("predict", output=tmp_path / "whole", **flags)
    parts = [
        command("predict", f"--shard={n}/{NUM_PARTS}", output=tmp_path / str(n), **flags)
        for n in range(1, NUM_PARTS + 1)
    ]
    assert sum(part["rows"] for part in parts) == whole["rows"]
    assert sum(part["tokens"] for part in parts) == whole["tokens"]
    assert len([part for part in parts if part["rows"]]) > 1
    joined = b"".join((tmp_path / str(n)).read_bytes() for n in range(1, NUM_PARTS + 1))
    assert joined == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", f"1/{4301 * '9'}"])
def test_a_part_that_does_not_exist_is_refused(world, shard, tmp_path, capfd):
    task = world.task("classification")
    flags = [f"--model={task.model}", f"--input={task.dev}", f"--output={tmp_path}/p"]
    sentence = refused(run(capfd, "predict", *flags, f"--shard={shard}"))
    assert f"expected a part of a number of parts, such as 3/16, got '{shard:.10}" in sentence


@pytest.mark.usefixtures("eager")
def test_a_killed_command_is_gone_on_with_where_its_input_is_the_same(world, tmp_path, monkeypatch):
    task = world.task("classification")
    source = tmp_path / "dev.tsv"
    source.write_bytes(pathlib.Path(task.dev).read_bytes())
    flags = {"model": task.model, "input": source, "output": tmp_path / "out" / "p"}
    whole = command("predict", **flags)
    expected = flags["output"].read_bytes()

    def killed(self, examples):
        for prediction in predict(self, examples):
            if next(numbers) == 17:
                raise KeyboardInterrupt
            yield prediction

    predict, numbers = Ensemble.predict, itertools.count()
    for is_changed in (False, True):
        with monkeypatch.context() as patch:
            numbers = itertools.count()
            patch.setattr(Ensemble, "predict", killed)
            command("predict", status=130, **flags)
        assert len(os.listdir(tmp_path / "out")) == 2  # The former result is still there.
        if is_changed:
            lines = source.read_text().splitlines()
            source.write_text("\n".join([*lines[:9], lines[-1], *lines[9:]]) + "\n")
        result = command("predict", **flags)
        assert is_changed or result["tokens"] == whole["tokens"]
        # Rows before the change are the same.
        assert (result["rows"], result["resumed_rows"]) == ((42, 7) if is_changed else (41, 14))
        assert is_changed or flags["output"].read_bytes() == expected
        assert os.listdir(tmp_path / "out") == ["p"]


JOBS = {
    "score": (["--order=random", "--num_orders=2", "--consistency"], "jsonl"),
    "score --words": (["--unit=bits"], "tsv"),
    "embed": (["--batch_size=1", "--max_length=5"], "npy"),
    "embed --pooling=words": (["--batch_size=1"], "parquet"),
    "generate": (["--num_tokens=3"], "jsonl"),
}
if not VERBS.is_known("words"):  # The verb of a project.
    del JOBS["score --words"]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "job",
    [job if job == "score" else pytest.param(job, marks=pytest.mark.slow) for job in JOBS],
)
def test_a_killed_job_on_texts_is_gone_on_with(job, world, tmp_path, monkeypatch):
    """The third part is not done: two texts in each."""
    verb, *more = job.split()
    monkeypatch.setattr(file_scoring, "CHUNK_SIZE", 2)
    monkeypatch.setattr(embed, "_CHUNK_BATCHES", 2)
    monkeypatch.setattr(generation, "BATCH_SIZE", 2)
    source, output = tmp_path / "texts.jsonl", tmp_path / f"out.{JOBS[job][1]}"
    texts = ["The cat", "", "A ____ of", "sat and", "of the water.", "then", "漢"]
    rows = [json.dumps({"text": text, "id": number}) for number, text in enumerate(texts)]
    source.write_text("\n".join(rows) + "\n")
    flags = {"model": world.pretrained, "input": source, "output": output}
    whole = command(verb, *more, *JOBS[job][0], **flags)
    expected = output.read_bytes()
    where = {"score": (Scorer, "score"), "embed": (TextEmbedder, "__call__")}.get(
        verb, (generation.TextWriter, "outputs")
    )
    answer = getattr(*where)

    def killed(*arguments, **options):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return answer(*arguments, **options)

    as_lines = tmp_path / "texts.txt"  # The same bytes, each line of which is a text.
    as_lines.write_bytes(source.read_bytes())
    for changed in ({}, {"input": as_lines}, {"layer" if verb == "embed" else "seed": 1}):
        before = output.read_bytes()
        with monkeypatch.context() as patch:
            calls = itertools.count()
            patch.setattr(*where, killed)
            command(verb, *more, *JOBS[job][0], status=130, **flags | changed)
        assert len(os.listdir(tmp_path)) == 4 and output.read_bytes() == before
        result = command(verb, *more, *JOBS[job][0], **flags)
        assert result.pop("resumed_rows", 0) == (0 if changed else 4)
        assert len(os.listdir(tmp_path)) == 3
        for each in (result, whole):
            each.pop("texts_per_second", None)
        assert result == whole and output.read_bytes() == expected


def test_following_goes_on_where_the_run_removes_a_checkpoint_that_is_copied(tmp_path, monkeypatch):
    """Of two that are copied from a bucket, the older one is gone before its turn."""
    for step in (1, 2):
        (tmp_path / f"ckpt-{step}.json").touch()

    def newest(model, evaluate):
        if (old := tmp_path / "ckpt-1.json").exists():
            old.unlink()
            raise FileNotFoundError(old)
        return {"step": 2, **evaluate(model)}, tiny_config(num_steps=2)

    monkeypatch.setattr(following, "_metrics_of_newest", newest)
    evaluate, logs = lambda model: {"loss": 3.0}, str(tmp_path / "logs")
    assert following.follow_run([str(tmp_path)], logs, evaluate) == {"step": 2, "loss": 3.0}


class Waited(Exception):
    """The follower waits."""


@pytest.fixture
def follow(tmp_path, monkeypatch, capfd):
    """Follows a run with a checkpoint of step 2 of 9; returns its metrics and what was said."""

    def run(end, has_checkpoint=True):
        model = tmp_path / "model"
        model.mkdir(exist_ok=True)
        if end is not None:
            (model / "end.json").write_text(json.dumps(end))
        if has_checkpoint:
            (model / "ckpt-2.json").touch()
        monkeypatch.setattr(
            following, "_metrics_of_newest", lambda *_: ({"step": 2}, tiny_config(num_steps=9))
        )

        def wait(_):
            raise Waited

        clock = types.SimpleNamespace(sleep=wait, monotonic=time.monotonic)
        monkeypatch.setattr(following, "time", clock)
        try:
            metrics = following.follow_run([str(model)], str(tmp_path / "logs"), None)
        except (Waited, DataError) as error:
            metrics = error
        return metrics, capfd.readouterr().err.splitlines()[-1:]

    return run


@pytest.mark.parametrize("how", ["completed", "interrupted", "diverged", "failed"])
def test_following_ends_with_a_run_that_ends_early(how, follow):
    metrics, (line,) = follow({"step": 2, "how": how, "message": "a loss of nan"})
    assert metrics == {"step": 2}
    assert line.endswith(f"/model has ended: {how} at step 2 (a loss of nan)")


def test_following_a_run_that_ends_without_a_checkpoint_is_an_error(follow):
    end = {"step": 1, "how": "diverged", "message": ""}
    error, _ = follow(end, has_checkpoint=False)
    assert str(error).endswith("/model: expected a checkpoint, got a run without: diverged")


def test_following_says_what_it_waits_for(follow, tmp_path):
    waiting = f"waiting for a checkpoint of {tmp_path}/model after step 2, 0 s"
    metrics, lines = follow(None)
    assert isinstance(metrics, Waited) and lines == [waiting]
    metrics, (line,) = follow({"step": 2, "how": "preempted", "message": ""})
    assert isinstance(metrics, Waited)
    assert line.endswith("/model to be resumed: preempted at step 2, 0 s")
    (tmp_path / "model/ckpt-2.json").unlink()
    (tmp_path / "model/end.json").unlink()
    _, (line,) = follow(None, has_checkpoint=False)
    assert line == f"waiting for the first checkpoint of {tmp_path}/model, 0 s"
    model = str(tmp_path / "never")
    with pytest.raises(Waited):
        following.follow_run([model], str(tmp_path / "logs"), None)


@pytest.mark.slow
def test_each_checkpoint_is_evaluated_as_it_comes(world, tmp_path, monkeypatch):
    """The run goes on while the other job waits; here, whenever it does."""
    flags = {"config": world.config, "data": world.data, "output": tmp_path / "model"}
    settings = ["--set=num_steps=4", "--set=warmup_steps=0"]
    steps = iter([2, 3])  # The run ends early, so that the last step of the configuration never is.

    def go_on(_):
        with eagerly():
            step = next(steps)
            command("pretrain", *settings, f"--steps={step}", **flags)
        if step == 2:  # This run is to be one with the next.
            (tmp_path / "model" / END_FILE).unlink()

    clock = types.SimpleNamespace(sleep=go_on, monotonic=time.monotonic)
    monkeypatch.setattr(following, "time", clock)
    own = {"model": tmp_path / "model", "data": world.data}
    last = command("evaluate", "--follow", output=tmp_path / "logs", **own)
    assert last == {"step": 3, **command("evaluate", **own)}
    events = [
        event
        for file in (tmp_path / "logs").iterdir()
        for event in tf.compat.v1.train.summary_iterator(str(file))
    ]
    losses = {
        event.step: float(tf.make_ndarray(value.tensor))
        for event in events
        for value in event.summary.value
        if value.tag == "loss"
    }
    assert [*losses] == [2, 3]
    np.testing.assert_allclose(losses[3], last["loss"], rtol=1e-6)


@pytest.mark.nightly
def test_following_ends_with_a_run_whose_repeated_command_is_killed(world, tmp_path):
    """It ended early, so that its last step is known by the record that is set aside alone."""
    model = tmp_path / "model"
    flags = {"config": world.config, "data": world.data, "output": model}
    arguments = ["pretrain", "--steps=2", *(f"--{name}={value}" for name, value in flags.items())]
    command(*arguments)
    program = [sys.executable, "-m", "official.xlnet.cli"]
    process = start_process([*program, *arguments], dict(os.environ))
    while not (model / ".end.json").exists():
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.communicate()
    assert not (model / END_FILE).exists()
    followed = command("evaluate", "--follow", model=model, data=world.data, output=tmp_path / "x")
    assert followed["step"] == 2
