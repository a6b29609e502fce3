"""Labels of the letters of one string: files, tokens, losses and predictions."""

import json

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import DataError
from official.xlnet.tasks.batching import collate
from official.xlnet.tasks.number_labels import number_metrics
from official.xlnet.tasks.token_classification import TaggedExample
from official.xlnet.testing import check_task
from tests.helpers.served_models import random_task

ROWS = [("MKVA", "HHE-"), ("AC", "E-")]
NUMBERS = [("MK", [0.5, 2]), ("A", [-1])]


def example(number, sequence, labels=None):
    tags = None if labels is None else tuple(labels)
    return TaggedExample(str(number), tuple(sequence), tags, separator="")


EXAMPLES = [example(n, *row) for n, row in enumerate(ROWS, 1)]


def config(name="token_classification", **settings):
    return TaskConfig.create(name=name, **settings)


def test_sequences_with_labels_from_every_source(tmp_path):
    lists = [(sequence, [*labels]) for sequence, labels in ROWS]
    frame = pd.DataFrame(ROWS, columns=["sequence", "labels"])
    sources = [ROWS, lists, frame, frame.to_dict("list"), frame.to_dict("records")]
    for name, write in (
        ("csv", frame.to_csv),
        ("TSV", lambda p, **k: frame.to_csv(p, sep="\t", **k)),
    ):
        write(tmp_path / f"a.{name}", index=False)
        sources.append(str(tmp_path / f"a.{name}"))
    for name, rows in (("strings", ROWS), ("lists", lists)):
        lines = [json.dumps({"sequence": x, "label": y}) + "\n" for x, y in rows]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
        sources.append(str(tmp_path / f"{name}.jsonl"))
    for source in sources:
        task = config()
        assert (read_task(source, task)[0], task.label_unit) == (EXAMPLES, "letter"), source
    frame.columns = ["seq", "sst3"]
    frame.to_csv(tmp_path / "named.csv", index=False)
    names = {"text_columns": ("seq",), "label_column": "sst3"}
    assert read_task(str(tmp_path / "named.csv"), config(**names))[0] == EXAMPLES
    found = read_task(NUMBERS, config("token_regression"))[0]
    assert found == [example(n, *row) for n, row in enumerate(NUMBERS, 1)]
    words = "EU 0.5\nsays 2\n\nPeter -1e1\n"
    (tmp_path / "words.txt").write_text(words)
    found = read_task(str(tmp_path / "words.txt"), config("token_regression"))[0]
    assert [x.tags for x in found] == [(0.5, 2.0), (-10.0,)]


@pytest.mark.parametrize("name", ["token_classification", "token_regression"])
def test_words_and_letters_do_not_mix(name):
    """The data set of dev is read after that of train; a model that is trained keeps its unit."""
    numbers = name == "token_regression"
    letters = NUMBERS if numbers else ROWS
    words = [(["He", "sat"], [0.5, 2.0] if numbers else ["A", "B"])]
    experiment = XLNetConfig(task=config(name))
    train, _ = read_task(words, experiment.task)
    TASKS[name].complete_settings(experiment, train)
    assert experiment.task.label_unit == "word"
    with pytest.raises(DataError, match=r"expected a list of words in 'words', got 'MK"):
        read_task(letters, experiment.task)
    experiment = XLNetConfig(task=config(name))
    train, _ = read_task(words, experiment.task)
    read_task(letters, experiment.task)
    with pytest.raises(
        DataError, match=r"1: expected labels of letters, as in .*, got labels of w"
    ):
        TASKS[name].complete_settings(experiment, train)
    with pytest.raises(DataError, match="expected text in 'words', got"):
        read_task(words, experiment.task)


def test_sequences_to_predict(tmp_path):
    unlabelled = [("1", "MKVA"), ("2", "AC")]
    files = {
        "a.txt": "MKVA\nAC\n",
        "a.csv": "id,sequence\n1,MKVA\n2,AC\n",
        "a.fasta": ">1 a kinase\nMK\nVA\n>2\nAC\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for source in (["MKVA", "AC"], *(str(tmp_path / name) for name in files)):
        found = list(stream_task(source, config(label_unit="letter")))
        assert [(x.id, "".join(x.words), x.separator) for x in found] == [
            (*x, "") for x in unlabelled
        ]
        assert found[0].inputs(["text"]) == {"text": "MKVA"}


@pytest.mark.parametrize(
    ("rows", "name", "message"),
    [
        ([("MKV", "HH")], "classification", "a tag for each of 3 letters, got 2"),
        ([("M KV", "HHEE")], "classification", "letters without spaces in 'words', got 'M KV'"),
        ([("MK", None)], "classification", "expected a list of tags in 'tags', got"),
        ([("MK", "H ")], "classification", "expected a label in 'tags'"),
        ([*ROWS, (["M"], ["H"])], "classification", "row 3: expected text in 'words'"),
        ([("MK", "HE")], "regression", "expected a number .*'tags', got 'H'"),
        ([("MK", [1.0])], "regression", "a tag for each of 2 letters, got 1"),
        ([("MK", [1.0, None])], "regression", "expected a number .*'tags', got None"),
    ],
    ids=range(8),
)
def test_sequences_that_are_refused(rows, name, message):
    with pytest.raises(DataError, match=message):
        read_task(rows, config(f"token_{name}"), max_lost=0)


def test_digits_are_classes_of_letters():
    task = random_task("token_classification", label_unit="letter")[1]
    examples = [example(1, "MKVA", "0110")]
    task.config.task.labels = ()
    TASKS["token_classification"].complete_settings(task.config, examples)
    assert task.config.task.labels == ("0", "1")


@pytest.mark.quick
@pytest.mark.parametrize("name", ["token_classification", "token_regression"])
def test_each_letter_has_the_token_it_is_in(name):
    """Loss, its items and predictions by hand, of tokens of several letters and several windows."""
    scale = {"target_means": (3.0,), "target_scales": (2.0,)} if name[6] == "r" else {}
    model, task = random_task(name, label_unit="letter", max_length=11, **scale)
    rng = np.random.default_rng(0)
    for text in ("ofthewaterthatismadefirst" * 2, "the", "😀thenaïve1,000water", "é"):
        values = rng.integers(0, 3, len(text)).tolist()
        labels = [task.labels[x] for x in values] if not scale else [x / 7 for x in values]
        case = example(1, text, labels)
        [units] = task.units([case])
        ids, spans = task.tokenizer.encode_with_offsets(text)
        outputs, whole, loss, items = [], [], 0.0, 0.0
        for unit in units:
            batch = {n: tf.constant(x) for n, x in collate([unit], 11, 1).items()}
            out = model(batch)
            loss += float(model.head.loss(out, batch)[0])
            items += float(model.head.num_items(batch)[0])
            outputs.append({"logits": out["logits"].numpy()[0], **unit.places})
            whole.append(out["logits"].numpy()[0, -len(unit.sequences[0]["token_ids"]) : -2])
            assert unit.length <= 11
        assert [i for unit in units for i in unit.sequences[0]["token_ids"][:-2]] == ids
        token_of = [
            max(t for t, (a, b) in enumerate(spans) if a <= n < b) for n in range(len(text))
        ]
        logits = np.concatenate(whole)[token_of].astype(np.float64)
        if scale:
            expected = np.sum(((logits[:, 0] - labels) / 2) ** 2)
            found = np.array(task.predict(case, outputs)["scores"])
            np.testing.assert_allclose(found, logits[:, 0], rtol=1e-5)
        else:
            log = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
            expected = -np.sum(log[np.arange(len(text)), values])
            found = task.predict(case, outputs)
            assert found["tags"] == [task.labels[x] for x in np.argmax(log, axis=1)]
        assert items == len(text) and loss == pytest.approx(expected, rel=1e-4)


def test_metrics_of_letters():
    from sklearn import metrics

    task = random_task("token_classification", label_unit="letter")[1]
    task.labels = ("-", "E", "H")
    predictions = [{"tags": [*"HE--"]}, {"tags": [*"E-"]}]
    found = task.evaluate(EXAMPLES, predictions)
    true, predicted = [*"HHE-E-"], [*"HE--E-"]
    assert task.metric == "matthews" and found == {
        "accuracy": pytest.approx(4 / 6),
        "matthews": pytest.approx(metrics.matthews_corrcoef(true, predicted)),
    }
    assert task.details(EXAMPLES, predictions)["classes"]["E"]["recall"] == 0.5
    numbers = random_task("token_regression", label_unit="letter")[1]
    cases = [example(n, *row) for n, row in enumerate(NUMBERS)]
    found = numbers.evaluate(cases, [{"scores": [1, 2]}, {"scores": [0]}])
    assert found == number_metrics([0.5, 2, -1], [1, 2, 0])


@pytest.mark.slow
def test_labels_of_letters_are_learned(monkeypatch):
    """A letter's label depends on the one before it."""
    letters = [a + b + c for a in "MK" for b in "VA" for c in "VMA"]
    rows = [
        example(x, x, ["start" if n == 0 else f"after-{x[n - 1]}" for n in range(3)])
        for x in letters
    ]
    monkeypatch.setattr(TASKS["token_classification"], "typical", tuple(rows))
    check_task("token_classification", ["label_unit=letter", "num_buckets=3"], quick=True)
