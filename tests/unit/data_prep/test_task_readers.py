"""Readers of task data: files as they are downloaded, written here line by line."""

import collections
import gzip
import json

import pytest

from data_prep.tasks.registry import read_examples
from official.xlnet.configs.registry import DATASETS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError
from official.xlnet.tasks.multiple_choice.examples import ChoiceExample
from official.xlnet.tasks.ranking.examples import RankingExample
from official.xlnet.tasks.ranking.reader import read_judgements, read_run
from official.xlnet.tasks.token_classification.examples import TaggedExample


def read(path, task="classification", strict=False, with_labels=True, **changes):
    settings = TaskConfig.of({**DATASETS.get(task, {"name": task}), **changes})
    reading = Reading(str(path), settings, strict, with_labels)
    return list(read_examples(reading)), reading.counts


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


GLUE = {
    "cola": ('gj04\t0\t*\tHe said "no.\n', ('He said "no.',), "0"),
    "sst2": ("sentence\tlabel\na fine film \t1\n", ("a fine film ",), "1"),
    "mrpc": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tA "b\tC d\n',
        ('A "b', "C d"),
        "1",
    ),
    "stsb": ("index\tsentence1\tsentence2\tscore\n0\tA\tB\t3.800\n", ("A", "B"), 3.8),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n5\t1\t2\tWhy?\tHow?\t0\n",
        ("Why?", "How?"),
        "0",
    ),
    "mnli": (
        "index\tpairID\tsentence1\tsentence2\tlabel1\tgold_label\n0\tx\tA\tB\tneutral\tentailment\n",
        ("A", "B"),
        "entailment",
    ),
    "qnli": ("index\tquestion\tsentence\tlabel\n0\tQ\tS\tnot_entailment\n", ("Q", "S"), None),
    "rte": ("index\tsentence1\tsentence2\tlabel\n0\tA\tB\tentailment\n", ("A", "B"), "entailment"),
    "wnli": ("index\tsentence1\tsentence2\tlabel\n0\tA\tB\t1\n", ("A", "B"), "1"),
}


@pytest.mark.parametrize("name", GLUE)
def test_glue(name, tmp_path):
    text, texts, label = GLUE[name]
    ((example,), counts) = read(write(tmp_path / "train.tsv", text), name)
    assert example.texts == texts
    assert example.label == (label or "not_entailment")
    assert not counts


def test_json_lines_and_gzip(tmp_path):
    rows = [{"id": "x", "text": "a", "label": ["p", "q"]}, {"id": "y", "text": "b", "label": []}]
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    examples, _ = read(path, "multi_label")
    assert examples == [TextExample("x", ("a",), ("p", "q")), TextExample("y", ("b",), ())]


def test_imdb_folders(tmp_path):
    write(tmp_path / "pos/0_9.txt", "Good.<br />Very.")
    write(tmp_path / "neg/0_2.txt", "Bad.")
    write(tmp_path / "unsup/0_0.txt", "?")
    write(tmp_path / "neg/list.dat", "?")
    write(tmp_path / "pos/._0_9.txt", "what macOS leaves beside a file")
    write(tmp_path / ".ipynb_checkpoints/0_9-checkpoint.txt", "Good.")
    examples, counts = read(tmp_path, "imdb")
    assert examples == [
        TextExample("neg/0_2", ("Bad.",), "neg"),
        TextExample("pos/0_9", ("Good. Very.",), "pos"),
    ]
    assert counts == {"other_files": 2}


def test_race_folders(tmp_path):
    tree = {
        "article": "A boy ran.",
        "questions": ["Who ran?", "The boy _ ."],
        "options": [["a boy", "a man", "a dog", "all"], ["ran", "sat", "lay", "sang"]],
        "answers": ["A", "B"],
        "id": "high1.txt",
    }
    write(tmp_path / "high/1.txt", json.dumps(tree))
    write(tmp_path / "middle/2.txt", json.dumps(tree | {"answers": ["A", "E"]}))
    write(tmp_path / "middle/3.txt", "no json")
    for name in ("high/._1.txt", "high/.ipynb_checkpoints/1-checkpoint.txt"):
        write(tmp_path / name, json.dumps(tree))
    examples, counts = read(tmp_path, "race")
    assert [e.id for e in examples] == ["high/1/0", "high/1/1", "middle/2/0"]
    assert [e.label for e in examples] == [0, 1, 0]
    write(tmp_path / "a/x.1.json", json.dumps(tree))
    assert [e.id for e in read(tmp_path, "race")[0]][:2] == ["a/x.1/0", "a/x.1/1"]
    assert counts == {"wrong_answers": 1, "malformed_files": 1}
    assert [e.texts for e in examples[:2]] == [("A boy ran.", q) for q in tree["questions"]]


def test_swag(tmp_path):
    text = "sent1,sent2,ending0,ending1,ending2,ending3,label\nHe came.,He,a,b,c,d,2\n"
    examples, _ = read(write(tmp_path / "a.csv", text), "swag")
    choices = ("He a", "He b", "He c", "He d")
    assert examples == [ChoiceExample("1", ("He came.",), choices, 2)]
    names = [f"ending{n}" for n in range(12)]
    row = dict(zip(names, "abcdefghijkl", strict=True)) | {"sent1": "", "ending": "?", "label": 10}
    (example,) = read(write(tmp_path / "b.jsonl", json.dumps(row)), "multiple_choice")[0]
    assert (example.choices, example.label) == (tuple("abcdefghijkl"), 10)


def test_conll_columns(tmp_path):
    text = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nsays VBZ B-VP O\n\n\nPeter NNP B-NP B-PER\n"
    examples, _ = read(write(tmp_path / "a.txt", text), "conll2003")
    assert examples == [
        TaggedExample("0", ("EU", "says"), ("B-ORG", "O")),
        TaggedExample("1", ("Peter",), ("B-PER",)),
    ]


def test_squad_rejects_answers_that_are_not_there(tmp_path):
    def question(name, **rest):
        return {"id": name, "question": "What?", **rest}

    qas = [
        question("a", answers=[{"text": "came", "answer_start": 3}], is_impossible=False),
        question("b", answers=[{"text": "came", "answer_start": 2}]),
        question("c", answers=[], is_impossible=True, plausible_answers=[]),
    ]
    tree = {"version": "v2.0", "data": [{"paragraphs": [{"context": "He came.", "qas": qas}]}]}
    path = write(tmp_path / "a.json", json.dumps(tree))
    examples, counts = read(path, "squad")
    assert [(e.id, e.answers) for e in examples] == [("a", (("came", 3),)), ("c", ())]
    assert counts == {"answers_not_in_paragraph": 1}
    with pytest.raises(DataError, match="question b: expected the answer 'came' at 2, got ' cam'"):
        read(path, "squad", strict=True)


def test_trec_folders(tmp_path):
    write(tmp_path / "queries.tsv", "1\twho ran\n2\twho sat\n3\tunused\n")
    write(tmp_path / "documents.tsv", "a\tA boy ran.\nb\tA dog\tsat.\nc\tNobody.\n")
    write(tmp_path / "qrels", "1 0 a 2\n1 0 c 1\n2 0 b 1\n")
    examples, counts = read(tmp_path, "ranking")
    assert examples == [
        RankingExample("a", "1", "who ran", "A boy ran.", 2.0),
        RankingExample("c", "1", "who ran", "Nobody.", 1.0),
        RankingExample("b", "2", "who sat", "A dog\tsat.", 1.0),
    ]
    assert not counts
    run = ["1 Q0 b 1 9.5 x", "1 Q0 a 2 9.1 x", "1 Q0 gone 3 8 x", "3 Q0 a 1 7 x"]
    write(tmp_path / "run", "\n".join(run))
    examples, counts = read(tmp_path, "ranking")
    assert [(e.id, e.query_id, e.relevance) for e in examples] == [("b", "1", 0.0), ("a", "1", 2.0)]
    assert {e.not_ranked for e in examples} == {(("c", 1.0),)}
    assert counts == {"missing_texts": 1, "queries_without_judgements": 1}
    write(tmp_path / "run", "3 Q0 a 1 7 x\n")
    assert [(e.query, e.relevance) for e in read(tmp_path, "ranking", with_labels=False)[0]] == [
        ("unused", None)
    ]
    write(tmp_path / "queries.tsv", "1 who ran\n")
    with pytest.raises(DataError, match=r"queries\.tsv, line 1: expected an id, a tab"):
        read(tmp_path, "ranking")


def test_ranking_tables_and_trec_files(tmp_path):
    text = "query_id\tdocument_id\tquery\tdocument\trelevance\n1\td7\tq\td\t2\n"
    examples, _ = read(write(tmp_path / "a.tsv", text), "ranking")
    assert examples == [RankingExample("d7", "1", "q", "d", 2.0)]
    text = "index\tquestion\tsentence\tlabel\n0\tQ\tS\tentailment\n1\tQ\tR\tnot_entailment\n"
    examples, _ = read(write(tmp_path / "b.tsv", text), "qnli_ranking")
    assert [(e.query_id, e.relevance) for e in examples] == [("Q", 1.0), ("Q", 0.0)]
    text = "query_id,question,sentence,relevance,label\n,Q,S,2,x\n,P,R,1,y\n"
    examples, _ = read(write(tmp_path / "own.csv", text), "ranking")
    assert [(e.query_id, e.relevance) for e in examples] == [("Q", 2.0), ("P", 1.0)]
    # HF's form of QNLI, in which 0 is entailment.
    text = "question,sentence,label,idx\nQ,S,0,0\nQ,R,1,1\n"
    hf = write(tmp_path / "hf.csv", text)
    assert read(hf, "qnli_ranking") == ([], {"malformed_rows": 2})
    assert len(read(hf, "qnli_ranking", strict=True, with_labels=False)[0]) == 2
    premise = "The trophy does not fit into the case because it is too large."
    rows = [("The trophy is too large.", 1), ("The case is too large.", 0)]
    text = "index\tsentence1\tsentence2\tlabel\n" + "".join(
        f"{n}\t{premise}\t{sentence}\t{label}\n" for n, (sentence, label) in enumerate(rows)
    )
    examples, _ = read(write(tmp_path / "c.tsv", text), "wnli_ranking")
    assert [(e.query_id, e.document, e.relevance) for e in examples] == [
        (premise, sentence, float(label)) for sentence, label in rows
    ]
    run = read_run(str(write(tmp_path / "run", "1 Q0 d7 1 2.5 tag\n1 Q0 d8 2 1.5 tag\n")))
    assert run == {"1": {"d7": 2.5, "d8": 1.5}}
    assert read_judgements(str(write(tmp_path / "qrels", "1 0 d7 2\n"))) == {"1": {"d7": 2.0}}
    with pytest.raises(DataError, match="line 1: expected 4 columns"):
        read_judgements(str(write(tmp_path / "bad", "1 0 d7\n")))


@pytest.mark.parametrize(
    ("name", "text", "task", "reason"),
    [
        ("a.tsv", "text\tlabel\na\tb\tc\n", "classification", "malformed_rows"),
        ("a.tsv", "text\tlabel\na\tmuch\n", "regression", "malformed_rows"),
        ("a.jsonl", '{"text": "a", "label": "b"}\n[1]\n', "classification", "malformed_rows"),
        ("a.csv", "sent1,ending0,ending1,label\na,b,c,2\n", "multiple_choice", "wrong_answers"),
    ],
)
def test_rows_that_cannot_be_used_are_counted_or_named(name, text, task, reason, tmp_path):
    path = write(tmp_path / name, text)
    assert read(path, task)[1] == collections.Counter({reason: 1})
    with pytest.raises(DataError, match=r"(line|row) \d"):
        read(path, task, strict=True)


def test_tfds(tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    import tensorflow as tf

    features = {
        "sentence": tfds.features.Text(),
        "idx": tf.int32,
        "label": tfds.features.ClassLabel(names=["negative", "positive"]),
        "topics": tfds.features.Sequence(tfds.features.ClassLabel(names=["x", "y", "z"])),
        "notes": tfds.features.Sequence(tfds.features.Text()),
    }
    columns = {"sentence": ["a b", "c"], "idx": [0, 1], "label": [1, 0]}
    columns |= {"topics": [[2, 0], [1, 1]], "notes": [["p", "q"], ["r", b"\xff"]]}
    tfds.dataset_builders.store_as_tfds_dataset(
        name="films",
        version="1.0.0",
        features=tfds.features.FeaturesDict(features),
        split_datasets={"train": tf.data.Dataset.from_tensor_slices(columns)},
        data_dir=str(tmp_path / "tfds"),
    )
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "tfds"))
    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tmp_path / "tfds"))
    examples, _ = read("tfds:films:train", text_columns=("sentence",))
    assert sorted(examples, key=lambda e: e.texts) == [
        TextExample("0", ("a b",), "positive"),
        TextExample("1", ("c",), "negative"),
    ]
    with pytest.raises(DataError, match="expected a split of films that is on disk"):
        read("tfds:films:dev")
    settings = {"text_columns": ("sentence",), "label_column": "topics"}
    examples, _ = read("tfds:films:train", "multi_label", **settings)
    assert sorted(e.label for e in examples) == [("y", "y"), ("z", "x")]
    # A sequence of texts, or of bytes that are none, is no text.
    assert read("tfds:films:train", text_columns=("notes",)) == ([], {"malformed_rows": 2})
