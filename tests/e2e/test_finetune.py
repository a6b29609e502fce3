"""Fine-tuning from files to predictions, through the command line."""

import collections
import os
import pathlib
import random
import signal

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from official.xlnet import cli
from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint
from official.xlnet.checkpoints.restoring import load_encoder
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import PreemptedError
from official.xlnet.inference import task_prediction
from official.xlnet.inference.task_prediction import load_task, predict_examples
from tests.helpers.compare import assert_all_close
from tests.helpers.runs import interrupt, losses_of
from tests.helpers.task_corpora import labelled, sentence, write_table
from tests.helpers.world import TASK_SETTINGS, command

SETTINGS = (*TASK_SETTINGS, "warmup_steps=0", "learning_rate=0.01", "model.dropout=0")


def finetune(world, train, dev, output, *settings, task="classification", **flags):
    """Runs the command from the pre-trained model; returns its result."""
    sets = [f"--set={setting}" for setting in (*SETTINGS, *settings)]
    flags = {"init_from": world.pretrained, "train": train, "dev": dev, "output": output, **flags}
    return command("finetune", f"--task={task}", *sets, **flags)


def test_it_learns_and_leaves_its_files(world):
    task = world.task("classification")
    metrics, predictions = task.json("metrics.json"), task.predictions()
    assert metrics["accuracy"] > 0.8
    assert (metrics["train_examples"], metrics["steps"]) == (150, 60)
    names = {"config.yaml", "spiece.model", "predictions.jsonl", "evaluation.png", "logs"}
    assert names <= set(os.listdir(task.model))
    labels = pd.read_csv(task.dev, sep="\t").label
    assert np.mean(labels == [p["label"] for p in predictions]) == metrics["accuracy"]
    assert load_encoder(task.model).built
    saved = tf.train.list_variables(tf.train.latest_checkpoint(task.model))
    assert not any("optimizer" in name for name, _ in saved)


BY_ITSELF = (33, None, cli.EXIT_INTERRUPTED, "")  # Without a checkpoint of its last step.
BY_CTRL_C = (40, signal.SIGINT, cli.EXIT_INTERRUPTED, "interrupted at step 40")
BY_SIGTERM = (47, signal.SIGTERM, PreemptedError.exit_status, "preempted at step 47")


@pytest.mark.parametrize(
    ("verb", "ends"),
    [
        ("finetune", [BY_ITSELF, BY_SIGTERM]),
        pytest.param("finetune", [BY_ITSELF, BY_CTRL_C, BY_SIGTERM], marks=pytest.mark.slow),
        pytest.param("pretrain", [BY_ITSELF, BY_CTRL_C, BY_SIGTERM], marks=pytest.mark.slow),
    ],
    ids=["finetune", "finetune also after Ctrl-C", "pretrain"],
)
def test_an_interrupted_run_continues_as_if_nothing_had_been(
    verb, ends, world, interrupts, tmp_path, monkeypatch, capfd
):
    output = tmp_path / "model"
    if verb == "finetune":
        whole, checkpoints = world.task("classification").model, output / "run"
        flags = [*world.finetune_flags("classification"), f"--output={output}"]
    else:
        whole, checkpoints = world.pretrained, output
        flags = [f"--config={world.config}", f"--data={world.data}", f"--output={output}"]
    interrupt(monkeypatch, {step: moment for step, moment, _, _ in ends})
    assert cli.main([verb, *flags]) == cli.EXIT_INTERRUPTED and len(losses_of(output)) == 33
    for step, _, status, said in ends[1:]:
        assert cli.main([verb, *flags]) == status
        last = capfd.readouterr().err.splitlines()[-1]
        assert f"{said}; checkpoint saved in {output}" in last
        assert newest_checkpoint(str(checkpoints)).record["step"] == step
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert cli.main([verb, *flags]) == 0
    np.testing.assert_allclose(losses_of(output), losses_of(whole), atol=1e-5)
    ours, theirs = (load_encoder(str(path)).variables for path in (output, whole))
    assert_all_close(ours, theirs, atol=1e-5)


def test_prediction_reads_no_more_than_it_needs_and_keeps_the_order(world, monkeypatch):
    monkeypatch.setattr(task_prediction, "_CHUNK_BATCHES", 3)
    network, task = load_task(world.task("classification").model)
    most = 3 * task.config.training.batch_size
    read = collections.Counter()

    def stream():
        for number in range(3 * most):
            read["examples"] += 1
            yield TextExample(str(number), (sentence(random.Random(number), 1, 15),))

    for number, prediction in enumerate(predict_examples(network, task, stream())):
        assert prediction["id"] == str(number)
        assert read["examples"] <= (number // most + 1) * most + 1
    assert number == 3 * most - 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["windows", "memory"])
def test_long_texts_are_read_to_their_end(method, world, tmp_path):
    """The word that tells is behind what fits in one input."""
    rows = [(label, 19 * "is " + text) for label, text in labelled(random.Random(5), 101)]
    train = write_table(tmp_path / "train.tsv", ("label", "text"), rows[:80])
    dev = write_table(tmp_path / "dev.tsv", ("label", "text"), rows[80:])
    settings = [f"task.long_texts={method}", "task.max_windows=3", "task.window_stride=11"]
    settings += ["task.max_length=17", "model.mem_len=40", "num_steps=150", "checkpoint_steps=50"]
    metrics = finetune(world, train, dev, tmp_path / "model", *settings)
    assert metrics["accuracy"] > 0.8 and "train_truncated" not in metrics


@pytest.mark.usefixtures("eager")
def test_early_stopping_keeps_the_best_and_a_run_that_has_stopped_is_left_alone(world, tmp_path):
    arguments = (world, *world.files("classification").values(), tmp_path / "model")
    settings = ["checkpoint_steps=1", "num_steps=30", "task.patience=2", "learning_rate=1e-9"]
    metrics = finetune(*arguments, *settings, "task.class_weights=balanced")
    assert (metrics["step"], metrics["steps"]) == (1, 3)
    assert finetune(*arguments, *settings, "task.class_weights=balanced") == metrics


@pytest.mark.parametrize(
    ("train", "dev", "setting", "message"),
    [
        (None, "label\ttext\ngoood\ta b\n", "", "got 'goood'; did you mean 'good'?"),
        (None, "lable\ttext\ngood\ta\n", "", "expected a column 'label', got lable ('good'), text"),
        ("label\ttext\ngood\ta\ngood\tb\n", None, "", "at least two classes, got good"),
        ("label\ttext\n", None, "", "expected examples, got none"),
        ("", None, "", "expected a header with column names, got an empty file"),
        (None, None, "task.text_columns=[txt]", "expected a column 'txt', got label ("),
        ("label\ttext\ngood\t\nbad\t \n", None, "", "expected examples with text, got none"),
        (None, None, "task.max_length=2", "expected at least 3 for 1 text(s)"),
        (None, None, "task.metric=acuracy", "task.metric: expected one of accuracy"),
    ],
)
def test_wrong_input_is_one_sentence(train, dev, setting, message, world, tmp_path, capfd):
    paths = world.files("classification")
    for split, text in (("train", train), ("dev", dev)):
        if text is not None:
            paths[split] = str(tmp_path / f"{split}.tsv")
            pathlib.Path(paths[split]).write_text(text)
    settings = ["num_steps=1", "checkpoint_steps=1", *filter(None, [setting])]
    finetune(world, *paths.values(), tmp_path / "model", *settings, status=2)
    err = capfd.readouterr().err
    assert message in err.splitlines()[-1] and "Traceback" not in err


@pytest.mark.usefixtures("eager")
def test_what_is_left_out_and_cut_is_counted(world, tmp_path, capfd):
    train, output = tmp_path / "train.tsv", tmp_path / "model"
    rows = ["good\twater", "bad\tnot", "bad\t", "bad\tno\textra", "", f"good\t{'water ' * 60}"]
    train.write_text("label\ttext\n" + "\n".join(rows) + "\n")
    settings = ["num_steps=1", "checkpoint_steps=1"]
    metrics = finetune(world, train, train, output, *settings, max_lost=0.4)
    counts = {
        f"{split}_{name}": 1
        for split in ("train", "dev")
        for name in ("malformed_rows", "blank_lines", "truncated")
    }
    counts |= {"train_skipped_empty": 1, "dev_empty": 1}
    assert {name: metrics[name] for name in counts} == counts
    again = command("evaluate", model=output, data=train, max_lost=0.4)
    assert again["malformed_rows"] == 1 and again["accuracy"] == metrics["accuracy"]
    command("evaluate", model=output, data=train, status=2)
    # A row to predict is never left out: the line is named.
    command("predict", model=output, input=train, output=tmp_path / "p", status=2)
    assert "line 5: expected 2 columns (label, text), got 3" in capfd.readouterr().err
    assert not (tmp_path / "p").exists()


@pytest.mark.slow
def test_adapters_are_trained_resumed_and_added_to_the_weights(
    world, interrupts, tmp_path, monkeypatch
):
    """Predictions, of an export too, are those of training; all other weights stay."""
    dev, output = world.files("classification")["dev"], tmp_path / "model"
    flags = [*world.finetune_flags("classification"), "--set=lora_rank=3", "--set=layer_decay=0.9"]
    interrupt(monkeypatch, {33: None, 47: signal.SIGTERM})
    for status in (cli.EXIT_INTERRUPTED, PreemptedError.exit_status):
        command("finetune", *flags, output=output, status=status)
    metrics, whole = (command("finetune", *flags, output=x) for x in (output, tmp_path / "whole"))
    np.testing.assert_allclose(losses_of(output), losses_of(tmp_path / "whole"), atol=1e-5)
    assert metrics["accuracy"] == whole["accuracy"] > 0.7
    again = command("evaluate", model=output, data=dev, output=tmp_path / "again")
    assert again["accuracy"] == metrics["accuracy"]
    assert again["loss"] == pytest.approx(metrics["loss"], abs=1e-4)

    state = {name for name, _ in tf.train.list_variables(str(output / "run"))}
    ours, theirs = (
        dict(tf.train.list_variables(str(path)))
        for path in (output, world.task("classification").model)
    )
    assert ours == theirs and any("/lora/" in name for name in state)
    before, after = load_encoder(str(world.pretrained)), load_encoder(str(output))
    changed = {
        x.name.rpartition("/")[2].removesuffix(":0")  # Which Keras 2 adds.
        for x, y in zip(before.variables, after.variables, strict=True)
        if not np.array_equal(x, y)
    }
    attention = {f"{name}_kernel" for name in ("query", "key", "value", "output")}
    assert changed == attention | {"inner_kernel", "outer_kernel"}
    command("export", model=output, output=tmp_path / "export")
    served = tf.saved_model.load(str(tmp_path / "export/1")).signatures["serving_default"]
    rows = pd.read_csv(dev, sep="\t")
    [column] = [name for name in rows if name != "label"]
    labels = served(**{column: tf.constant(rows[column])})["label"].numpy().astype(str)
    assert np.mean(labels == rows.label.astype(str)) == pytest.approx(metrics["accuracy"])
