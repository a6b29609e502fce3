"""Data sets of HF `datasets` and of TFDS: their files and splits, as their users have them."""

import dataclasses

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_datasets as tfds

from data_prep.corpus.corpus import find_shards, list_of_paths
from data_prep.corpus.readers import Counts, read_documents
from data_prep.settings import ReadOptions
from data_prep.tasks.task_data import read_task, stream_task
from official import xlnet
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.multiple_choice import ChoiceExample

NAMES = ("negative", "positive")
SENTENCES = ['a fine film, with "quotes"', "", "naïve\nlines", "标题 \u00a0", "a\ttab", "'", "dull"]


def task_of(name="classification", **settings):
    return TaskConfig(name=name, **settings)


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


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.csv", lambda split, path: split.to_csv(path)),
        ("a.csv", lambda split, path: split.to_csv(path, index=True)),
        ("a.jsonl", lambda split, path: split.to_json(path)),
        ("a.json", lambda split, path: split.to_json(path)),
        ("a.json", lambda split, path: split.to_json(path, lines=False)),
        ("a.csv", lambda split, path: pd.read_parquet(_parquet(split, path)).to_csv(path)),
    ],
)
def test_files_of_hf_splits(splits, name, write, tmp_path):
    for split, first in (("train", 0), ("validation", 3)):
        path, task = str(tmp_path / f"{split}.{name}"), task_of()
        write(splits[split], path)
        expected = [
            TextExample(str(n), (SENTENCES[n],), str(n % 2)) for n in range(first, len(SENTENCES))
        ]
        assert read_task(path, task) == (expected, {})
        assert [e.texts for e in stream_task(path, task)] == [e.texts for e in expected]


def _parquet(split, path):
    split.to_parquet(f"{path}.parquet")
    return f"{path}.parquet"


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


def test_choices_in_columns_of_hf(tmp_path):
    columns = {"sent1": ["He came."], "sent2": ["He"], "label": [1], "video-id": ["x"]}
    columns |= {f"ending{n}": [f"e{n}"] for n in range(4)}
    datasets.Dataset.from_dict(columns).to_csv(tmp_path / "swag.csv")
    ((example,), _) = read_task(str(tmp_path / "swag.csv"), task_of("multiple_choice"))
    choices = tuple(f"He e{n}" for n in range(4))
    assert example == ChoiceExample("1", ("He came.",), choices, 1)


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


@pytest.mark.parametrize(
    "write",
    [
        lambda texts, path: pd.DataFrame({"id": range(5), "text": texts}).to_parquet(path),
        lambda texts, path: pq.write_table(pa.table({"text": texts}), path, row_group_size=2),
        lambda texts, path: datasets.Dataset.from_dict({"text": texts}).to_parquet(path),
    ],
)
def test_parquet_is_read_as_a_corpus(write, tmp_path):
    texts = ["One line.\nAnother.", "naïve 标题", None, "a\n\nb", "last"]
    write(texts, tmp_path / "a.parquet")
    options = ReadOptions()
    documents = []
    for shard in find_shards([str(tmp_path / "a.parquet")], options):
        for batch in read_documents(shard, options, Counts(), lambda _: None):
            documents += batch
    assert documents == [["One line.", "Another."], ["naïve 标题"], ["a", "b"], ["last"]]


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


@pytest.mark.parametrize("split", ["train", "train[:40%]", "train[2:5]", "train[-1:]"])
def test_tfds_splits_and_slices(films, split):
    order = [int(row["idx"]) for row in tfds.as_numpy(films.as_dataset(split=split))]
    path, task = f"tfds:films:{split}", task_of(text_columns=("sentence",))
    expected = [TextExample(str(n), (SENTENCES[n],), NAMES[n % 2]) for n in order]
    assert read_task(path, task) == (expected, {})
    found = read_task(
        path, task_of("multi_label", text_columns=("sentence",), label_column="topics")
    )
    assert [e.label for e in found[0]] == [("z", "xyz"[n % 3]) for n in order]


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


def test_a_data_set_is_a_corpus_as_its_frame_is():
    texts = ["the water was first", "naïve words", "标题"]
    frame = pd.DataFrame({"number": range(3), "text": texts})
    of_frame, of_data_set = map(list_of_paths, (frame, datasets.Dataset.from_pandas(frame)))
    for paths in (of_frame, of_data_set):
        [shard] = find_shards(paths, ReadOptions())
        [documents] = read_documents(shard, ReadOptions(), Counts(), lambda _: None)
        assert documents == [[text] for text in texts]
