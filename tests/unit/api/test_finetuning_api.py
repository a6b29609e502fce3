"""Fine-tuning, evaluation and prediction from paths and plain tuples."""

import dataclasses
import json
import random

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from data_prep.tasks.task_data import read_task
from official import xlnet
from official.xlnet import cli
from official.xlnet.api.finetuning import task_configuration
from official.xlnet.checkpoints.convert import convert, open_source
from official.xlnet.checkpoints.convert.variable_map import Weights
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.task_prediction import load_task
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.serving.export import export
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


SHORT = [*SETTINGS, "num_steps=3", "checkpoint_steps=3"]


@pytest.fixture(scope="module")
def short(base, rows, tmp_path_factory):
    """(model directory, metrics) of a few steps on few rows."""
    output = str(tmp_path_factory.mktemp("short") / "model")
    return output, xlnet.finetune(base, rows[20:60], rows[:20], output, overrides=SHORT)


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


@pytest.mark.slow
def test_files_and_lists_give_the_same_model(base, short, rows, tmp_path):
    train, dev = (
        write_table(tmp_path / f"{name}.tsv", ["text", "label"], part)
        for name, part in (("train", rows[20:60]), ("dev", rows[:20]))
    )
    output, from_lists = short
    assert xlnet.finetune(base, train, dev, f"{tmp_path}/x", overrides=SHORT) == from_lists
    assert xlnet.evaluate(output, dev) == xlnet.evaluate(output, rows[:20])


def numbered(rows, scale, offset):
    """Regression examples: numbers around `offset` that follow from the text."""
    return [(text, scale * (len(text) / 20 + (label == "good")) + offset) for text, label in rows]


REGRESSION = [*SETTINGS, "num_steps=40", "checkpoint_steps=40"]


def tune_regression(base, data, output):
    return xlnet.finetune(base, data[20:], data[:20], output, "regression", overrides=REGRESSION)


def scores(model, texts):
    return np.array([prediction["score"] for prediction in xlnet.predict(model, texts)])


@pytest.fixture(scope="module")
def plain_regression(base, rows, tmp_path_factory):
    """Scores and metrics of a model of labels around 0."""
    output = str(tmp_path_factory.mktemp("plain") / "model")
    metrics = tune_regression(base, numbered(rows, 1.0, 0.0), output)
    return scores(output, [text for text, _ in rows[:20]]), metrics


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "offset"), [(1e7, -1e9), (0.003, 5.0)])
def test_a_regression_answers_in_the_units_of_its_labels(
    base, rows, plain_regression, scale, offset, tmp_path
):
    """Linear labels change nothing but the units, in every place that answers."""
    (expected, metrics), model = plain_regression, f"{tmp_path}/scaled"
    scaled, texts = numbered(rows, scale, offset), [text for text, _ in rows[:20]]
    others = tune_regression(base, scaled, model)
    found = scores(model, texts)
    tolerance = abs(scale) * 2e-3 + abs(offset) * 2e-7
    np.testing.assert_allclose(found, expected * scale + offset, atol=tolerance)
    assert others["pearson"] == pytest.approx(metrics["pearson"], abs=1e-3)
    assert others["loss"] == pytest.approx(metrics["loss"], rel=0.02)
    squared_error = metrics["mean_squared_error"] * scale**2
    assert others["mean_squared_error"] == pytest.approx(squared_error, rel=0.02)
    assert xlnet.evaluate(model, scaled[:20])["pearson"] == pytest.approx(others["pearson"])
    if scale == 700:
        assert_same_in_every_form(model, texts, found, tmp_path)


def assert_same_in_every_form(directory, texts, expected, tmp_path):
    np.testing.assert_allclose(scores([directory, directory], texts), expected, rtol=1e-6)
    model, _ = load_task(directory)
    assert type(model).from_config(model.get_config()).head.scale == model.head.scale
    for form in ("hf", "tf1", "xlnet"):
        convert(directory, f"{tmp_path}/{form}", form, ["model.activation=gelu"])
        # TF1 has no place for the summary that the network uses.
        if form != "tf1":
            np.testing.assert_allclose(scores(f"{tmp_path}/{form}", texts), expected, rtol=1e-5)
    tf1, hf = (open_source(f"{tmp_path}/{form}") for form in ("tf1", "hf"))
    for name in ("kernel", "bias"):
        ours, theirs = (Weights(x, "xlnet").read(f"head/logits/{name}") for x in (tf1, hf))
        np.testing.assert_array_equal(ours, theirs)
    export(directory, f"{tmp_path}/exported")
    service = tf.saved_model.load(f"{tmp_path}/exported/1").signatures["serving_default"]
    np.testing.assert_allclose(service(text=tf.constant(texts))["score"], expected, rtol=1e-5)


def test_labels_that_float32_cannot_tell_apart_are_refused(base, rows, tmp_path):
    data = numbered(rows, 1.0, 1e9)
    with pytest.raises(DataError, match=r"standard deviation is at least 1e\+04.* subtract"):
        xlnet.finetune(base, data, data, f"{tmp_path}/x", "regression", overrides=SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("several", [{}, {"num_runs": 2}, {"search": 2}], ids=str)
def test_other_inputs_than_those_of_the_run_are_refused(base, short, rows, several, tmp_path):
    """The same command means the same input; nothing is trained, or told, for another one."""
    output, first = (f"{tmp_path}/model", None) if several else short
    inputs = {"model": base, "train": rows[20:60], "dev": rows[:20]}
    settings = list(SHORT)

    def tune(**changes):
        return xlnet.finetune(**(inputs | changes), output=output, overrides=settings, **several)

    first = first or tune()
    other = f"{tmp_path}/other"
    encoder = xlnet.load_encoder(base)
    encoder.trainable_variables[0].assign_add(tf.ones_like(encoder.trainable_variables[0]))
    xlnet.save_pretrained(encoder, other, f"{vocabulary_dir()}/spiece.model")
    corrected = [*inputs["train"][:-1], (inputs["train"][-1][0], "bad")]
    assert corrected != inputs["train"]
    for changes, what in (
        ({"train": corrected}, "training examples"),
        ({"train": [*inputs["train"], ("now", "good")]}, "training examples"),
        ({"train": inputs["train"][::-1]}, "training examples"),
        ({"dev": inputs["dev"][1:]}, "validation examples"),
        ({"model": other}, "initial weights"),
    ):
        with pytest.raises(ConfigError, match=f"expected the {what} .*; choose another output"):
            tune(**changes)
    with pytest.raises(ConfigError, match=r"weight_decay|expected the configuration"):
        settings.append("weight_decay=0.5")
        tune()
    settings.pop()
    assert tune() == first


@pytest.mark.parametrize("network", ["xlnet", "gpt"])
def test_the_model_says_its_objective_and_its_longest_input(tmp_path, network):
    model = {"network": network, "attention_type": "uni", "max_positions": 71, "mem_len": 0}
    sections = {"data": {"seq_len": 71, "reuse_len": 63, "num_predict": 7, "bidirectional": False}}
    sections["objective"] = {"kind": "causal"}
    xlnet.XLNetConfig.from_dict({"model": model, **sections}).save(str(tmp_path))
    config = task_configuration("classification", None, [], str(tmp_path))
    assert config.objective.kind == "causal"  # What `task.lm_weight` reads follows from it.
    assert config.task.max_length == (71 if network == "gpt" else 128)
    with pytest.raises(ConfigError, match=r"at most model.max_positions = 71 .*got 72"):
        overrides = ["task.max_length=72", "model.network=gpt"]
        task_configuration("classification", None, overrides, str(tmp_path))


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


@pytest.mark.slow
def test_further_training_files_count_by_their_weights(base, tmp_path, capfd):
    """A step on two files moves the weights as one on the examples with their weights does.

    Files are given to the command or, with another weight, to the function.
    """
    own = squad_file(tmp_path / "own.json", [("the people of the house", "who ?", "people")] * 3)
    more = squad_file(tmp_path / "more.json", [("this is a time of war", "when ?", "war")] * 5)
    settings = ("num_steps=1", "warmup_steps=0", "checkpoint_steps=1", "batch_size=8")
    settings = (*settings, "task.max_length=23", "model.dropout=0.0", "model.dropatt=0.0")

    def run(name, train, **extra):
        output = str(tmp_path / name)
        metrics = xlnet.finetune(
            base, train, own, output, task="squad", overrides=settings, **extra
        )
        assert metrics["train_examples"] == 8
        return load_task(output)[0].head.get_weights()

    task = task_configuration("squad", None, settings, base).task
    examples = [
        *read_task(own, task)[0],
        *(dataclasses.replace(e, weight=0.25) for e in read_task(more, task)[0]),
    ]
    expected = run("examples", examples)
    unweighted = run("unweighted", own, extra_train={more: 1.0})
    assert max(np.abs(a - b).max() for a, b in zip(expected, unweighted, strict=True)) > 1e-5

    arguments = ["finetune", "--task=squad", f"--init_from={base}", f"--dev={own}"]
    arguments += [f"--train={own}", f"--output={tmp_path / 'command'}"]
    arguments += [f"--set={setting}" for setting in settings]
    assert cli.main([*arguments, f"--extra_train={more}=0.25"]) == 0
    found = load_task(str(tmp_path / "command"))[0].head.get_weights()
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, atol=1e-6)
    assert cli.main([*arguments, f"--extra_train={more}=-1"]) == 2
    assert "expected a weight above 0, got -1.0" in capfd.readouterr().err
    for rows in ([("a", "b")], []):
        with pytest.raises(ConfigError, match="a task whose examples have weights, got class"):
            xlnet.finetune(base, rows, [("a", "b")], "x", extra_train={more: 1.0})
