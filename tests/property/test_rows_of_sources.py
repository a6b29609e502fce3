"""Rows in any container, layout and dtype are the examples that they were made of, or refused.

The containers are made by pandas, Polars, `datasets` and pyarrow, as by their users; the examples
are known before.
"""

import collections
import csv
import dataclasses
import datetime
import json
import random
import types

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from data_prep.tasks.task_data import read_task
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.multiple_choice import ChoiceExample
from official.xlnet.tasks.question_answering import QuestionExample
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tasks.token_classification import TaggedExample

DRAWS = 3  # Of each container and task; more are slow.
WORDS = ["fine", "naïve", "标题", "a, b", "it's", "7 up", "2020-01-02 or so"]
TEXTS = (["text"], ["premise", "hypothesis"], ["title", "note", "body"])
ALL_TEXTS = {name for names in TEXTS for name in names}
LABELS = {
    "classification": [["x", "y"], [0, 1], [True, False], [0.5, 2.5], [3, None]],
    "regression": [[0.5, 2.0], [1, 7], ["0.25", "3"]],
    "multi_label": [[["x", "y"], ["z"], [], None]],
    "ranking": [[0, 2], [1.0, 0.0], [True, False]],
    "multiple_choice": [[0, 1], [1.0, 0.0]],
    "token_classification": [["O", "B-X"], ["NOUN", "VERB"]],
    "question_answering": [[True], [True, False]],  # Whether there is an answer.
}


def class_of(label):
    return str(int(label)) if isinstance(label, float) and label % 1 == 0 else str(label)


def drawn(rng, task):
    """(columns, examples, whether two columns may be the label)."""
    number = rng.randint(3, 9)

    def sentences():
        return [" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(number)]

    def lists():
        return [rng.choices(WORDS, k=5) for _ in range(number)]

    values = rng.choice(LABELS[task])
    label = [rng.choice(values) for _ in range(number - 1)] + values[:1]
    ids, columns = [str(n + 1) for n in range(number)], {}
    extra = {
        "url": sentences(),
        "stars": [rng.randint(0, 9) for _ in range(number)],
        "when": pd.to_datetime([f"2020-01-{n + 1:02} 10:30" for n in range(number)]).to_list(),
        "pair_id": sentences(),
        "took": [datetime.timedelta(hours=n) for n in range(number)],
        "limit": [float("inf"), *[rng.random() for _ in range(number - 1)]],
        "nothing": [None] * number,
    }
    id_column = [rng.randint(0, 9) * 100 + n for n in range(number)]
    id_column[rng.randrange(number)] = rng.choice([None, 1000])
    has_id = rng.random() < 0.5
    if has_id:
        ids = [f"row {n}" if x is None else str(x) for n, x in enumerate(id_column, start=1)]
    other = None
    if task in ("classification", "regression", "multi_label"):
        names = rng.choice(TEXTS)
        columns |= {name: sentences() for name in names}
        label_name = rng.choice(["label", "labels", "Target"])
        other = "sentiment" if rng.random() < 0.2 and label_name != "label" else None
        of = {
            "classification": class_of,
            "regression": float,
            "multi_label": lambda y: tuple(y or ()),
        }[task]
        rows = zip(*(columns[name] for name in names), strict=True)
        examples = [
            TextExample(i, row, of(y))
            for i, row, y in zip(ids, rows, label, strict=True)
            if y is not None or task == "multi_label"
        ]
    elif task == "token_classification":
        words, label_name = lists(), rng.choice(["tags", "ner_tags", "labels"])
        label = [rng.choices(values, k=5) for _ in range(number)]
        columns[rng.choice(["words", "tokens"])] = words
        other = "tags" if rng.random() < 0.2 and label_name != "tags" else None
        rows = zip(ids, map(tuple, words), map(tuple, label), strict=True)
        examples = [TaggedExample(*row) for row in rows]
    elif task == "multiple_choice":
        columns |= {rng.choice(["text", "passage"]): sentences(), "choices": lists()}
        rows, label_name = zip(ids, *columns.values(), label, strict=True), "label"
        examples = [ChoiceExample(i, (t,), tuple(c), int(y)) for i, t, c, y in rows]
    elif task == "question_answering":
        contexts, questions, label_name = lists(), sentences(), "answers"
        columns |= {"question": questions, "context": [" ".join(words) for words in contexts]}
        answers = [
            [(words[2], len(" ".join(words[:2])) + 1)] * x
            for words, x in zip(contexts, label, strict=True)
        ]
        rows = zip(ids, questions, columns["context"], map(tuple, answers), strict=True)
        examples = [QuestionExample(*row) for row in rows]
        label = [[{"text": t, "answer_start": start} for t, start in pairs] for pairs in answers]
        if rng.random() < 0.5:  # As in HF's SQuAD.
            keys = ("text", "answer_start")
            label = [{key: [answer[key] for answer in row] for key in keys} for row in label]
    else:
        columns |= {"query": sentences(), "document": sentences()}
        rows, label_name, has_id = zip(*columns.values(), label, strict=True), "relevance", False
        examples = [
            RankingExample(str(n), query, query, document, float(y))
            for n, (query, document, y) in enumerate(rows, start=1)
        ]
    columns[label_name] = label
    columns |= {name: extra[name] for name in rng.sample([*extra], rng.randint(0, 4))}
    if has_id:
        has_one_name = task in ("multiple_choice", "token_classification", "question_answering")
        columns["id" if has_one_name else "idx"] = id_column
    if other:
        columns[other] = columns[label_name]
    places = [*columns]
    rng.shuffle(places)
    texts = iter([name for name in columns if name in ALL_TEXTS])
    order = [next(texts) if name in ALL_TEXTS else name for name in places]
    return {name: columns[name] for name in order}, examples, (label_name, other)


def frame_of(columns, rng):
    frame = pd.DataFrame(columns)
    if rng.random() < 0.5:  # Rows that a filter has left.
        repeated = pd.concat([frame.iloc[:1], frame], ignore_index=True)
        frame = repeated[[False, *[True] * len(frame)]]
    if rng.random() < 0.3:
        frame = frame.convert_dtypes(dtype_backend=rng.choice(["pyarrow", "numpy_nullable"]))
    return frame


def indexed(columns, rng):
    """A frame with an index that has a name, or levels, or repeats."""
    frame = frame_of(columns, rng)
    words = [f"{rng.choice(WORDS)} {n % 2}" for n in range(len(frame))]
    index = [words, pd.MultiIndex.from_arrays([words, words])][rng.randint(0, 1)]
    return frame.set_axis(index).rename_axis(
        rng.choice([["key"], [None]]) * (1 + (index is not words))
    )


def polars_of(columns, rng):
    """A frame of Polars with types of its own."""
    frame = pl.DataFrame(columns, strict=False)
    types = {
        pl.String: [pl.String, pl.Categorical, pl.Object],
        pl.Int64: [pl.Int64, pl.Int128, pl.Decimal(38, 2)],
        pl.Float64: [pl.Float64, pl.Float32],
    }
    for name, kind in frame.schema.items():
        chosen = rng.choice(types.get(kind, [kind]))
        if chosen == pl.Object:
            frame = frame.with_columns(pl.Series(name, columns[name], dtype=chosen))
        elif kind == pl.List(pl.String) and name in ("words", "tokens", "choices"):
            frame = frame.with_columns(pl.col(name).cast(pl.Array(pl.String, 5)))
        else:
            frame = frame.with_columns(pl.col(name).cast(chosen))
    return frame


def rows_of(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def arrow(columns, rng):
    return pa.Table.from_pandas(indexed(columns, rng))


def hf(columns, rng):
    return datasets.Dataset.from_pandas(frame_of(columns, rng))


def hf_classes(columns, rng):
    """As on the Hub: labels that are texts are numbers, whose names are in the metadata."""
    source = hf(columns, rng)
    for name in {"label", "labels", "Target", "tags", "ner_tags", "sentiment"} & {*columns}:
        feature, values = source.features[name], columns[name]
        names = sorted(
            {x for y in values for x in (y if isinstance(y, list) else [y])} - {None}, key=str
        )
        if None not in values and all(
            isinstance(each, str) and each.isidentifier() for each in names
        ):
            of_classes = datasets.ClassLabel(names=names)
            is_list = isinstance(feature, datasets.List)
            places = [[*map(names.index, y)] if is_list else names.index(y) for y in values]
            source = source.remove_columns(name).add_column(
                name, places, feature=datasets.List(of_classes) if is_list else of_classes
            )
    return source.select_columns([*columns])


def transformed(columns, rng):
    """A data set whose texts are not those that it stores."""
    source = hf(
        {**columns, **{n: ["?"] * len(v) for n, v in columns.items() if n in TEXTS[0]}}, rng
    )
    stored = collections.deque(columns.get("text", ()))
    to_rows = lambda rows: {**rows, **({"text": [stored.popleft()]} if stored else {})}  # noqa: E731
    return source.with_transform(to_rows)


def named_tuples(columns, rng):
    return [collections.namedtuple("Row", columns)(**row) for row in rows_of(columns)]


def data_classes(columns, rng):
    return [dataclasses.make_dataclass("Row", columns)(**row) for row in rows_of(columns)]


def only_method(name, make):
    """A frame of another package, of which one method is known."""
    return lambda *drawn: types.SimpleNamespace(**{name: getattr(make(*drawn), name)})


def without_nulls(columns, rng):
    frame = frame_of(columns, rng)
    return pa.table(frame.drop(columns={"nothing", "took"} & {*columns}))


def write_squad(rows, path):
    """Writes SQuAD's own format, with a paragraph for each question."""
    paragraphs = []
    for number, row in enumerate(rows, start=1):
        answers = row["answers"]
        if isinstance(answers, dict):
            pairs = zip(*answers.values(), strict=True)
            answers = [dict(zip(answers, pair, strict=True)) for pair in pairs]
        name = row.get("id", number)
        qa = {"id": f"row {number}" if name is None else name, "question": row["question"]}
        paragraphs.append({"context": row["context"], "qas": [{**qa, "answers": answers}]})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"data": [{"paragraphs": paragraphs}]}, file)


def write(kind):
    def source(columns, rng, path):
        frame, path = frame_of(columns, rng), str(path / f"a.{kind}")
        if kind == "parquet":
            indexed(columns, rng).to_parquet(path)
        elif kind == "arrow.parquet":
            pyarrow.parquet.write_table(arrow(columns, rng), path)
        elif kind == "hf.parquet":
            hf_classes(columns, rng).to_parquet(path)
        elif kind.startswith("polars."):
            stored = pl.DataFrame(columns, strict=False)
            is_text = kind.endswith(("csv", "json"))  # Without durations and infinite numbers.
            stored = stored.drop({"took", "limit"} & {*columns} if is_text else ())
            if kind.endswith("csv"):
                lists = pl.selectors.list()
                stored.with_columns(lists.list.join(",")).write_csv(path)
            else:
                ending = kind.rpartition(".")[2]
                getattr(
                    stored,
                    {"ipc": "write_ipc", "arrow": "write_ipc_stream"}.get(
                        ending, f"write_{ending}"
                    ),
                )(path)
        elif kind == "squad.json":
            write_squad(rows_of(columns), path)
        elif kind == "feather":
            frame.reset_index(drop=True).to_feather(path)
        elif kind in ("csv", "tsv"):
            # Without `convert_dtypes`, integers with a missing one are written as 7.0: other text.
            flat = pd.DataFrame(columns).convert_dtypes()
            flat = flat.map(lambda x: ",".join(x) if isinstance(x, list) else x)
            if kind == "csv":
                flat.to_csv(path, index=rng.random() < 0.5)
            else:
                flat.to_csv(path, sep="\t", index=False, quoting=csv.QUOTE_NONE)
        else:
            frame.to_json(path, orient="records", lines=kind == "jsonl", force_ascii=False)
        return path

    return source


CONTAINERS = {
    "list": lambda columns, rng: rows_of(columns),
    "generator": lambda columns, rng: iter(rows_of(columns)),
    "columns": lambda columns, rng: columns,
    "arrays": lambda columns, rng: {n: pd.Series(v).to_numpy() for n, v in columns.items()},
    "columns of Arrow": lambda columns, rng: {n: pa.chunked_array([v]) for n, v in columns.items()},
    "named tuples": named_tuples,
    "data classes": data_classes,
    "frame": frame_of,
    "frame with an index": indexed,
    "itertuples": lambda columns, rng: frame_of(columns, rng).itertuples(),
    "records": lambda columns, rng: frame_of(columns, rng).to_records(),
    "structured": lambda columns, rng: np.array(frame_of(columns, rng).to_records(index=False)),
    "Arrow": arrow,
    "batch": lambda columns, rng: arrow(columns, rng).combine_chunks().to_batches()[0],
    "reader": lambda columns, rng: arrow(columns, rng).to_reader(),
    "Arrow data set": lambda columns, rng: pyarrow.dataset.dataset(arrow(columns, rng)),
    "Arrow's C interface": only_method("__arrow_c_stream__", arrow),
    "dataframe protocol": only_method("__dataframe__", without_nulls),
    "HF": hf,
    "HF classes": hf_classes,
    "HF iterable": lambda columns, rng: hf_classes(columns, rng).to_iterable_dataset(),
    "HF transform": transformed,
    "Polars": polars_of,
    "lazy": lambda columns, rng: polars_of(columns, rng).lazy(),
    "Polars' series": lambda columns, rng: polars_of(columns, rng).to_dict(),
    "Polars' rows": lambda columns, rng: polars_of(columns, rng).iter_rows(named=True),
    "Polars from pandas": lambda columns, rng: pl.from_pandas(frame_of(columns, rng)),
}
FILES = ["parquet", "arrow.parquet", "hf.parquet", "feather", "csv", "tsv", "json", "jsonl"]
FILES += [f"polars.{kind}" for kind in ("parquet", "ipc", "arrow", "csv", "json", "ndjson")]
FILES += ["squad.json"]
LISTS = ("token_classification", "multiple_choice", "question_answering")
OF_JSON = ("token_classification", "question_answering")  # Their `.json` is another format.
WITHOUT = {  # What is in no such container.
    **dict.fromkeys(("csv", "tsv", "polars.csv"), LISTS),
    **dict.fromkeys(("json", "polars.json"), OF_JSON),
    "dataframe protocol": (*LISTS, "multi_label"),
    "squad.json": [task for task in LABELS if task != "question_answering"],
}


@pytest.fixture
def without_torch(monkeypatch):
    """`datasets` would import PyTorch for iterable data sets: 1.2 CPU-seconds and 180 MB."""
    monkeypatch.setattr(datasets.config, "TORCH_AVAILABLE", False)


@pytest.mark.parametrize("container", [*CONTAINERS, *FILES])
@pytest.mark.parametrize("task", LABELS)
def test_rows_are_the_examples_that_they_were_made_of(task, container, tmp_path, without_torch):
    check_rows(task, container, tmp_path, range(DRAWS))


@pytest.mark.slow
@pytest.mark.parametrize("container", [*CONTAINERS, *FILES])
def test_more_rows_are_the_examples_that_they_were_made_of(container, tmp_path):
    for task in LABELS:
        check_rows(task, container, tmp_path, range(DRAWS, 5))


def check_rows(task, container, tmp_path, seeds):
    for seed in seeds:
        rng = random.Random(f"{task} {seed}")
        columns, expected, (label, other) = drawn(rng, task)
        if task in WITHOUT.get(container, ()):
            continue
        if container in FILES:
            source = write(container)(columns, rng, tmp_path)
        else:
            source = CONTAINERS[container](columns, rng)
        settings = TaskConfig.create(name=task)
        if other:
            with pytest.raises(
                DataError, match=rf"got .*{label} .*{other}|got .*{other} .*{label}"
            ):
                read_task(source, settings, max_lost=1)
            continue
        found, counts = read_task(source, settings, max_lost=1)
        assert found == expected, seed
        assert set(counts) <= {"missing_labels"}


SPLIT = ["EU", "naïve", "标题", "7", "#tag", "O", "B-52"]  # Words without spaces.
PARTS_OF_SPEECH = ["NNP", "VBZ", "."]
# {layout: (its columns, the columns of words and tags where they are clear)}
CONLL = {
    "CoNLL-2003": (("word", "pos", "chunk", "ner"), (0, 3)),
    "word and tag": (("word", "ner"), (0, 1)),
    "word and part of speech": (("word", "pos"), (0, 1)),
    "GermEval": (("number", "word", "ner", "ner"), None),
    "tag first": (("ner", "word"), None),
    "two columns of tags": (("word", "ner", "ner"), None),
    "CoNLL-U": (("number", "word", *["_"] * 7, "ner"), None),
    "numbers and parts of speech": (("number", "word", "pos"), None),
}


def conll_of(rng, layout, words, tags):
    """Values of the columns of a sentence."""
    number = len(words)
    numbers = [str(n + 1) for n in range(number)]
    chunks = rng.choices(["B-NP", "I-NP", "O"], k=number)
    values = {"number": numbers, "word": words, "ner": tags, "chunk": chunks, "_": ["_"] * number}
    return [values.get(kind) or rng.choices(PARTS_OF_SPEECH, k=number) for kind in layout]


@pytest.mark.parametrize("layout", CONLL)
def test_columns_of_conll_are_read_or_asked_for(layout, tmp_path):
    columns, clear = CONLL[layout]
    for seed in range(15):
        rng = random.Random(f"{layout} {seed}")
        has_tabs, is_numbered = rng.random() < 0.5, "number" in columns
        sentences = []
        for _ in range(rng.randint(2, 5)):
            words = rng.choices(WORDS if has_tabs else SPLIT, k=rng.randint(2, 5))
            tags = ["B-PER", *rng.choices(["O", "I-PER", "B-LOC"], k=len(words) - 1)]
            sentences.append(conll_of(rng, columns, words, tags))
        lines = [] if is_numbered else rng.choice([[], ["-DOCSTART- O", ""]])
        for sentence in sentences:
            lines += ["# text = …", "1-2\tdu" + "\t_" * (len(columns) - 2)] * is_numbered
            lines += [("\t" if has_tabs else " ").join(row) for row in zip(*sentence, strict=True)]
            lines += [""] * rng.randint(1, 2)
        end = rng.choice(["\n", "\r\n"])
        path = tmp_path / f"a.{rng.choice(['txt', 'conll', 'tsv'])}"
        path.write_bytes(end.join(lines).encode())
        chosen = clear if rng.random() < 0.5 else (columns.index("word"), len(columns) - 1)
        settings = TaskConfig.create(name="token_classification")
        if chosen != clear:
            settings.text_columns = (str(chosen[0] + 1),)
            settings.label_column = str(chosen[1] + 1)
        if chosen is None:
            with pytest.raises(DataError, match=r"task\.(text_columns|label_column) to be one of"):
                read_task(str(path), settings)
            continue
        word, tag = chosen
        examples, _ = read_task(str(path), settings)
        assert examples == [
            TaggedExample(str(n), tuple(sentence[word]), tuple(sentence[tag]))
            for n, sentence in enumerate(sentences)
        ], seed
