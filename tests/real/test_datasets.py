"""Data sets of HF `datasets` and of TFDS: their files and splits, as their users have them."""

import dataclasses

import datasets
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from data_prep.corpus import tfds_splits
from data_prep.corpus.corpus import list_of_paths
from data_prep.tasks.task_data import read_task, stream_task
from official import xlnet
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from tests.helpers.corpora import read_all

NAMES = ("negative", "positive")
SENTENCES = ['a fine film, with "quotes"', "", "naïve\nlines", "标题 \u00a0", "a\ttab", "'", "dull"]


def task_of(name="classification", **settings):
    return TaskConfig.create(name=name, **settings)


@pytest.fixture(scope="module")
def splits():
    """A DatasetDict in the form of GLUE's SST-2."""
    features = {
        "sentence": datasets.Value("string"),
        "label": datasets.ClassLabel(names=list(NAMES)),
        "idx": datasets.Value("int32"),
    }
    rows = {"sentence": SENTENCES, "label": [n % 2 for n in range(7)], "idx": list(range(7))}
    whole = datasets.Dataset.from_dict(rows, datasets.Features(features))
    return datasets.DatasetDict(train=whole, validation=whole.select(range(3, 7)))


def test_hf_splits_as_objects(splits):
    """A split is read as it is, as a frame and by its columns; a mapping of splits is refused."""
    split, task = splits["train"], task_of()
    expected = [TextExample(str(n), (s,), str(n % 2)) for n, s in enumerate(SENTENCES)]
    assert read_task(split.to_pandas(), task)[0] == expected
    assert task.text_columns == ("sentence",)
    pairs, _ = read_task(zip(split["sentence"], split["label"], strict=True), task)
    assert [(e.texts, e.label) for e in pairs] == [(e.texts, e.label) for e in expected]
    found = list(stream_task(split["sentence"], task))
    assert [e.texts for e in found] == [e.texts for e in expected]
    named = [dataclasses.replace(e, label=NAMES[int(e.label)]) for e in expected]
    formats = [split.with_format(name) for name in ("numpy", "arrow", "pandas", "tensorflow")]
    for form in (split, *formats, split.to_iterable_dataset()):
        assert read_task(form, task) == (named, {})
        assert [e.texts for e in stream_task(form, task)] == [e.texts for e in expected]
    with pytest.raises(TypeError, match=r"a mapping of splits .train, validation.; pass one"):
        read_task(splits, task)


def test_hf_columns_are_texts_for_the_models(world, splits):
    """A column given to `predict` and `embed` is a list of texts; a data set is refused."""
    column = splits["validation"]["sentence"]
    model = world.task("classification").model
    predictor = xlnet.Predictor(model)
    assert predictor(column) == predictor(list(column))
    vectors = xlnet.embed(world.pretrained, list(column))
    np.testing.assert_array_equal(xlnet.embed(world.pretrained, column), vectors)
    with pytest.raises(TypeError):
        xlnet.evaluate(model, splits)


class Films(tfds.core.GeneratorBasedBuilder):
    """Texts, a class, several classes, and sequences of texts; the labels of `test` are hidden."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        features = {
            "sentence": tfds.features.Text(),
            "idx": np.int32,
            "label": tfds.features.ClassLabel(names=list(NAMES)),
            "topics": tfds.features.Sequence(tfds.features.ClassLabel(names=["x", "y", "z"])),
            "notes": tfds.features.Sequence(tfds.features.Text()),
        }
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples(), "test": self._generate_examples(hidden=True)}

    def _generate_examples(self, hidden=False):
        for n, sentence in enumerate(SENTENCES):
            row = {"sentence": sentence, "idx": n, "topics": [2, n % 3], "notes": [sentence, "b"]}
            yield n, {**row, "label": -1 if hidden else n % 2}


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    data_dir = str(tmp_path_factory.mktemp("tfds"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFDS_DATA_DIR", data_dir)
        patch.setattr(tfds.core.constants, "DATA_DIR", data_dir)
        builder = Films(data_dir=data_dir)
        builder.download_and_prepare()
        yield builder


SLICES = ("train", "train[:40%]", "train[2:5]", "train[-1:]")


@pytest.mark.parametrize(
    "split",
    ["train[1:3]+train[4:]", *(pytest.param(x, marks=pytest.mark.slow) for x in SLICES)],
)
def test_tfds_splits_and_slices(films, split, monkeypatch):
    order = [int(row["idx"]) for row in tfds.as_numpy(films.as_dataset(split=split))]
    path, task = f"tfds:films:{split}", task_of(text_columns=("sentence",))
    expected = [TextExample(str(n), (SENTENCES[n],), NAMES[n % 2]) for n in order]
    assert read_task(path, task) == (expected, {})
    found = read_task(
        path, task_of("multi_label", text_columns=("sentence",), label_column="topics")
    )
    assert [e.label for e in found[0]] == [("z", "xyz"[n % 3]) for n in order]
    monkeypatch.setattr(tfds_splits, "_EXAMPLES_PER_SHARD", 2)
    documents, _ = read_all(path, text_field="sentence")
    words = [" ".join(lines).split() for lines in documents]
    assert sorted(words) == sorted(SENTENCES[n].split() for n in order)


def test_other_columns_and_splits_of_tfds_are_one_sentence(films):
    """Hidden labels and sequences of texts are no classes and no texts."""
    for path, settings, message in (
        ("tfds:films:dev", {}, "expected a split of films that is on disk, one of .*test"),
        ("tfds:films:test", {"text_columns": ("sentence",)}, "missing_labels 7"),
        ("tfds:films:train", {"text_columns": ("notes",)}, "malformed_rows 7"),
        ("tfds:films:train", {"label_column": "stars"}, "expected a column 'stars'"),
    ):
        with pytest.raises(DataError, match=message):
            read_task(path, task_of(**settings))
    for path, message in (
        ("tfds:films:dev", "expected a split of films that is on disk, one of .*test"),
        ("tfds:films:train[:170%]", "got 'train.:170%.'"),
        ("tfds:films:train:80", "got 'train:80'"),
        ("tfds:no_such_thing", "expected a split of no_such_thing .*, one of .none: "),
        ("tfds:films:train", "expected a feature 'text', got .*sentence"),
    ):
        with pytest.raises(DataError, match=message):
            read_all(path)
    texts = [
        e.texts[0] for e in stream_task("tfds:films:test", task_of(text_columns=("sentence",)))
    ]
    assert sorted(texts) == sorted(SENTENCES)


def test_tfds_objects(films):
    """Elements have numbers of classes; a mapping of splits is refused."""
    dataset = films.as_dataset(split="train")
    frame = tfds.as_dataframe(dataset, films.info)
    settings = {"text_columns": ("sentence",)}
    expected = [
        TextExample(str(row.idx), (row.sentence.decode(),), str(row.label))
        for row in frame.itertuples()
    ]
    for form in (dataset, tfds.as_numpy(dataset), frame):
        assert read_task(form, task_of(**settings)) == (expected, {})
    pairs = films.as_dataset(split="train", as_supervised=False).map(
        lambda row: (row["sentence"], row["label"])
    )
    found, _ = read_task(pairs, task_of())
    assert [(e.texts, e.label) for e in found] == [(e.texts, e.label) for e in expected]
    with pytest.raises(TypeError, match="a mapping of splits"):
        read_task(films.as_dataset(), task_of())
    for batched in (dataset.batch(2), pairs.batch(2).prefetch(1)):
        with pytest.raises(
            DataError, match=r"expected a row in each element, got batches; use .un"
        ):
            read_task(batched, task_of(**settings))


def test_tensors_are_read_as_lists():
    for texts in (tf.constant(SENTENCES), list(tf.constant(SENTENCES))):
        assert [e.texts[0] for e in stream_task(texts, task_of())] == SENTENCES
    words = [["a", "b"], [], ["naïve"]]
    tagged, _ = read_task(
        {"words": tf.ragged.constant(words), "tags": tf.ragged.constant([["O", "X"], [], ["O"]])},
        task_of("token_classification"),
    )
    assert [[*e.words] for e in tagged] == words


def test_a_data_set_is_a_corpus_as_its_frame_is():
    texts = ["the water was first", "naïve words", "标题"]
    frame = pd.DataFrame({"number": range(3), "text": texts})
    of_frame, of_data_set = map(list_of_paths, (frame, datasets.Dataset.from_pandas(frame)))
    for paths in (of_frame, of_data_set):
        assert read_all(*paths)[0] == [[text] for text in texts]
