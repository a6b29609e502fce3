"""Readers of task data: data sets as they are downloaded, written here line by line."""

import gzip
import json

import pytest

from data_prep.tasks.task_data import read_examples, read_task, stream_task
from official.xlnet.configs.registry import DATASETS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.data.reading import Reading
from official.xlnet.tasks.multiple_choice import ChoiceExample
from official.xlnet.tasks.question_answering import QuestionExample
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tasks.token_classification import TaggedExample
from tests.helpers.compare import assert_refused


def read(path, task="classification", strict=False, with_labels=True, **changes):
    settings = TaskConfig.create(**{**DATASETS.find(task, {"name": task}), **changes})
    reading = Reading(str(path), settings, strict, with_labels)
    return list(read_examples(reading)), reading.counts


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def glue(texts, label):
    return [TextExample("1", texts, label)]


CONLL = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nsays VBZ O\n\n\nPeter NNP B-PER\n"
TAGGED = [
    TaggedExample("0", ("EU", "says"), ("B-ORG", "O")),
    TaggedExample("1", ("Peter",), ("B-PER",)),
]
CHOICES = ("He a", "He b", "He c", "He d")
SQUAD = {
    "id": "a",
    "question": "What?",
    "answers": [{"text": "came", "answer_start": 3}],
    "is_impossible": False,
}
NO_ANSWER = {"id": "c", "question": "Who?", "answers": [], "is_impossible": True}


def squad(*questions, context="He came."):
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": questions}]}]})


QNLI = "index\tquestion\tsentence\tlabel\n0\tQ\tS\tentailment\n1\tQ\tR\tnot_entailment\n"
# (data set, name of the file, its text, examples)
DATA_SETS = [
    ("cola", "a.tsv", 'gj04\t0\t*\tHe said "no.\n', glue(('He said "no.',), "0")),
    ("sst2", "a.tsv", "sentence\tlabel\na fine film \t1\n", glue(("a fine film ",), "1")),
    (
        *("mrpc", "a.tsv"),
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tA "b\tC d\n',
        glue(('A "b', "C d"), "1"),
    ),
    (
        *("stsb", "a.tsv", "index\tsentence1\tsentence2\tscore\n0\tA\tB\t3.800\n"),
        [TextExample("0", ("A", "B"), 3.8)],
    ),
    (
        *("qqp", "a.tsv"),
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n5\t1\t2\tWhy?\tHow?\t0\n",
        [TextExample("5", ("Why?", "How?"), "0")],
    ),
    (
        *("mnli", "a.tsv"),
        "index\tsentence1\tsentence2\tlabel1\tgold_label\n0\tA\tB\tneutral\tentailment\n",
        [TextExample("0", ("A", "B"), "entailment")],
    ),
    (
        *("qnli", "a.tsv", QNLI),
        [
            TextExample("0", ("Q", "S"), "entailment"),
            TextExample("1", ("Q", "R"), "not_entailment"),
        ],
    ),
    (
        *("rte", "a.tsv", "index\tsentence1\tsentence2\tlabel\n0\tA\tB\tentailment\n"),
        [TextExample("0", ("A", "B"), "entailment")],
    ),
    (
        *("wnli", "a.tsv", "index\tsentence1\tsentence2\tlabel\n0\tA\tB\t1\n"),
        [TextExample("0", ("A", "B"), "1")],
    ),
    (
        *("multi_label", "a.jsonl", '{"id": "x", "text": "a", "label": ["p", "q"]}\n'),
        [TextExample("x", ("a",), ("p", "q"))],
    ),
    ("multi_label", "a.csv", 'text,label\na,"p, q"\n', [TextExample("1", ("a",), ("p", "q"))]),
    (
        "swag",
        "a.csv",
        "sent1,sent2,ending0,ending1,ending2,ending3,label\nHe came.,He,a,b,c,d,2\n",
        [ChoiceExample("1", ("He came.",), CHOICES, 2)],
    ),
    (  # Endings beyond ten keep their order.
        *("multiple_choice", "a.jsonl"),
        json.dumps(
            {"sent1": "", **{f"ending{n}": "abcdefghijkl"[n] for n in range(12)}, "label": 10}
        ),
        [ChoiceExample("1", ("",), tuple("abcdefghijkl"), 10)],
    ),
    ("conll2003", "a.txt", CONLL, TAGGED),
    ("conll2003", "a.txt", "\ufeff" + CONLL.replace("\n", "\r\n").replace(" ", "\t"), TAGGED),
    (
        *("squad", "a.json", "\ufeff" + squad(SQUAD, NO_ANSWER)),
        [
            QuestionExample("a", "What?", "He came.", (("came", 3),)),
            QuestionExample("c", "Who?", "He came."),
        ],
    ),
    (
        *("ranking", "a.tsv"),
        "query_id\tdocument_id\tquery\tdocument\trelevance\n1\td7\tq\td\t2\n",
        [RankingExample("d7", "1", "q", "d", 2.0)],
    ),
    (
        *("ranking", "a.csv", "query_id,question,sentence,relevance,label\n,Q,S,2,x\n,P,R,1,y\n"),
        [RankingExample("1", "Q", "Q", "S", 2.0), RankingExample("2", "P", "P", "R", 1.0)],
    ),
    (
        *("qnli_ranking", "a.tsv", QNLI),
        [RankingExample("1", "Q", "Q", "S", 1.0), RankingExample("2", "Q", "Q", "R", 0.0)],
    ),
    (
        *("wnli_ranking", "a.tsv", "index\tsentence1\tsentence2\tlabel\n0\tA\tB\t1\n1\tA\tC\t0\n"),
        [RankingExample("1", "A", "A", "B", 1.0), RankingExample("2", "A", "A", "C", 0.0)],
    ),
]


@pytest.mark.parametrize(("task", "name", "text", "examples"), DATA_SETS)
def test_data_sets_as_they_are_downloaded(task, name, text, examples, tmp_path):
    assert read(write(tmp_path / name, text), task) == (examples, {})
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert read(packed, task) == (examples, {})


def test_imdb_folders(tmp_path):
    for name in ("unsup/0_0.txt", "neg/list.dat", "pos/._0_9.txt", ".ipynb_checkpoints/0_9.txt"):
        write(tmp_path / name, "?")
    write(tmp_path / "pos/0_9.txt", "Good.<br />Very.")
    write(tmp_path / "neg/0_2.txt", "Bad.")
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
    }
    for name in ("high/1.txt", "a/x.1.json", "high/._1.txt", "high/.ipynb_checkpoints/1.txt"):
        write(tmp_path / name, json.dumps(tree))
    write(tmp_path / "middle/2.txt", json.dumps(tree | {"answers": ["A", "E"]}))
    write(tmp_path / "middle/3.txt", "no json")
    examples, counts = read(tmp_path, "race")
    found = [(e.id, e.texts, e.choices, e.label) for e in examples]
    both = [("A boy ran.", question) for question in tree["questions"]]
    names = [("a/x.1/0", 0), ("a/x.1/1", 1), ("high/1/0", 0), ("high/1/1", 1), ("middle/2/0", 0)]
    assert found == [(name, both[n], tuple(tree["options"][n]), n) for name, n in names]
    assert counts == {"wrong_answers": 1, "malformed_files": 1}


HF_QNLI = "question,sentence,label,idx\nQ,S,0,0\nQ,R,1,1\n"  # In HF's form, 0 is entailment.


@pytest.mark.parametrize(
    ("task", "name", "text", "reason"),
    [
        ("classification", "a.tsv", "text\tlabel\na\tb\tc\n", "malformed_rows"),
        *(
            ("regression", "a.tsv", f"text\tlabel\na\t{number}\n", "malformed_rows")
            for number in ("much", "1_000", "１２", "0x1f", "1e400", "nan", "٣")
        ),
        ("classification", "a.jsonl", '{"text": "a", "label": "b"}\n[1]\n', "malformed_rows"),
        ("multiple_choice", "a.csv", "sent1,ending0,ending1,label\na,b,c,2\n", "wrong_answers"),
        ("qnli_ranking", "a.csv", HF_QNLI.replace("Q,R,1,1\n", ""), "malformed_rows"),
    ],
)
def test_rows_that_cannot_be_used_are_counted_or_named(task, name, text, reason, tmp_path):
    path = write(tmp_path / name, text)
    assert read(path, task)[1] == {reason: 1}
    assert_refused(r"(line|row) \d", read, path, task, strict=True)
    if task == "qnli_ranking":
        assert len(read(path, task, strict=True, with_labels=False)[0]) == 1


class Grade(int):
    def __str__(self):
        return "a grade"


class Share(float):
    def __str__(self):
        return "a share"


def test_numbers_of_classes_of_their_own_are_numbers():
    rows = [("a", Grade(3)), ("b", Share(0.5)), ("c", 2)]
    for task, expected in (("classification", ["3", "0.5", "2"]), ("regression", [3, 0.5, 2])):
        examples, _ = read_task(
            [{"text": x, "label": y} for x, y in rows], TaskConfig.create(name=task)
        )
        assert [example.label for example in examples] == expected


EDGES = ["", " ", "\n", "\u00a0", "\ufeff", "\u200b", " \u00a0\ufeff", "\u3000"]


@pytest.mark.parametrize("left", EDGES)
@pytest.mark.parametrize("right", EDGES)
def test_answers_lose_what_is_invisible_at_their_ends(left, right, tmp_path):
    context = f"The{left or ' '}river water{right or ' '}flows."
    text = f"{left}river water{right}"
    answer = {"text": text, "answer_start": context.index(text)}
    path = write(tmp_path / "a.json", squad({**SQUAD, "answers": [answer]}, context=context))
    ((example,), counts) = read(path, "squad")
    assert counts == ({"answers_stripped": 1} if left or right else {})
    assert example.answers == (("river water", context.index("river")),)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"answers": [], "is_impossible": "false"}, "is_impossible: expected true or false"),
        ({"answers": [], "is_impossible": 0}, "is_impossible: expected true or false, got 0"),
        ({"answers": [], "is_impossible": False}, "contradictory_answers 1"),
        ({**SQUAD, "id": "b", "is_impossible": True}, "contradictory_answers 1"),
        ({"answers": [{"text": "came", "answer_start": 2}]}, "answers_not_in_paragraph 1"),
        ({"answers": [{"text": "\u00a0", "answer_start": 2}]}, "answers_not_in_paragraph 1"),
        ({}, "missing_labels 1"),
        ({"id": "a", "answers": []}, "question a: expected an id of its own"),
    ],
)
def test_questions_that_contradict_themselves(question, message, tmp_path):
    path = write(tmp_path / "a.json", squad(SQUAD, {"id": "b", "question": "Who?", **question}))
    task = TaskConfig.create(name="question_answering")
    assert_refused(message, read_task, str(path), task)
    if " 1" in message:
        assert len(list(stream_task(str(path), task))) == 2


@pytest.mark.parametrize(
    ("text", "labels", "words"),
    [
        (CONLL, ("O", "B-ORG"), ["EU says", "Peter"]),
        (CONLL.replace(" ", "\t"), ("X",), ["EU says", "Peter"]),
        ("New York\tB-LOC\nhas\tO\n", (), ["New York|has"]),
        ("EU\nsays\n\nPeter\n", ("O",), ["EU says", "Peter"]),
        ("EU NOUN\nsays VERB\nno DET\n", ("NOUN", "VERB", "DET"), ["EU says no"]),
        (
            "EU says no.\nPeter  came\u00a0in .\n\nYes\n",
            ("O",),
            ["EU says no.", "Peter came in .", "Yes"],
        ),
        ("EU says no\n", ("O",), ["EU says no"]),
        ("EU\n\u3000\nsays\n\nPeter\n", ("O",), ["EU \u3000 says", "Peter"]),
        ("EU O\n\u3000\nPeter O\n\u00a0 O\n", ("O",), ["EU", "Peter \u00a0"]),
        ("EU says no\nPeter says no", ("O",), ["EU says no", "Peter says no"]),
    ],
)
def test_words_to_tag(text, labels, words, tmp_path):
    path = write(tmp_path / "a.txt", text)
    examples, _ = read(path, "token_classification", strict=True, with_labels=False, labels=labels)
    expected = [tuple(line.split("|" if "|" in line else " ")) for line in words]
    assert examples == [TaggedExample(str(n), each) for n, each in enumerate(expected)]


GERMEVAL = "#\tn-tv.de\n1\tEU\tB-ORG\tO\n2\tsays\tO\tO\n\n#\tx\n1\tPeter\tB-PER\tO\n"
MIT = "B-ORG\tEU\nO\tsays\n\nB-PER\tPeter\n"
CONLL_U = """# text = EUs Peter
1-2\tEUs\t_\t_\t_\t_\t_\t_\t_\t_
1\tEU\tEU\tPROPN\tNE\t_\t0\troot\t_\t_
2\tsays\tsay\tVERB\tVV\t_\t1\tdep\t_\t_
2.1\tso\t_\t_\t_\t_\t_\t_\t_\t_

1\tPeter\tPeter\tPROPN\tNE\t_\t0\troot\t_\t_
"""
WORD, TAG = "expected task.text_columns to be", "expected task.label_column to be"


@pytest.mark.parametrize(
    ("text", "columns", "tags", "message"),
    [
        (GERMEVAL, ("2", "3"), "", rf"{WORD} .*1 \('1'\), 2 \('EU'\), 3 \('B-ORG'\), 4 \('O'\)"),
        (MIT, ("2", "1"), "", rf"{WORD} one of the columns 1 \('B-ORG'\), 2 \('EU'\)"),
        ("EU B-ORG O\nsays O O\n\nPeter B-PER O\n", ("1", "2"), "", TAG),
        ("EU B-ORG B-PER\nsays O O\n\nPeter B-PER O\n", ("1", "2"), "", TAG),
        (
            CONLL_U,
            ("form", "upos"),
            "PROPN VERB PROPN",
            rf"{TAG} .*form \('EU'\).*upos \('PROPN'\)",
        ),
        (CONLL_U, ("2", "5"), "NE VV NE", TAG),
        ("EU NNP B-NP B-ORG\nsays V B-VP O\n\nPeter NNP B-NP B-PER\n", (), "", None),
    ],
)
def test_columns_of_words_that_are_not_clear_are_chosen(text, columns, tags, message, tmp_path):
    path, task = write(tmp_path / "a.conllu", text), "token_classification"
    settings = dict(
        zip(("text_columns", "label_column"), (columns[:1], *columns[1:]), strict=False)
    )
    found, _ = read(path, task, **(settings if columns else {}))
    assert [e.words for e in found] == [e.words for e in TAGGED]
    expected = tags.split() or [tag for e in TAGGED for tag in e.tags]
    assert [tag for e in found for tag in e.tags] == expected
    unlabelled, _ = read(path, task, with_labels=False, **(settings if columns else {}))
    assert [e.words for e in unlabelled] == [e.words for e in TAGGED]
    if message:
        assert_refused(message, read, path, task)
        assert_refused("got typo", read, path, task, text_columns=("typo",))


@pytest.mark.parametrize(
    ("text", "is_training", "message"),
    [
        ("EU says no\n" * 3, False, "3 lines of 3 columns without a tag; leave only the words"),
        ("EU\tO\nsays\n", False, r"line 2: expected 2 columns, as above, got 'says'"),
        ("EU NNP O\nsays O\n", True, r"line 2: expected 3 columns, as above, got 'says O'"),
        ("EU\nsays\n", True, "line 1: expected a word and its tag, got 'EU'"),
        ("EU\t\tO\n\tNNP\tO\n", True, "line 2: expected 3 columns"),
    ],
)
def test_columns_that_cannot_be_told(text, is_training, message, tmp_path):
    path = write(tmp_path / "a.txt", text)
    assert_refused(
        message,
        read,
        path,
        "token_classification",
        strict=True,
        with_labels=is_training,
        labels=("O",),
    )
