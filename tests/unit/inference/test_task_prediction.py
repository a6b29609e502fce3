"""Predictions of the inference network equal those of the Keras model; see `check_task`, too."""

import dataclasses
import json

import pytest
import tensorflow as tf

from official.xlnet.api.export import export
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.inference.embedding import embed
from official.xlnet.inference.generation import fill_blanks
from official.xlnet.inference.scoring import Scorer
from official.xlnet.inference.task_prediction import predict_examples
from official.xlnet.tasks.batching import collate
from official.xlnet.testing.tasks import require_same
from tests.helpers.package.of_projects import entries
from tests.helpers.served_models import examples_of, random_task, save_task
from tests.helpers.small_language_model import NumberTokenizer, random_model

NUMBERS = NumberTokenizer(31)
KINDS = [
    ("classification", {}),
    ("classification", {"long_texts": "windows", "max_windows": 3, "window_stride": 7}),
    ("classification", {"long_texts": "memory", "max_windows": 3, "pooled_segments": "all"}),
    ("question_answering", {"query_length": 5, "window_stride": 5, "answer_length": 7}),
]
OTHER_KINDS = [
    ("classification", {"summary": "mean", "num_buckets": 1}),
    ("classification", {"long_texts": "memory", "max_windows": 3}),
    ("classification", {"long_texts": "memory", "max_windows": 2, "summary": "attn"}),
    ("regression", {"long_texts": "memory", "pooled_segments": "all", "summary": "mean"}),
    ("multi_label", {"summary": "first"}),
    ("ranking", {"scoring": "summary", "query_length": 7}),
]
KINDS += [pytest.param(*row, marks=pytest.mark.slow) for row in OTHER_KINDS]


def by_keras(model, task, examples):
    """Predictions of examples, whose units are padded to the longest length.

    Those that have equally many sequences are one batch, of any number of units.
    """
    groups, outputs = {}, []
    for number, units in enumerate(task.units(examples)):
        outputs.append([None] * len(units))
        for place, unit in enumerate(units):
            groups.setdefault(len(unit.sequences), []).append((number, place, unit))
    for group in groups.values():
        batch = collate([unit for *_, unit in group], task.config.task.max_length, len(group))
        found = model({name: tf.constant(x) for name, x in batch.items()})
        for row, (number, place, unit) in enumerate(group):
            of_head = {name: x.numpy()[row] for name, x in found.items()}
            outputs[number][place] = of_head | unit.places
    return [task.predict(*pair) for pair in zip(examples, outputs, strict=True)]


@pytest.mark.parametrize(
    "verb",
    [
        *("predict", "score"),
        *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("export", "fill", "embed")),
    ],
)
def test_activations_that_overflow_end_with_a_sentence(verb, tmp_path):
    """Not with the first class and probabilities `null`."""
    if verb in ("predict", "export"):
        model, task = random_task("classification")
    else:
        model = random_model()
    for variable in model.trainable_variables:
        variable.assign(1e30 * variable)
    with pytest.raises(DataError, match="expected finite numbers, got NaN"):
        if verb == "predict":
            next(predict_examples(model, task, examples_of("classification", 2)))
        elif verb == "export":
            save_task(model, str(tmp_path / "model"))
            export(str(tmp_path / "model"), str(tmp_path / "served"))
        elif verb == "score":
            Scorer(model, NUMBERS)(["9 10"])
        elif verb == "fill":
            fill_blanks(model, "9 ____", tokenizer=NUMBERS)
        else:
            embed(model.encoder, ["9 10"], tokenizer=NUMBERS)
    assert not list((tmp_path / "served").glob("[0-9]*"))


@pytest.mark.parametrize(("name", "settings"), KINDS)
def test_predictions_are_those_of_the_keras_model(name, settings):
    model, task = random_task(name, **settings)
    task.config.training.batch_size = 5
    examples = examples_of(name, 17)
    if not settings and name == "classification":  # Any number of texts.
        texts = [example.texts[0] for example in examples]
        examples += [TextExample(str(n), tuple(texts[-n:])) for n in range(2, 9)]
    found = list(predict_examples(model, task, examples))
    assert len({json.dumps(prediction) for prediction in found}) > 5
    require_same(found, by_keras(model, task, examples), name)


@pytest.mark.parametrize(("num_buckets", "expected"), [(3, [16, 24, 48]), (1, [64] * 3)])
def test_texts_are_sorted_by_length_so_that_batches_are_few_and_short(num_buckets, expected):
    model, task = random_task("classification", max_length=64, num_buckets=num_buckets)
    task.config.training.batch_size = 5
    examples = [
        TextExample(f"x{n}", (" ".join(["now"] * length),))
        for n, length in enumerate([19, 2, 40, 3, 22, 4, 2, 15, 1, 21, 17])
    ]
    seen = []

    def forward(batch):
        seen.append((int(batch["token_ids"].shape[2]), int(tf.reduce_sum(batch["weight"]))))
        return model(batch)

    found = list(predict_examples(model, task, examples, forward))
    assert seen == list(zip(expected, [5, 5, 1], strict=True))
    require_same(found, by_keras(model, task, examples), "classification")
    assert [x["id"] for x in found] == [example.id for example in examples]
    seen.clear()
    list(predict_examples(model, task, examples[:4], forward))  # A handful needs one graph.
    assert seen == [(expected[-1], 4)]


# {task: the data set of its texts, if they are of several}
OF_TEXTS = dict.fromkeys(("classification", "regression", "multi_label"), "")
OF_TEXTS |= entries("SUBTASKS")


@pytest.mark.parametrize("name", OF_TEXTS)
@pytest.mark.parametrize("number", [0, 1, 3])
def test_an_example_has_as_many_texts_as_the_task(name, number):
    subtask = OF_TEXTS[name]
    prefix = f"{subtask}/" if subtask else ""
    task = random_task(name, text_columns=(f"{prefix}a", f"{prefix}b"))[1]
    examples = [TextExample(f"x{n}", ("now",) * n, None, subtask) for n in (2, number)]
    with pytest.raises(DataError, match=rf"x{number}: expected 2 text\(s\) \(a, b\), got {number}"):
        task.read(examples)


@pytest.mark.parametrize("name", ["classification", "token_classification", "question_answering"])
def test_labels_of_some_examples_change_no_prediction(name):
    model, task = random_task(name)
    labelled = TASKS[name].typical
    examples = [*labelled[:2], *examples_of(name, 2), *labelled[2:4]]
    unlabelled = [dataclasses.replace(x, **{x.label_field: None}) for x in examples]
    found, expected = (
        list(predict_examples(model, task, each, lambda batch: model(batch)))
        for each in (examples, unlabelled)
    )
    assert found == expected
