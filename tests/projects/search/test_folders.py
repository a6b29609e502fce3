"""Folders of TREC and BEIR, written here line by line."""

import pytest

from data_prep.tasks.task_data import read_examples
from data_prep.tasks.text_rows import read_text_rows
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.tasks.ranking import RankingExample
from tests.helpers.compare import assert_refused
from tests.helpers.corpora import COMPRESS


def read(path, task="ranking", with_labels=True):
    reading = Reading(str(path), TaskConfig.create(name=task), with_labels=with_labels)
    return list(read_examples(reading)), reading.counts


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


TREC = {
    "queries.tsv": "1\twho ran\n2\twho sat\n3\tunused\n",
    "documents.tsv": "\ufeffa\tA boy ran.\nb\tA dog\tsat.\nc\tNobody.\n",
    "qrels": "1 0 a 2\n1 0 c 1\n2 0 b 1\n",
}


def test_trec_folders(tmp_path):
    for name, text in TREC.items():
        write(tmp_path / name, text)
    expected = [
        RankingExample("a", "1", "who ran", "A boy ran.", 2.0),
        RankingExample("c", "1", "who ran", "Nobody.", 1.0),
        RankingExample("b", "2", "who sat", "A dog\tsat.", 1.0),
    ]
    assert read(tmp_path, "ranking") == (expected, {})
    run = ["1 Q0 b 1 9.5 x", "1 Q0 a 2 9.1 x", "1 Q0 gone 3 8 x", "3 Q0 a 1 7 x"]
    write(tmp_path / "run", "\n".join(run))
    examples, counts = read(tmp_path, "ranking")
    assert [(e.id, e.query_id, e.relevance) for e in examples] == [("b", "1", 0.0), ("a", "1", 2.0)]
    assert {e.not_ranked for e in examples} == {(("c", 1.0),)}
    assert [e.run_score for e in examples] == [9.5, 9.1]
    assert counts == {"missing_texts": 1, "queries_without_judgements": 1}
    write(tmp_path / "run", "3 Q0 a 1 7 x\n")
    ((unused,), _) = read(tmp_path, "ranking", with_labels=False)
    assert (unused.query, unused.relevance) == ("unused", None)


BEIR = {
    "queries.jsonl": '{"_id": "1", "text": "who ran", "metadata": {}}\n'
    '{"_id": "2", "text": "who sat"}\n{"_id": "3", "text": "unused"}\n',
    "corpus.jsonl": '{"_id": "a", "title": "Boys", "text": "A boy ran."}\n'
    '{"_id": "b", "title": "", "text": "A dog sat."}\n{"_id": "c", "text": "Nobody."}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tc\t1\n",
}


def test_folders_of_beir(tmp_path):
    """A folder with one file of judgements, one file of several, with a run or without."""
    for name, text in BEIR.items():
        write(tmp_path / name, text)
    expected = [
        RankingExample("a", "1", "who ran", "Boys A boy ran.", 2.0),
        RankingExample("c", "1", "who ran", "Nobody.", 1.0),
    ]
    assert read(tmp_path, "ranking") == (expected, {})
    train = write(tmp_path / "qrels/train.tsv", "query-id\tcorpus-id\tscore\n2\tb\t1\n")
    assert_refused(r"got test\.tsv, train\.tsv; pass the path of one", read, tmp_path, "ranking")
    found = RankingExample("b", "2", "who sat", "A dog sat.", 1.0)
    assert read(train, "ranking") == ([found], {})
    write(tmp_path / "run", "1 Q0 b 1 9.5 x\n2 Q0 b 1 -7.5 x\n2 Q0 a 2 -8.5 x\n")
    examples, counts = read(train, "ranking")
    assert [(e.id, e.relevance, e.run_score) for e in examples] == [("b", 1, -7.5), ("a", 0, -8.5)]
    assert counts == {"queries_without_judgements": 1}
    (first, _), _ = read(train, "ranking", with_labels=False)
    assert (first.query_id, first.relevance) == ("2", None)
    assert len(read(tmp_path, "ranking", with_labels=False)[0]) == 3


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("queries.jsonl", '{"_id": "1", "text": "why"}\n', r"queries\.jsonl, line 4: expected one"),
        ("corpus.jsonl", '{"text": "why"}\n', r"corpus\.jsonl, line 4: expected text in '_id'"),
        ("corpus.jsonl", "{\n", r"corpus\.jsonl, line 4 is not valid JSON"),
        ("qrels/test.tsv", "1\ta\t1\n", r"test\.tsv, line 4: expected each document"),
        ("qrels/test.tsv", "1 0 b 1\n", r"test\.tsv, line 4: expected 3 columns"),
        ("qrels/test.tsv", "1 b x\n", r"test\.tsv, line 4: expected a number"),
    ],
)
def test_lines_of_beir_that_cannot_be_used_are_named(name, line, message, tmp_path):
    for other, text in BEIR.items():
        write(tmp_path / other, text + (line if other == name else ""))
    assert_refused(message, read, tmp_path, "ranking")


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("queries.tsv", "1\twhy\n", r"queries\.tsv, line 4: expected one text"),
        ("queries.tsv", "4 who\n", r"queries\.tsv, line 4: expected an id, a tab"),
        ("documents.tsv", "a\tB.\n", r"documents\.tsv, line 4: expected one text"),
        ("qrels", "1 0 a 1\n", "qrels, line 4: expected each document"),
        ("qrels", "1 0 d7\n", "qrels, line 4: expected 4 columns"),
        ("run", "1 Q0 a 2 1.5 x\n" * 2, "run, line 2: expected each document"),
    ],
)
def test_lines_of_trec_that_cannot_be_used_are_named(name, line, message, tmp_path):
    for other in {*TREC, name}:
        write(tmp_path / other, TREC.get(other, "") + (line if other == name else ""))
    assert_refused(message, read, tmp_path, "ranking")


@pytest.mark.parametrize("extension", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_files_are_the_same(extension, tmp_path):
    for folder, files in (("beir", BEIR), ("trec", {**TREC, "run": "1 Q0 b 1 9.5 x\n"})):
        for name, text in files.items():
            write(tmp_path / folder / name, text)
        expected = read(tmp_path / folder)
        for name, text in files.items():
            (tmp_path / folder / name).unlink()
            packed = COMPRESS[extension.removeprefix(".")](text.encode())
            (tmp_path / folder / f"{name}{extension}").write_bytes(packed)
        assert read(tmp_path / folder) == expected


def test_missing_files_are_named_in_both_formats(tmp_path):
    write(tmp_path / "qrels", TREC["qrels"])
    assert_refused(r"expected queries\.jsonl \(BEIR\) or queries\.tsv", read, tmp_path)


@pytest.mark.parametrize(
    "qrels",
    [
        "query_id\tdoc_id\trelevance\n1\ta\t2\n1\tc\t1\n",
        "score corpus-id query-id\n2 a 1\n1 c 1\n",
        "score corpus-id query-id\n2 a 1\nscore corpus-id query-id\n1 c 1\n",  # Two files.
        "qid iteration docno label\n1 0 a 2\n1 0 c 1\n",
        "1 a 2\n1 c 1\n",
    ],
)
def test_columns_of_judgements_may_have_names(qrels, tmp_path):
    for name, text in BEIR.items():
        write(tmp_path / name, text)
    expected = read(tmp_path)
    assert len(expected[0]) == 2
    write(tmp_path / "qrels/test.tsv", qrels)
    assert read(tmp_path) == expected


def test_documents_to_embed_are_those_that_are_ranked(tmp_path):
    for name, text in BEIR.items():
        write(tmp_path / "beir" / name, text)
    for name, text in TREC.items():
        write(tmp_path / "trec" / name, text)
    for folder, name in (("beir", "corpus.jsonl"), ("trec", "documents.tsv")):
        examples, _ = read(tmp_path / folder)
        path = str(tmp_path / folder / name)
        rows = read_text_rows([], path, format=folder)
        texts = {row["id"]: row["text"] for row in rows}
        assert len(rows) == 3
        assert all(texts[example.id] == example.document for example in examples)
