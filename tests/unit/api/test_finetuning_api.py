"""Fine-tuning, evaluation and prediction from paths and plain tuples."""

import dataclasses
import json
import random

import numpy as np
import pytest
import tf_keras

from data_prep.tasks.task_data import read_task
from official import xlnet
from official.xlnet import cli
from official.xlnet.api.finetuning import task_configuration
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.task_prediction import load_task
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.task_corpora import labelled, task_config, write_table

SETTINGS = (
    *("num_steps=90", "warmup_steps=0", "learning_rate=0.01", "checkpoint_steps=30"),
    *("batch_size=7", "task.max_length=23"),
)


@pytest.fixture(scope="module")
def rows():
    return [(text, label) for label, text in labelled(random.Random(0), 240)]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("base"))
    tf_keras.utils.set_random_seed(3)
    encoder = XLNetEncoder(task_config())
    encoder.build()
    xlnet.save_pretrained(encoder, directory, f"{vocabulary_dir()}/spiece.model")
    return directory


@pytest.fixture(scope="module")
def tuned(base, rows, tmp_path_factory):
    """(model directory, metrics)"""
    output = str(tmp_path_factory.mktemp("tuned") / "model")
    return output, xlnet.finetune(base, rows[20:], rows[:20], output, overrides=SETTINGS)


def test_it_learns(tuned, rows):
    output, metrics = tuned
    assert metrics["accuracy"] > 0.8 and metrics["train_examples"] == 220
    again = xlnet.evaluate(output, rows[:20])
    assert again["accuracy"] == metrics["accuracy"] and again["examples"] == 20


def test_predictions(tuned, rows):
    output, metrics = tuned
    texts = [text for text, _ in rows[:20]]
    predictions = xlnet.predict(output, [*texts, ""])
    assert [row["id"] for row in predictions] == [str(n) for n in range(1, 22)]
    right = [p["label"] == label for p, (_, label) in zip(predictions, rows[:20], strict=False)]
    assert sum(right) / 20 == metrics["accuracy"]
    assert xlnet.predict(output, texts[3])["probabilities"] == pytest.approx(
        predictions[3]["probabilities"], abs=1e-5
    )
    predictor = xlnet.Predictor(output)
    assert predictor([]) == [] and predictor("")["label"] == predictions[20]["label"]
    predictor(texts)
    (forward,) = predictor._ensemble._forwards
    num_graphs = forward.experimental_get_tracing_count()
    predictor(texts[::-1])
    assert forward.experimental_get_tracing_count() == num_graphs
    with pytest.raises(TypeError, match="example 2: expected strings"):
        predictor(["now", 3])
    with pytest.raises(DataError, match=r"expected 1 text\(s\) \(text\), got 2"):
        predictor([("now", "then")])


def test_files_and_lists_give_the_same_model(base, rows, tmp_path):
    table = write_table(tmp_path / "t.tsv", ["text", "label"], rows)
    settings = [*SETTINGS, "num_steps=3"]
    from_file = xlnet.finetune(base, table, table, f"{tmp_path}/a", overrides=settings)
    from_list = xlnet.finetune(base, rows, rows, f"{tmp_path}/b", overrides=settings)
    assert from_file == from_list
    assert xlnet.evaluate(f"{tmp_path}/b", table) == xlnet.evaluate(f"{tmp_path}/b", rows)


def test_pairs_and_numbers(base, rows, tmp_path):
    triples = [(text, "that is it", float(label == "good")) for text, label in rows[:16]]
    output = f"{tmp_path}/model"
    metrics = xlnet.finetune(
        base, triples, triples, output, "regression", overrides=[*SETTINGS, "num_steps=3"]
    )
    assert "pearson" in metrics
    (row,) = xlnet.predict(output, [("now", "then")])
    assert isinstance(row["score"], float)


def test_wrong_arguments_are_named(base, rows, tmp_path):
    with pytest.raises(DataError, match=r"task 'classificatoin': .* did you mean 'classification'"):
        xlnet.finetune(base, rows, rows, f"{tmp_path}/x", "classificatoin")
    with pytest.raises(ConfigError, match="expected a fine-tuned model, got one without a task"):
        xlnet.predict(base, ["now"])
    with pytest.raises(TypeError, match="examples: expected a list"):
        xlnet.finetune(base, ("now", "good"), rows, f"{tmp_path}/x")


def squad_file(path, questions):
    """A file in the form of SQuAD: the answer to each question is a word of its text."""
    paragraphs = [
        {
            "context": text,
            "qas": [
                {
                    "id": str(n),
                    "question": question,
                    "answers": [{"text": answer, "answer_start": text.index(answer)}],
                }
            ],
        }
        for n, (text, question, answer) in enumerate(questions)
    ]
    path.write_text(json.dumps({"version": "1.1", "data": [{"paragraphs": paragraphs}]}))
    return str(path)


def test_further_training_files_count_by_their_weights(base, tmp_path, capfd):
    """A step on two files moves the weights as one on the examples with their weights does."""
    own = squad_file(tmp_path / "own.json", [("the people of the house", "who ?", "people")] * 3)
    more = squad_file(tmp_path / "more.json", [("this is a time of war", "when ?", "war")] * 5)
    settings = ("num_steps=1", "warmup_steps=0", "checkpoint_steps=1", "batch_size=8")
    settings = (*settings, "task.max_length=23", "model.dropout=0.0", "model.dropatt=0.0")

    def run(name, train, **extra):
        output = str(tmp_path / name)
        metrics = xlnet.finetune(
            base, train, own, output, task="squad", overrides=settings, **extra
        )
        return metrics, load_task(output)[0].head.get_weights()

    metrics, weights = run("extra", own, extra_train={more: 0.25})
    assert metrics["train_examples"] == 8
    task = task_configuration("squad", None, settings, base).task
    examples = [
        *read_task(own, task)[0],
        *(dataclasses.replace(e, weight=0.25) for e in read_task(more, task)[0]),
    ]
    _, expected = run("examples", examples)
    _, unweighted = run("unweighted", own, extra_train={more: 1.0})
    for found, wanted in zip(weights, expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert max(np.abs(a - b).max() for a, b in zip(weights, unweighted, strict=True)) > 1e-5

    arguments = ["finetune", "--task=squad", f"--init_from={base}", f"--dev={own}"]
    arguments += [f"--train={own}", f"--output={tmp_path / 'command'}"]
    arguments += [f"--set={setting}" for setting in settings]
    assert cli.main([*arguments, f"--extra_train={more}=0.25"]) == 0
    found = load_task(str(tmp_path / "command"))[0].head.get_weights()
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, atol=1e-6)
    assert cli.main([*arguments, f"--extra_train={more}=-1"]) == 2
    assert "expected a weight above 0, got -1.0" in capfd.readouterr().err
    with pytest.raises(ConfigError, match="expected the task question_answering, got class"):
        xlnet.finetune(base, [("a", "b")], [("a", "b")], "x", extra_train={more: 1.0})
