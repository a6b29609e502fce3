"""Fine-tuning from files to predictions, through the command line."""

import collections
import json
import os
import pathlib
import random
import re
import signal

import numpy as np
import pytest
import tensorflow as tf
import yaml

from official.xlnet import cli
from official.xlnet.checkpoints.model_directory import load_encoder
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import PreemptedError
from official.xlnet.inference.task_prediction import load_task, predict_examples
from official.xlnet.runtime import program
from official.xlnet.runtime.history import HistoryWriter, read_history
from tests.helpers.finetune_command import finetune, read_json, run
from tests.helpers.task_corpora import labelled, sentence, task_config, task_file, write_table

# Kernels compiled, functions traced again: once a process, or of the tests before.
_OF_TENSORFLOW = re.compile(r"[IW]\d{4} |WARNING: All log messages before absl")

SQUAD = pathlib.Path(__file__).parents[3] / "shared/data/squad/sample.json"


@pytest.fixture(scope="module")
def files(world):
    """The folder with `train.tsv` and `dev.tsv` of a classification."""
    return pathlib.Path(world.files("classification")["train"]).parent


def lines_of(path):
    return pathlib.Path(path).read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def model(world):
    """A model that has learned which words are good, by a run that nobody interrupts."""
    return world.task("classification").model


def test_it_learns_and_leaves_its_files(model, files):
    figures = read_json(model, "metrics.json")
    assert figures["accuracy"] > 0.8
    assert figures["train_examples"] == 150 and figures["steps"] == 60
    names = set(os.listdir(model))
    assert {"config.yaml", "spiece.model", "predictions.jsonl", "evaluation.png", "logs"} <= names
    predictions = [json.loads(line) for line in lines_of(os.path.join(model, "predictions.jsonl"))]
    labels = [line.split("\t")[0] for line in lines_of(files / "dev.tsv")][1:]
    right = [p["label"] == label for p, label in zip(predictions, labels, strict=True)]
    assert np.mean(right) == pytest.approx(figures["accuracy"])
    assert load_encoder(model).built
    saved = tf.train.list_variables(tf.train.latest_checkpoint(model))
    assert not any("optimizer" in name for name, _ in saved)


def test_evaluate_and_predict_agree_with_training(model, files, tmp_path, capfd):
    capfd.readouterr()
    figures = read_json(model, "metrics.json")
    again = run(capfd, "evaluate", f"--model={model}", f"--data={files / 'dev.tsv'}")
    for name in ("accuracy", "macro_f1", "loss"):
        assert again[name] == pytest.approx(figures[name], rel=1e-5)
    rows = [line.split("\t")[1] for line in lines_of(files / "dev.tsv")][1:]
    random.Random(1).shuffle(rows)
    write_table(tmp_path / "unlabelled.jsonl", ("text",), [(row,) for row in rows])
    output = tmp_path / "predictions.jsonl"
    source = f"--input={tmp_path / 'unlabelled.jsonl'}"
    done = run(capfd, "predict", f"--model={model}", source, f"--output={output}")
    assert done["rows"] == 41
    expected = {}
    for line, prediction in zip(
        lines_of(files / "dev.tsv")[1:],
        lines_of(os.path.join(model, "predictions.jsonl")),
        strict=True,
    ):
        expected[line.split("\t")[1]] = json.loads(prediction)["probabilities"]
    for row, line in zip(rows, lines_of(output), strict=True):
        found = json.loads(line)["probabilities"]
        assert found == pytest.approx(expected[row], abs=1e-4)


def test_an_interrupted_run_continues_as_if_nothing_had_been(
    model, world, tmp_path, monkeypatch, capfd
):
    write = HistoryWriter.write

    def interrupt():
        raise KeyboardInterrupt

    ends = {33: interrupt, 47: lambda: os.kill(os.getpid(), signal.SIGTERM)}

    def interrupted(self, **figures):
        write(self, **figures)
        if figures["step"] in ends:
            ends.pop(figures["step"])()

    output = str(tmp_path / "model")
    command = ["finetune", *world.finetune_flags("classification"), f"--output={output}"]
    monkeypatch.setattr(HistoryWriter, "write", interrupted)
    assert cli.main(command) == program.EXIT_INTERRUPTED
    assert len(read_history(output)) == 33
    assert cli.main(command) == PreemptedError.exit_status
    assert f"preempted at step 47; checkpoint saved in {output}" in capfd.readouterr().err
    assert tf.train.latest_checkpoint(os.path.join(output, "run")).endswith("-47")
    monkeypatch.undo()
    assert cli.main(command) == 0
    losses = [[line["loss"] for line in read_history(path)] for path in (output, model)]
    np.testing.assert_allclose(*losses, atol=1e-5)
    ours, theirs = (read_json(path, "metrics.json") for path in (output, model))
    for name in ("accuracy", "loss", "step"):
        assert ours[name] == pytest.approx(theirs[name], abs=1e-5)


def test_prediction_reads_no_more_than_it_needs_and_keeps_the_order(model):
    network, task = load_task(model)
    most = 32 * task.config.training.batch_size
    read = collections.Counter()
    rng = random.Random(2)

    def stream():
        for number in range(3 * most):
            read["examples"] += 1
            yield TextExample(str(number), (sentence(rng, 1, 15),))

    for number, prediction in enumerate(predict_examples(network, task, stream())):
        assert prediction["id"] == str(number)
        assert read["examples"] <= (number // most + 1) * most + 1
    assert number == 3 * most - 1


@pytest.mark.parametrize(
    ("kind", "figures"),
    [
        ("multi_label", {"micro_f1", "macro_f1", "exact_match"}),
        ("regression", {"pearson", "spearman", "mean_squared_error"}),
        ("multiple_choice", {"accuracy"}),
        ("token_classification", {"precision", "recall", "f1", "word_accuracy"}),
        ("ranking", {"ndcg@20", "err@20", "mrr", "pair_accuracy"}),
        ("question_answering", {"exact_match", "f1", "answerable_f1", "unanswerable_f1"}),
    ],
)
def test_every_kind_of_task_from_file_to_predictions(kind, figures, world, tmp_path, capfd):
    task = world.task(kind)
    trained = task.json("metrics.json")
    assert figures <= trained.keys()
    again = run(capfd, "evaluate", f"--model={task.model}", f"--data={task.dev}")
    for name in {*figures, "loss"}:
        assert again[name] == pytest.approx(trained[name], rel=1e-4, abs=1e-5), name
    output = tmp_path / "predictions.jsonl"
    run(capfd, "predict", f"--model={task.model}", f"--input={task.dev}", f"--output={output}")
    found = [json.loads(line)["id"] for line in lines_of(output)]
    assert found == [prediction["id"] for prediction in task.predictions()]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"long_texts": "windows"}, {"long_texts": "memory"}])
def test_long_texts_are_read_to_their_end(settings, files, tmp_path, capfd):
    rng = random.Random(5)

    def rows(number):
        """The word that tells is behind what fits in one input."""
        return [
            (label, f"{' '.join('is' for _ in range(19))} {text}")
            for label, text in labelled(rng, number)
        ]

    train = write_table(tmp_path / "train.tsv", ("label", "text"), rows(80))
    dev = write_table(tmp_path / "dev.tsv", ("label", "text"), rows(21))
    settings = {"max_windows": 3, "window_stride": 11, "max_length": 17, **settings}
    settings |= {"num_steps": 100, "checkpoint_steps": 50}
    output = str(tmp_path / "model")
    assert finetune("classification", train, dev, output, mem_len=40, **settings) == 0
    figures = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert figures["accuracy"] > 0.8
    assert "train_truncated" not in figures


@pytest.mark.slow
def test_several_data_sets_at_once_then_one_of_them(files, tmp_path, capfd):
    rng = random.Random(7)
    numbers = task_file("regression", tmp_path / "numbers.tsv", rng, 23)
    queries = [(f"q{n}", text, int(y == "good")) for n in range(20) for y, text in labelled(rng, 2)]
    pairs = [(text, "is it good", label) for label, text in labelled(rng, 41)]
    ranked = write_table(tmp_path / "ranked.tsv", ("query", "document", "relevance"), queries)
    pairs = write_table(tmp_path / "pairs.tsv", ("one", "two", "label"), pairs)
    others = f"stsb={_as_stsb(numbers)},ranked={ranked},pairs={pairs}"
    both = str(tmp_path / "both")
    settings = {"rankings": "[ranked]", "answer_module": "san", "num_steps": 100}
    settings["checkpoint_steps"] = 50
    settings["text_columns"] = "[words/text,pairs/one,pairs/two]"
    parts, dev = (f"words={files / f'{split}.tsv'},{others}" for split in ("train", "dev"))
    assert finetune("multitask", parts, dev, both, **settings) == 0, capfd.readouterr().err
    figures = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert figures["words/accuracy"] > 0.8 and figures["ranked/pair_accuracy"] > 0.8
    names = ("words/accuracy", "stsb/pearson", "ranked/ndcg@20", "pairs/accuracy")
    assert figures["mean"] == pytest.approx(np.mean([figures[name] for name in names]))
    source = f"--input=words={files / 'dev.tsv'}"
    output = tmp_path / "p.jsonl"
    assert run(capfd, "predict", f"--model={both}", source, f"--output={output}")["rows"] == 41
    assert {json.loads(line)["subtask"] for line in lines_of(output)} == {"words"}
    one = finetune(
        "classification",
        files / "train.tsv",
        files / "dev.tsv",
        str(tmp_path / "one"),
        f"--init_from={both}",
        num_steps=2,
        learning_rate=1e-5,
    )
    assert one == 0


def _as_stsb(path):
    """The regression table with the names of STS-B's columns."""
    lines = lines_of(path)
    rows = [line.split("\t")[:3] for line in lines[1:]]
    return write_table(path + ".stsb.tsv", ("score", "sentence1", "sentence2"), rows)


def test_early_stopping_keeps_the_best(files, tmp_path, capfd):
    output = str(tmp_path / "model")
    arguments = "classification", files / "train.tsv", files / "dev.tsv", output
    settings = {"checkpoint_steps": 1, "num_steps": 30, "patience": 2, "learning_rate": 1e-9}
    assert finetune(*arguments, **settings, class_weights="balanced") == 0
    figures = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert (figures["step"], figures["steps"]) == (1, 3)
    # A run that has stopped is left alone.
    assert finetune(*arguments, **settings, class_weights="balanced") == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1]) == figures


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("train", "dev", "settings", "sentence"),
    [
        (None, "label\ttext\ngoood\ta b\n", {}, "got 'goood'; did you mean 'good'?"),
        (None, "lable\ttext\ngood\ta\n", {}, "expected a column 'label', got lable, text"),
        ("label\ttext\ngood\ta\ngood\tb\n", None, {}, "at least two classes, got good"),
        ("label\ttext\n", None, {}, "expected examples, got none"),
        ("", None, {}, "expected a header with column names, got an empty file"),
        (None, None, {"task.text_columns": "[txt]"}, "expected a column 'txt', got label, text"),
        ("label\ttext\ngood\t\nbad\t \n", None, {}, "expected examples with text, got none"),
        (None, None, {"task.max_length": 2}, "expected at least 3 for 1 text(s)"),
        (None, None, {"task.metric": "acuracy"}, "task.metric: expected one of accuracy"),
        (None, None, {"task.summary": "middle"}, "task.summary: expected one of last, first"),
        (None, None, {"model.vocab_size": 97}, "model.vocab_size: expected at least 211"),
    ],
)
def test_wrong_input_is_one_sentence(train, dev, settings, sentence, files, tmp_path, capfd):
    train = files / "train.tsv" if train is None else write(tmp_path / "t.tsv", train)
    dev = files / "dev.tsv" if dev is None else write(tmp_path / "d.tsv", dev)
    settings = {"checkpoint_steps": 1, "num_steps": 1, **settings}
    status = finetune("classification", train, dev, str(tmp_path / "m"), **settings)
    captured = capfd.readouterr()
    assert status == 2, captured.err
    assert sentence in captured.err
    own = [line for line in captured.err.splitlines() if not _OF_TENSORFLOW.match(line)]
    own = [line for line in own if not re.search(": texts are read from |^step 1/1 ", line)]
    # What an evaluation measures is known after it, and so whether task.metric is among it.
    began = own[0].startswith("learning rate ")
    assert len(own) == 1 + began and (not began or "task.metric" in settings), captured.err


def test_what_is_left_out_and_cut_is_counted(tmp_path, capfd):
    long = " ".join(["water"] * 60)
    text = f"label\ttext\ngood\twater\nbad\tnot\nbad\t\nbad\tno\textra\n\ngood\t{long}\n"
    train = write(tmp_path / "train.tsv", text)
    settings = {"num_steps": 1, "checkpoint_steps": 1}
    output, lenient = str(tmp_path / "m"), "--max_lost=0.4"
    assert finetune("classification", train, train, output, lenient, **settings) == 0
    figures = json.loads(capfd.readouterr().out.splitlines()[-1])
    for name in ("malformed_rows", "blank_lines", "truncated"):
        assert figures[f"train_{name}"] == figures[f"dev_{name}"] == 1, name
    assert figures["train_skipped_empty"] == figures["dev_empty"] == 1
    # A row to predict is never left out: the line is named.
    status = cli.main(
        ["predict", f"--model={tmp_path / 'm'}", f"--input={train}", f"--output={tmp_path / 'p'}"]
    )
    assert status == 2
    assert "line 5: expected 2 columns (label, text), got 3" in capfd.readouterr().err
    assert not (tmp_path / "p").exists()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists(SQUAD), reason="needs the shared data")
def test_over_fitting_on_squad_gives_every_answer(tmp_path, capfd):
    output = str(tmp_path / "model")
    texts = [p["context"] for a in read_json(SQUAD)["data"] for p in a["paragraphs"]]
    write(tmp_path / "text.txt", "\n".join(texts * 20))
    source = f"--input={tmp_path / 'text.txt'}"
    assert cli.main(["vocab", source, f"--output={tmp_path}", "--size=370"]) == 0
    tree = task_config(370, num_steps=500, checkpoint_steps=250, learning_rate=0.002).as_dict()
    tree["model"] |= {"d_model": 64, "d_inner": 128, "num_layers": 2, "dropout": 0.0}
    tree["task"] = {"max_length": 160, "window_stride": 40, "num_buckets": 1}
    write(tmp_path / "recipe.yaml", yaml.safe_dump(tree))
    files = [f"--train={SQUAD}", f"--dev={SQUAD}", f"--output={output}"]
    config = [f"--config={tmp_path / 'recipe.yaml'}", f"--vocab={tmp_path / 'spiece.model'}"]
    assert cli.main(["finetune", "--task=squad", *files, *config]) == 0
    figures = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert figures["exact_match"] == 100
    assert figures["unanswerable_f1"] == 100
