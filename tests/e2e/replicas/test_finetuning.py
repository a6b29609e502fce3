"""Fine-tuning on replicas is fine-tuning on one device, and one continues the other."""

import json
import random
import signal

import numpy as np
import pandas as pd
import pytest
import yaml

from official.xlnet import cli
from official.xlnet.errors import PreemptedError
from official.xlnet.inference.task_prediction import load_task
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.replicas.clusters import (
    finish,
    start_cluster,
    strategies_of_replicas,
    wait_for_step,
)
from tests.helpers.runs import losses_of
from tests.helpers.task_corpora import labelled, task_config, write_table

pytestmark = pytest.mark.slow

STEPS, PREEMPTED_AT = 23, 4


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    """37 examples in batches of 8: the last batch of an epoch has one for the second replica."""
    directory, rng = tmp_path_factory.mktemp("finetune"), random.Random(0)
    train = write_table(directory / "train.tsv", ("label", "text"), labelled(rng, 37))
    dev = write_table(directory / "dev.tsv", ("label", "text"), labelled(rng, 19))
    tree = task_config(batch_size=8, num_steps=STEPS, checkpoint_steps=7).as_dict()
    tree["task"] = {"max_length": 23, "num_buckets": 2}
    tree["training"]["accumulate_steps"] = 2  # Needs to know the number of rows.
    (directory / "recipe.yaml").write_text(yaml.safe_dump(tree))
    flags = {"config": directory / "recipe.yaml", "vocab": f"{vocabulary_dir()}/spiece.model"}
    flags |= {"task": "classification", "train": train, "dev": dev, "cluster_timeout": 300}
    return ["finetune", *(f"--{name}={value}" for name, value in flags.items())]


@pytest.fixture(scope="module")
def one_device(arguments, tmp_path_factory):
    """The model directory of a run on one device."""
    output = tmp_path_factory.mktemp("runs") / "one_device"
    assert cli.main([*arguments, f"--output={output}"]) == 0
    return output


def assert_same_model(output, other, atol=1e-4):
    """Of losses within `atol`, and the same weights, metrics and predictions."""
    np.testing.assert_allclose(losses_of(output), losses_of(other), rtol=0, atol=atol)
    (ours, _), (theirs, _) = load_task(str(output)), load_task(str(other))
    for weight, expected in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_allclose(weight, expected, rtol=0, atol=1e-3, err_msg=weight.name)
    found, wanted = (json.loads((path / "metrics.json").read_text()) for path in (output, other))
    assert found.pop("baselines") == wanted.pop("baselines")
    assert found.pop("confusion_matrix") == wanted.pop("confusion_matrix")
    assert [*found.pop("classes")] == [*wanted.pop("classes")]  # Their f1 has a mean, `macro_f1`.
    assert found == pytest.approx(wanted, abs=1e-3)
    ours, theirs = (
        pd.read_json(path / "predictions.jsonl", lines=True) for path in (output, other)
    )
    assert list(ours.id) == list(theirs.id)
    found, wanted = (
        np.array([list(row.values()) for row in each.probabilities]) for each in (ours, theirs)
    )
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3)


def preempt(processes, output):
    """Sends SIGTERM to the last process alone; all save and end."""
    wait_for_step(processes[0], output, PREEMPTED_AT)
    processes[-1].send_signal(signal.SIGTERM)
    finish(processes, PreemptedError.exit_status)
    assert PREEMPTED_AT <= len(losses_of(output)) < STEPS


def test_one_device_continues_a_run_that_was_preempted_on_two(arguments, one_device, tmp_path):
    """The process first refuses a batch that its replicas cannot share."""
    output, program = tmp_path / "model", "tests.helpers.replicas.uneven_batch"
    preempt(start_cluster("mirrored", [*arguments, f"--output={output}"], program=program), output)
    assert cli.main([*arguments, f"--output={output}"]) == 0
    assert_same_model(output, one_device)


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", strategies_of_replicas())
def test_replicas_give_the_model_of_one_device(arguments, one_device, tmp_path, strategy):
    """Once in one go, and once preempted and resumed."""
    calm, preempted = tmp_path / "calm", tmp_path / "preempted"
    metrics = finish(start_cluster(strategy, [*arguments, f"--output={calm}"]))
    assert metrics["steps"] == STEPS
    assert_same_model(calm, one_device)
    preempt(start_cluster(strategy, [*arguments, f"--output={preempted}"]), preempted)
    finish(start_cluster(strategy, [*arguments, f"--output={preempted}"]))
    assert_same_model(preempted, calm, atol=1e-5)


@pytest.mark.nightly
def test_two_workers_train_the_adapters_of_one_device(arguments, tmp_path):
    adapted = [*arguments, "--set=training.lora_rank=3"]
    alone, together = tmp_path / "alone", tmp_path / "together"
    assert cli.main([*adapted, f"--output={alone}"]) == 0
    finish(start_cluster("multi_worker", [*adapted, f"--output={together}"]))
    assert_same_model(together, alone)


@pytest.mark.nightly
def test_two_workers_repeat_the_runs_of_one_device(arguments, tmp_path):
    repeated = ["finetune_repeatedly", *arguments[1:], "--runs=2"]
    alone, together = tmp_path / "alone", tmp_path / "together"
    assert cli.main([*repeated, f"--output={alone}"]) == 0
    assert finish(start_cluster("multi_worker", [*repeated, f"--output={together}"]))["runs"] == 2
    losses = [
        [run["metrics"]["loss"] for run in json.loads((path / "runs.json").read_text())["runs"]]
        for path in (together, alone)
    ]
    assert losses[1][0] != pytest.approx(losses[1][1], abs=1e-3)
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-4)
