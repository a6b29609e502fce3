"""`xlnet finetune --runs`: several seeds, their median and spread, and the best model."""

import json
import os
import random
from unittest import mock

import numpy as np
import pytest

from official.xlnet.errors import PreemptedError
from official.xlnet.extensions.several_runs import runs as several_runs
from tests.helpers.finetune_command import finetune, read_json, run
from tests.helpers.task_corpora import labelled, write_table

pytestmark = pytest.mark.slow

SETTINGS = {"num_steps": 12, "warmup_steps": 2, "checkpoint_steps": 6}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("repeated")
    rng = random.Random(0)
    write_table(directory / "train.tsv", ("label", "text"), labelled(rng, 60))
    write_table(directory / "dev.tsv", ("label", "text"), labelled(rng, 41))
    return directory


def repeat(files, output, runs, **changes):
    table = (files / "train.tsv", files / "dev.tsv")
    settings = {**SETTINGS, **changes}
    return finetune("classification", *table, str(output), f"--runs={runs}", **settings)


def test_runs_are_resumed_left_alone_when_finished_and_can_grow(files, tmp_path, capfd):
    output = tmp_path / "model"
    original = several_runs.finetune

    def preempted_in_the_second(config, train, dev, directory, *start, **options):
        if directory.endswith("1"):
            raise PreemptedError("told to leave")
        return original(config, train, dev, directory, *start, **options)

    with mock.patch.object(several_runs, "finetune", preempted_in_the_second):
        assert repeat(files, output, 2) == 75
    assert len(read_json(output, "runs.json")["runs"]) == 1
    with mock.patch.object(several_runs, "finetune", side_effect=original) as started:
        assert repeat(files, output, 2) == 0
        first = json.loads(capfd.readouterr().out.splitlines()[-1])
        assert repeat(files, output, 2) == 0
        assert json.loads(capfd.readouterr().out.splitlines()[-1]) == first
        assert [os.path.basename(call.args[3]) for call in started.call_args_list] == ["1"]
        assert repeat(files, output, 3) == 0
    assert [os.path.basename(call.args[3]) for call in started.call_args_list] == ["1", "2"]
    # The best of three is kept.
    result = json.loads(capfd.readouterr().out.splitlines()[-1])
    runs = [entry["metrics"] for entry in read_json(output, "runs.json")["runs"]]
    values = [metrics["accuracy"] for metrics in runs]
    assert len({metrics["loss"] for metrics in runs}) == 3
    best = int(np.argmax(values))
    assert (result["runs"], result["best_run"], result["metric"]) == (3, best, "accuracy")
    assert result["median"] == sorted(values)[1] and result["loss"] == runs[best]["loss"]
    assert (result["lowest"], result["highest"]) == (min(values), max(values))
    assert result["standard_deviation"] == pytest.approx(np.std(values, ddof=1))
    # The model is that of the best run, and the weights of no other are left.
    again = run(capfd, "evaluate", f"--model={output}", f"--data={files / 'dev.tsv'}")
    assert again["loss"] == pytest.approx(runs[best]["loss"], rel=1e-5)
    assert not list(output.glob("runs/*/ckpt-*")) and not list(output.glob("runs/*/run"))
    assert read_json(output, "metrics.json")["accuracy"] == max(values)

    assert repeat(files, output, 3, learning_rate=0.5) == 2
    assert "expected the configuration of its earlier runs" in capfd.readouterr().err
    # Without its list of runs it is a model as any other, which is not overwritten.
    (output / "runs.json").unlink()
    assert repeat(files, output, 2) == 2
    assert "expected repeated runs or nothing, got a model directory" in capfd.readouterr().err
