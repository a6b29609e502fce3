"""`xlnet finetune` without settings, the baselines beside its result, and `--search`."""

import json
import os
import random
from unittest import mock

import pytest
import yaml

from official.xlnet import cli
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import BASELINES
from official.xlnet.errors import DivergedError, PreemptedError
from official.xlnet.extensions.several_runs import runs as several_runs
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.finetune_command import read_json, run
from tests.helpers.task_corpora import labelled, task_config, write_table

pytestmark = pytest.mark.slow

HEADER = ("label", "text")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("untuned")
    rng = random.Random(0)
    write_table(directory / "train.tsv", HEADER, labelled(rng, 61))
    write_table(directory / "dev.tsv", HEADER, labelled(rng, 41))
    model = task_config().as_dict()["model"]
    (directory / "model.yaml").write_text(yaml.safe_dump({"model": model}))
    return directory


def arguments(files, output, *more):
    return [
        *("finetune", "--task=classification", f"--train={files / 'train.tsv'}"),
        *(f"--dev={files / 'dev.tsv'}", f"--output={output}", f"--config={files / 'model.yaml'}"),
        *(f"--vocab={vocabulary_dir()}/spiece.model", "--set=task.max_length=23", *more),
    ]


def test_settings_follow_from_model_and_data_and_baselines_are_beside(files, tmp_path, capfd):
    output = tmp_path / "model"
    assert cli.main(arguments(files, output, "--set=task.num_buckets=1")) == 0
    out, err = capfd.readouterr()
    result = json.loads(out.splitlines()[-1])
    config = XLNetConfig.load(str(output))
    assert (config.training.learning_rate, config.training.batch_size) == (3e-3, 16)
    # 40 epochs of 4 batches each.
    assert (config.training.num_steps, config.training.warmup_steps) == (160, 16)
    assert config.task.summary == "mean" and config.task.pooled_segments == "all"
    assert "learning rate 3e-3 for a model of 0.0 M parameters; 160 steps of 61 examples" in err
    assert "accuracy: model" in err and "bag of words" in err
    found = result["baselines"]
    assert found["bag_of_words"]["accuracy"] > 0.8 > found["majority"]["accuracy"]
    metrics = read_json(output, "metrics.json")
    assert metrics["baselines"] == found and metrics["accuracy"] == result["accuracy"]

    # The same command finds the run finished; a run that began with other settings keeps them.
    assert run(capfd, *arguments(files, output, "--set=task.num_buckets=1")) == result


def test_an_error_in_the_baselines_costs_no_model(files, tmp_path, capfd):
    few = [f"--set={x}" for x in ("num_steps=4", "task.num_buckets=1")]
    too_large = mock.Mock(side_effect=MemoryError("too large"))
    with mock.patch.dict(BASELINES, {"text": too_large}):
        result = run(capfd, *arguments(files, tmp_path / "model", *few))
    assert result["baselines"] is None and result["steps"] == 4
    assert "baselines" not in read_json(tmp_path / "model", "metrics.json")


def test_search_is_resumed_and_writes_a_recipe(files, tmp_path, capfd):
    output = tmp_path / "model"
    few = [f"--set={x}" for x in ("num_steps=36", "task.num_buckets=1", "learning_rate=0.01")]
    command = arguments(files, output, *few)
    original = several_runs.finetune

    def preempted(config, train, dev, directory, *start, **options):
        if directory.endswith("1-3"):
            raise PreemptedError("told to leave")
        if directory.endswith("2-3"):
            raise DivergedError("step 1: expected a finite loss")
        return original(config, train, dev, directory, *start, **options)

    with mock.patch.object(several_runs, "finetune", preempted):
        assert cli.main([*command, "--search=3"]) == 75
    assert [r["candidate"] for r in read_json(output, "search.json")["runs"]] == [0]

    def diverged(config, train, dev, directory, *start, **options):
        started.append(os.path.basename(directory))
        if directory.endswith("2-3"):
            raise DivergedError("step 1: expected a finite loss")
        return original(config, train, dev, directory, *start, **options)

    started = []
    with mock.patch.object(several_runs, "finetune", diverged):
        result = run(capfd, *command, "--search=3")
    assert started[:2] == ["1-3", "2-3"] and "0-1" in started[2:]
    runs = read_json(output, "search.json")["runs"]
    assert runs[2]["metric"] is None and result["runs"] == len(runs)
    full = {r["candidate"]: r["metrics"]["accuracy"] for r in runs if r["share"] == 1}
    assert result["accuracy"] == max(full.values()) and len(full) == len(started) - 2
    assert result["baselines"]["majority"]["accuracy"] < 0.6
    assert (output / "search.png").read_bytes().startswith(b"\x89PNG")
    assert not list(output.glob("search/*/ckpt-*")) and not list(output.glob("search/*/run"))
    again = run(capfd, "evaluate", f"--model={output}", f"--data={files / 'dev.tsv'}")
    assert again["accuracy"] == result["accuracy"]

    # The recipe gives the same model without a search.
    other = arguments(files, tmp_path / "other")
    other = [x for x in other if not x.startswith(("--config", "--set"))]
    recipe = yaml.safe_load((output / "recipe.yaml").read_text())
    recipe["model"] = task_config().as_dict()["model"] | recipe["model"]
    (tmp_path / "with_model.yaml").write_text(yaml.safe_dump(recipe))
    found = run(capfd, *other, f"--config={tmp_path / 'with_model.yaml'}")
    assert found["loss"] == pytest.approx(result["loss"], rel=1e-4)

    with mock.patch.object(several_runs, "finetune") as started_again:
        assert run(capfd, *command, "--search=3") == result
    assert not started_again.called
