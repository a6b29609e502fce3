"""Verbs of several runs: their former spellings, and their flags."""

import dataclasses
from unittest import mock

import pytest

from official import xlnet
from official.xlnet import cli
from official.xlnet.commands.other_names import as_called_today
from official.xlnet.errors import ConfigError
from official.xlnet.projects.trials import folds, repeated_runs, search


@pytest.mark.parametrize(
    ("former", "verb", "today"),
    [
        ("--folds=3", "cross_validate", ["--folds=3"]),
        ("--runs=2", "finetune_repeatedly", ["--runs=2"]),
        ("--num_runs=2", "finetune_repeatedly", ["--runs=2"]),
        ("--search=9", "search_settings", ["--candidates=9"]),
        ("--folds=0", "finetune", []),
        ("--runs=1", "finetune", []),
        ("--search=0", "finetune", []),
    ],
)
def test_former_options_are_verbs(former, verb, today):
    assert as_called_today("finetune", ["--train=x", former]) == (verb, ["--train=x", *today])


def test_each_verb_has_its_options_only(capsys):
    for verb, flag in (("cross_validate", "dev"), ("finetune_repeatedly", "folds")):
        assert cli.main([verb, "--train=x", "--output=y", f"--{flag}=2"]) == 2
        assert f"unknown flag --{flag}" in capsys.readouterr().err
    assert cli.main(["finetune", "--folds=3", "--runs=2", "--train=x", "--output=y"]) == 2
    assert "xlnet cross_validate: unknown flag --runs" in capsys.readouterr().err


def test_former_arguments_are_functions(tmp_path):
    rows = [("a", "b"), ("c", "d")]
    with pytest.raises(ConfigError, match=r"folds: expected in \[2, 1000\], got 1"):
        xlnet.finetune(None, rows, None, str(tmp_path), folds=1)
    with pytest.raises(TypeError, match="runs"):
        xlnet.finetune(None, rows, None, str(tmp_path), folds=3, runs=2)
    with pytest.raises(TypeError, match="dev"):
        xlnet.finetune(None, rows, rows, str(tmp_path), folds=3)


@pytest.mark.parametrize(
    ("verb", "work", "inputs"),
    [
        ("cross_validate", "folds.cross_validate_examples", {}),
        ("finetune_repeatedly", "repeated_runs.finetune_examples_repeatedly", {"dev": "10%"}),
        ("search_settings", "search.search_settings_on_examples", {"dev": "10%"}),
    ],
)
def test_options_of_finetune_reach_the_runs(verb, work, inputs, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(f"official.xlnet.projects.trials.{work}", lambda *args: calls.append(args))
    options = {
        "config": "configs/mrpc.yaml",
        "set": ["task.epochs=7"],
        "extra_train": {str(tmp_path / "more.tsv"): 0.5},
        "max_lost": 0.25,
        "new_head": True,
        "cluster_timeout": 9.0,
    }
    rows = [("a", "b"), ("c", "d")]
    getattr(xlnet, verb)(None, rows, **inputs, output=str(tmp_path / "runs"), **options)
    ((settings, train, *_, of_runs),) = calls
    assert train == rows and settings.task.epochs == 7
    assert (of_runs.recipe, of_runs.overrides) == (options["config"], options["set"])
    for name in ("extra_train", "max_lost", "new_head", "cluster_timeout"):
        assert getattr(of_runs, name) == options[name]


WORK = {
    "cross_validate": (folds, "cross_validate_examples", "--folds=3", ["--folds=1"]),
    "finetune_repeatedly": (
        repeated_runs,
        "finetune_examples_repeatedly",
        "--runs=3",
        ["--runs=0", "--dev=120%"],
    ),
    "search_settings": (
        search,
        "search_settings_on_examples",
        "--candidates=3",
        ["--candidates=0", "--dev=120%"],
    ),
}
WRONG = (
    "--task=clasification",
    "--config=no_such_recipe.yaml",
    "--set=epochz=3",
    "--init_from=no_such_model",
    "--strategy=miror",
    "--cpu_devices=0",
    "--extra_train=more.json=much",
    "--max_lost=2",
    "--new_head=maybe",
    "--cluster_timeout=0",
)


@pytest.mark.parametrize(
    ("verb", "flag"),
    [(verb, flag) for verb, (*_, own) in WORK.items() for flag in (*WRONG, *own)],
)
def test_a_wrong_value_is_refused_before_the_run(verb, flag, tmp_path, capsys):
    output = tmp_path / "model"
    (tmp_path / "train.tsv").write_text("label\ttext\na\tb\nb\tc\n")
    arguments = [verb, f"--train={tmp_path}/train.tsv", f"--output={output}"]
    assert cli.main([*arguments, flag]) in (1, 2)
    lines = capsys.readouterr().err.strip().splitlines()
    name, _, value = flag.removeprefix("--").partition("=")
    assert value.split("=")[-1] in lines[-1] or name in lines[-1]
    assert not output.exists()


@pytest.mark.parametrize("verb", WORK)
def test_flags_reach_the_work(verb, tmp_path):
    module, function, own, _ = WORK[verb]
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("training:\n  num_steps: 7\n")
    flags = [own, f"--config={recipe}", "--set=learning_rate=0.5", "--vocab=spiece.model"]
    flags += ["--strategy=mirrored", "--cpu_devices=2", "--extra_train=more.json=0.5"]
    flags += ["--max_lost=0.25", "--new_head", "--cluster_timeout=7", "--task=squad"]
    with mock.patch.object(module, function, return_value={}) as work:
        assert cli.main([verb, "--train=a.json", f"--output={tmp_path}/x", *flags]) == 0
    config, train, *_, number, options = work.call_args.args
    assert (train, number) == ("a.json", 3)
    assert (config.training.num_steps, config.training.learning_rate) == (7, 0.5)
    assert config.task.name == "question_answering"
    assert dataclasses.asdict(options) == {
        "init_from": None,
        "recipe": str(recipe),
        "overrides": ["learning_rate=0.5"],
        "vocab": "spiece.model",
        "strategy": "mirrored",
        "cpu_devices": 2,
        "extra_train": {"more.json": 0.5},
        "max_lost": 0.25,
        "new_head": True,
        "cluster_timeout": 7.0,
    }
