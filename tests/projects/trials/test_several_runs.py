"""`xlnet finetune` without settings, with baselines, `--runs`, `--search` and `--folds`."""

import json
import os
import pathlib
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import BASELINES
from official.xlnet.errors import DivergedError, PreemptedError
from official.xlnet.projects.trials import runs as several_runs
from official.xlnet.projects.trials.folds import paired_test
from tests.helpers.world import command

pytestmark = pytest.mark.slow

ORIGINAL = several_runs.run_finetuning


def read_json(*path):
    return json.loads(pathlib.Path(*path).read_text())


def watched(started, **errors):
    """Notes the name of each run's directory, and raises the error of that name."""

    def finetune(config, train, dev, directory, *start, **options):
        started.append(os.path.basename(directory))
        if started[-1] in errors:
            raise errors[started[-1]]
        return ORIGINAL(config, train, dev, directory, *start, **options)

    return mock.patch.object(several_runs, "run_finetuning", finetune)


def check_one_model(world, output, folder, result):
    """The model is that of the result, and no other run has weights or states left."""
    again = command("evaluate", model=output, data=world.files("classification")["dev"])
    assert again["loss"] == pytest.approx(result["loss"], rel=1e-5)
    assert again["accuracy"] == result["accuracy"]
    assert read_json(output, "metrics.json")["accuracy"] == result["accuracy"]
    assert not list(output.glob(f"{folder}/*/ckpt-*")) and not list(output.glob(f"{folder}/*/run"))


def test_settings_follow_from_model_and_data_and_baselines_are_beside(world, tmp_path, capfd):
    flags = {**world.files("classification"), "init_from": world.pretrained}
    sets = [f"--set=task.{each}" for each in ("max_length=23", "num_buckets=1", "epochs=2")]
    sets.append("--task=classification")
    result = command("finetune", *sets, **flags, output=tmp_path / "model")
    err, training = capfd.readouterr().err, XLNetConfig.load(str(tmp_path / "model")).training
    assert (training.learning_rate, training.batch_size) == (3e-3, 16)
    assert (training.num_steps, training.warmup_steps) == (20, 2)
    assert "learning rate 3e-3 for a model of 0.0 M parameters; 20 steps of 150 examples" in err
    assert "accuracy: model" in err and "bag of words" in err
    found = result["baselines"]
    assert found["bag_of_words"]["accuracy"] > 0.8 > found["majority"]["accuracy"]
    metrics = read_json(tmp_path, "model/metrics.json")
    assert metrics["baselines"] == found and metrics["accuracy"] == result["accuracy"]
    assert command("finetune", *sets, **flags, output=tmp_path / "model") == result
    # An error in the baselines costs no model.
    with mock.patch.dict(BASELINES, {"text": mock.Mock(side_effect=MemoryError("too large"))}):
        result = command("finetune", *sets, **flags, output=tmp_path / "other")
    assert result["baselines"] is None and result["steps"] == 20


def test_runs_are_resumed_left_alone_when_finished_and_can_grow(world, tmp_path, capfd):
    started, flags = [], {"output": tmp_path}
    repeat = ["finetune", *world.finetune_flags("classification"), "--set=num_steps=6"]
    with watched([], **{"1": PreemptedError("told to leave")}):
        command(*repeat, "--runs=2", status=75, **flags)
    assert len(read_json(tmp_path, "runs.json")["runs"]) == 1
    with watched(started):
        first = command(*repeat, "--runs=2", **flags)
        assert command(*repeat, "--runs=2", **flags) == first
        result = command(*repeat, "--runs=3", **flags)
        assert command(*repeat, "--runs=2", **flags) == result  # The best may be the third.
    assert started == ["1", "2"]
    runs = [entry["metrics"] for entry in read_json(tmp_path, "runs.json")["runs"]]
    values = [metrics["accuracy"] for metrics in runs]
    assert len({metrics["loss"] for metrics in runs}) == 3
    best = int(np.argmax(values))
    assert (result["runs"], result["best_run"], result["metric"]) == (3, best, "accuracy")
    assert result["median"] == sorted(values)[1] and result["loss"] == runs[best]["loss"]
    assert (result["lowest"], result["highest"]) == (min(values), max(values))
    assert result["standard_deviation"] == pytest.approx(np.std(values, ddof=1))
    check_one_model(world, tmp_path, "runs", result)
    command(*repeat, "--runs=3", "--set=learning_rate=0.5", status=2, **flags)
    assert "expected the configuration of its earlier runs" in capfd.readouterr().err
    # Without its list of runs it is a model as any other, which is not overwritten.
    (tmp_path / "runs.json").unlink()
    command(*repeat, "--runs=2", status=2, **flags)
    assert "expected repeated runs or nothing, got a model directory" in capfd.readouterr().err


@pytest.mark.nightly
def test_search_is_resumed_and_writes_a_recipe(world, tmp_path, capfd):
    output, started = tmp_path / "model", []
    search = ["finetune", *world.finetune_flags("classification"), "--set=num_steps=9"]
    diverged = {"2-3": DivergedError("step 1: expected a finite loss")}
    with watched([], **{"1-3": PreemptedError("told to leave")}):
        command(*search, "--search=3", status=75, output=output)
    assert [run["candidate"] for run in read_json(output, "search.json")["runs"]] == [0]
    with watched(started, **diverged):
        result = command(*search, "--search=3", output=output)
        assert command(*search, "--search=3", output=output) == result
    assert started[:2] == ["1-3", "2-3"] and "0-1" in started[2:]
    runs = read_json(output, "search.json")["runs"]
    assert runs[2]["metric"] is None and result["runs"] == len(runs) == len(started) + 1
    full = {run["candidate"]: run["metrics"]["accuracy"] for run in runs if run["share"] == 1}
    assert result["accuracy"] == max(full.values()) and len(full) == len(started) - 2
    assert result["baselines"]["majority"]["accuracy"] < 0.6
    assert (output / "search.png").read_bytes().startswith(b"\x89PNG")
    check_one_model(world, output, "search", result)
    # A smaller search reports the model that is there.
    recipe = (output / "recipe.yaml").read_text()
    assert command(*search, "--search=1", output=output) == {**result, "candidates": 1}
    assert (output / "recipe.yaml").read_text() == recipe
    # The results of shorter runs are none of a search whose full runs diverged.
    full = {f"{number}-1": DivergedError("step 1: expected a finite loss") for number in range(3)}
    with watched([], **full):
        command(*search, "--search=3", output=tmp_path / "diverged", status=2)
    assert "expected a run with a finite loss, got none" in capfd.readouterr().err
    # The recipe gives the same model without a search.
    files, recipe = world.files("classification"), {"config": output / "recipe.yaml"}
    recipe |= {"init_from": world.pretrained, "output": tmp_path / "other"}
    found = command("finetune", "--task=classification", **recipe, **files)
    assert found["loss"] == pytest.approx(result["loss"], rel=1e-4)


def test_folds_are_runs_on_parts_of_the_data(world, tmp_path):
    """Each example is held out once; the difference from a bag of words has a p-value."""
    flags = {"train": world.files("classification")["train"], "init_from": world.pretrained}
    flags |= {"task": "classification", "output": tmp_path / "model"}
    sets = [f"--set=task.{each}" for each in ("max_length=23", "num_buckets=1")]
    cross = ["finetune", *sets, "--set=num_steps=6", "--set=checkpoint_steps=6"]
    started, seen = [], []

    def finetune(config, train, dev, directory, *start, **options):
        started.append(os.path.basename(directory))
        seen.append(({e.id for e in train}, {e.id for e in dev}))
        if started == ["0", "1"]:
            raise PreemptedError("told to leave")
        return ORIGINAL(config, train, dev, directory, *start, **options)

    with mock.patch.object(several_runs, "run_finetuning", finetune):
        command(*cross, "--folds=3", status=75, **flags)
        result = command(*cross, "--folds=3", **flags)
        assert command(*cross, "--folds=3", **flags) == result
    assert started == ["0", "1", "1", "2"] and seen[1] == seen[2]
    train, dev = zip(*(seen[n] for n in (0, 2, 3)), strict=True)
    everything = set().union(*dev)
    assert sum(map(len, dev)) == len(everything) == 150
    assert [a | b for a, b in zip(train, dev, strict=True)] == [everything] * 3
    values = [run["metrics"]["accuracy"] for run in read_json(tmp_path, "model/folds.json")["runs"]]
    assert result["values"] == values and result["mean"] == pytest.approx(np.mean(values))
    assert result["standard_deviation"] == pytest.approx(np.std(values, ddof=1))
    assert result["bag_of_words"] + result["difference"] == pytest.approx(result["mean"])
    for number in (2, 5):  # Its runs were on other parts.
        command(*cross, f"--folds={number}", status=2, **flags)
    command(*cross, "--folds=3", "--runs=2", status=2, **flags)
    command(*cross, "--folds=3", dev=flags["train"], status=2, **flags)


def test_folds_with_a_class_of_one_example(world, tmp_path):
    """It is in no training part of its own fold, and yet a class there."""
    rows = [("the water" + " of" * n, "ab"[n % 2]) for n in range(12)] + [("people", "rare")]
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in [("text", "label"), *rows]))
    flags = {"train": tmp_path / "a.tsv", "init_from": world.pretrained, "output": tmp_path / "m"}
    sets = ("num_steps=2", "checkpoint_steps=2", "task.max_length=23", "data.max_unknown=1")
    found = command(
        "finetune", "--folds=2", *(f"--set={each}" for each in sets), task="classification", **flags
    )
    assert found["folds"] == 2 and len(found["values"]) == 2
    assert XLNetConfig.load(str(tmp_path / "m")).task.labels == ("a", "b", "rare")


def test_the_paired_test_is_that_of_the_paper():
    """Nadeau and Bengio (2003), equation for k folds; without overlap, the usual t-test."""
    difference = np.array([0.02, 0.05, -0.01, 0.03, 0.04])
    found = paired_test(difference)
    t = 0.026 / np.sqrt((1 / 5 + 1 / 4) * np.var(difference, ddof=1))
    assert found == pytest.approx({"difference": 0.026, "p_value": 2 * stats.t.sf(t, 4)})
    assert found["p_value"] > stats.ttest_1samp(difference, 0).pvalue
    assert paired_test(np.zeros(3)) == {"difference": 0.0, "p_value": 1.0}
