"""Small task data for tests: made of the words of `corpora`, with labels that can be learned."""

import csv
import json
import pathlib

from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.corpora import WORDS
from tests.helpers.package.of_projects import entries

GOOD, BAD = ("water", "made", "first"), ("but", "not", "no")


def sentence(rng, least=3, most=9):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, most)))


def labelled(rng, number):
    """(label, text): the label says whether a good or a bad word is in the text."""
    rows = []
    for n in range(number):
        words = [word for word in sentence(rng).split() if word not in GOOD + BAD]
        words.insert(rng.randint(0, len(words)), rng.choice(GOOD if n % 2 else BAD))
        rows.append((("bad", "good")[n % 2], " ".join(words)))
    return rows


def write_table(path, header, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        if str(path).endswith(".jsonl"):
            file.writelines(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows)
        elif str(path).endswith(".csv"):
            csv.writer(file).writerows(([header] if header else []) + list(rows))
        else:
            lines = ([header] if header else []) + list(rows)
            file.writelines("\t".join(map(str, row)) + "\n" for row in lines)
    return str(path)


def task_config(vocab_size=211, mem_len=0, **task):
    """A network that learns `labelled` in seconds."""
    training = {
        name: task.pop(name)
        for name in ("batch_size", "num_steps", "checkpoint_steps", "learning_rate", "seed")
        if name in task
    }
    return XLNetConfig.from_dict(
        {
            "model": {
                "vocab_size": vocab_size,
                "num_layers": 1,
                "d_model": 26,
                "num_heads": 2,
                "d_inner": 31,
                "mem_len": mem_len,
                "dropout": 0.0,
                "dropatt": 0.0,
                "init_std": 0.1,
            },
            "training": {
                "batch_size": 7,
                "num_steps": 60,
                "warmup_steps": 0,
                "learning_rate": 0.01,
                "checkpoint_steps": 20,
                **training,
            },
            "task": {"max_length": 23, "num_buckets": 1, **task},
        }
    )


# Kinds of tasks with the ending of their files.
KINDS = {
    "classification": ".tsv",
    "multi_label": ".csv",
    "regression": ".tsv",
    "multiple_choice": ".csv",
    "token_classification": "",
    "ranking": ".tsv",
    "question_answering": ".json",
} | dict.fromkeys(entries("FILES_OF_SEVERAL"), "")


# Of those whose files are tables: the header, and a function that draws the rows.
TABLES = {
    "classification": (("label", "text"), labelled),
    "multi_label": (
        ("label", "text"),
        lambda rng, number: [
            (",".join(x for x in ("water", "not") if x in text.split()), text)
            for _, text in labelled(rng, number)
        ],
    ),
    "regression": (
        ("label", "a", "b", "c"),
        lambda rng, number: [
            (n % 5 + rng.random(), *(sentence(rng) for _ in range(3))) for n in range(number)
        ],
    ),
    "multiple_choice": (
        ("sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label"),
        lambda rng, number: [
            # No two endings are the same, so that no two probabilities are.
            (sentence(rng), "they", *(f"{word} {sentence(rng, 1, 2)}" for word in WORDS[:4]), n % 4)
            for n in range(number)
        ],
    ),
    "ranking": (
        ("query_id", "document_id", "query", "document", "relevance"),
        lambda rng, number: [
            (query, f"d{n}", WORDS[query], f"{sentence(rng)} {WORDS[query + n]}", int(n == 0))
            for query in range(number)
            for n in range(3)
        ],
    ),
    "pairs with scores": (
        ("score", "sentence1", "sentence2"),
        lambda rng, number: [
            (n % 5 + rng.random(), sentence(rng), sentence(rng)) for n in range(number)
        ],
    ),
}


def question(rng, n):
    """A paragraph with a question, whose answer is a word; each third one has none."""
    context = sentence(rng, 12, 19)
    word = context.split()[n % 9]
    answer = {"text": word, "answer_start": context.index(word)}
    qa = {"id": str(n), "question": sentence(rng, 2, 4), "is_impossible": n % 3 == 0}
    return {"context": context, "qas": [qa | {"answers": [] if n % 3 == 0 else [answer]}]}


def several_files(kind, path):
    """NAME=FILE,NAME=FILE of a kind of task that reads several data sets."""
    return ",".join(f"{name}={path}_{name}.tsv" for name in entries("FILES_OF_SEVERAL")[kind])


def task_file(kind, path, rng, number):
    """Writes a small file of a kind of task; returns its path, NAME=FILE,NAME=FILE of several."""
    if kind in TABLES:
        header, rows = TABLES[kind]
        return write_table(path, header, rows(rng, number))
    several = entries("FILES_OF_SEVERAL").get(kind)
    if several:
        for name, part in several.items():
            task_file(part, f"{path}_{name}.tsv", rng, number)
        return several_files(kind, path)
    if kind == "question_answering":
        text = json.dumps({"data": [{"paragraphs": [question(rng, n) for n in range(number)]}]})
    else:
        tags = {"water": "B-X", "first": "I-X"}
        texts = [sentence(rng).split() + ["water", "first"] for _ in range(number)]
        text = "".join(
            "".join(f"{word} _ {tags.get(word, 'O')}\n" for word in words) + "\n" for words in texts
        )
    pathlib.Path(path).write_text(text, encoding="utf-8")
    return str(path)


def beir_folder(folder, rng, documents=90):
    """Writes a folder of BEIR with a run, where queries have graded and junk documents."""
    (folder / "qrels").mkdir(parents=True)
    texts = [(f"d{n}", "", sentence(rng)) for n in range(documents)]
    write_table(folder / "corpus.jsonl", ("_id", "title", "text"), texts)
    queries = [(f"q{n}", WORDS[n]) for n in range(18)]
    write_table(folder / "queries.jsonl", ("_id", "text"), queries)
    header, run = ("query-id", "corpus-id", "score"), []
    for number, split in enumerate(("train", "test", "dev")):
        judged = []
        for query, _ in queries[6 * number : 6 * number + 6]:
            found = [name for name, *_ in rng.sample(texts, 37)]
            judged += [(query, name, rng.randint(-1, 3)) for name in found[:19]]
            run += [(query, "Q0", name, 0, rng.randint(0, 9), "x") for name in found[5:]]
        write_table(folder / f"qrels/{split}.tsv", header, judged)
    (folder / "run").write_text("".join(f"{' '.join(map(str, row))}\n" for row in run))
    return folder
