"""Fine-tuning, evaluation and prediction from paths and plain tuples."""

import random

import pytest
import tf_keras

from official import xlnet
from official.xlnet.errors import ConfigError, DataError
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
    num_graphs = predictor._forward.experimental_get_tracing_count()
    predictor(texts[::-1])
    assert predictor._forward.experimental_get_tracing_count() == num_graphs
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
