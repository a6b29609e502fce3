"""Files of a task as people have them, and the rows that are in them.

A property of a file is `right` where a reader has to read the rows that are meant, and `doubtful`
where it may also refuse the file, or count the rows that it leaves out; it may never read others.
"""

import csv
import gzip
import io
import json
import random

from tests.helpers.corpora import CHINESE, WORDS
from tests.helpers.oracles.tokenizer_oracle import nasty_lines

KINDS = (
    *("classification", "classification", "classification", "regression", "multi_label"),
    *("token_classification", "question_answering", "multiple_choice", "ranking"),
)
TABLES = ("classification", "regression", "multi_label")
RIGHT = (
    *("bom", "crlf", "no_last_line_end", "gz", "capital_ending", "quoted_line_end", "shuffled"),
    *("id_column", "odd_column", "capital_column", "column_class", "columns_become_one", "pair"),
    *("spaces_in_label", "long_text", "unused_column", "label_column"),
)
DOUBTFUL = (
    *("open_quote", "semicolons", "tabs_in_csv", "index_column", "empty_label", "json_array"),
    *("pair_ID", "blank_line", "null_text", "empty_text", "repeated_id"),
)
_LABELS = {"few": ("bad", "good"), "odd": ("Überschrift", "$x_1$", "a b"), "numbers": ("0", "1")}


def draw_task(rng: random.Random) -> dict:
    kind = rng.choice(KINDS)
    formats = ("tsv", "csv", "jsonl") if kind in TABLES else ("jsonl",)
    return {
        "kind": kind,
        "format": rng.choice(formats),
        "rows": rng.choice((13, 20, 31)),
        "labels": rng.choice(sorted(_LABELS)),
        "script": rng.choice(("english", "english", "chinese", "nasty")),
        "properties": sorted(set(rng.sample(RIGHT, rng.randint(0, 3))) | _doubt(rng)),
        "target_scale": rng.choice((1.0, 1.0, 1000.0)),
        "seed": rng.randrange(1 << 30),
    }


def _doubt(rng: random.Random) -> set[str]:
    return {rng.choice(DOUBTFUL)} if rng.random() < 0.3 else set()


def is_doubtful(task: dict) -> bool:
    return bool(set(task["properties"]) & set(DOUBTFUL))


class TaskFile:
    """A file of a task.

    Attributes:
      path: its path.
      rows: for tables, (texts, label as text or None) of each row, as a reader should find them.
      sets: `--set` arguments that tell of its columns.
    """

    def __init__(self, path, rows: list, sets: list[str]):
        self.path, self.rows, self.sets = path, rows, sets


def write_task_file(task: dict, folder, split: str) -> TaskFile:
    """Writes the `train`, `dev` or `test` file of a task; the latter has no labels."""
    rng = random.Random(f"{task['seed']} {split}")
    kind = task["kind"]
    if kind in TABLES:
        return _write_table(task, folder, split, rng)
    writer = {
        "token_classification": _write_conll,
        "question_answering": _write_squad,
        "multiple_choice": _write_choices,
        "ranking": _write_ranking,
    }[kind]
    file = writer(task, folder, split, rng)
    if split == "test":
        file.rows = [(row, None) for row, _ in file.rows]
    return file


def _text(task: dict, rng: random.Random) -> str:
    number = rng.randint(40, 90) if "long_text" in task["properties"] and rng.random() < 0.2 else 0
    number = number or rng.randint(1, 9)
    if task["script"] == "nasty" and rng.random() < 0.5:
        [line] = nasty_lines(1, seed=rng.randrange(1 << 30))
        line = line.encode(errors="ignore").decode()
        breaks = '\0\r\n\t"\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff'
        return f"x {''.join(' ' if c in breaks else c for c in line)} x"[:300]
    words = CHINESE if task["script"] == "chinese" else WORDS
    return ("" if task["script"] == "chinese" else " ").join(rng.choices(words, k=number))


def _labels(task: dict, rng: random.Random, number: int):
    if task["kind"] == "regression":
        return [round(rng.uniform(1, 3) * task["target_scale"], 2) for _ in range(number)]
    names = _LABELS[task["labels"]]
    first = [names[n % len(names)] for n in range(number)]
    if task["kind"] == "multi_label":
        return [
            sorted({name, rng.choice(names)}) if n % 3 else [name] for n, name in enumerate(first)
        ]
    return first


def _write_table(task: dict, folder, split: str, rng: random.Random) -> TaskFile:
    has = set(task["properties"])
    columns, sets = ["text"], []
    if "pair" in has:
        columns = ["text", "other"]
    if "columns_become_one" in has:
        columns = ["text-a", "text_a"]
    if "odd_column" in has:
        columns[0] = random.Random(task["seed"]).choice(("#1 String", "1", "Überschrift", "标题"))
    elif "capital_column" in has:
        columns[0] = "Review Text"
    elif "column_class" in has:
        columns[0] = "class"
    label = "label"
    if "label_column" in has:
        label = "Quality of it"
        sets.append(f"--set=task.label_column={label}")
    number = task["rows"]
    texts = [[_text(task, rng) for _ in columns] for _ in range(number)]
    labels = _labels(task, rng, number)
    rows = [dict(zip(columns, row, strict=True)) for row in texts]
    wanted = [
        (tuple(row), _meant(task["kind"], value)) for row, value in zip(texts, labels, strict=True)
    ]
    place = rng.randrange(1, number)
    if "quoted_line_end" in has and task["format"] != "tsv":
        rows[place][columns[0]] += '\nand "so" on'
        wanted[place] = ((rows[place][columns[0]], *wanted[place][0][1:]), wanted[place][1])
    if "empty_text" in has:
        rows[place] = dict.fromkeys(columns, "")
        wanted[place] = (("",) * len(columns), wanted[place][1])
    for n, row in enumerate(rows):
        row[label] = labels[n] if task["format"] == "jsonl" else _flat(labels[n])
        if "id_column" in has or "repeated_id" in has:
            row["id"] = f"r{n // 2 if 'repeated_id' in has else n}"
        if "pair_ID" in has:
            row["pair_ID"] = f"p{n}"
        if "unused_column" in has:
            row["source"] = f"s{n % 3}"
    if "unused_column" in has:
        sets.append(f"--set=task.text_columns={json.dumps(columns, ensure_ascii=False)}")
    if "empty_label" in has and split == "train":
        rows[place][label] = "" if task["format"] != "jsonl" else None
        none = () if task["kind"] == "multi_label" and task["format"] != "jsonl" else None
        wanted[place] = (wanted[place][0], none)
    if "null_text" in has and task["format"] == "jsonl":
        rows[place][columns[0]] = None
        wanted[place] = (None, wanted[place][1])
    if split == "test":
        for row in rows:
            del row[label]
        wanted = [(row, None) for row, _ in wanted]
    header = list(rows[0])
    if "shuffled" in has:
        rng.shuffle(header)
        texts_in_order = [c for c in header if c in columns]
        if "unused_column" not in has:  # Columns are read in the order of the training file.
            order = [columns.index(c) for c in texts_in_order]
            if split == "train":
                wanted = [(_reordered(row, order), y) for row, y in wanted]
                task["order"] = texts_in_order
            else:
                order = [columns.index(c) for c in task.get("order", columns)]
                wanted = [(_reordered(row, order), y) for row, y in wanted]
    return TaskFile(_write(task, folder, split, header, rows, has), wanted, sets)


def _reordered(row, order):
    return row if row is None else tuple(row[i] for i in order)


def _meant(kind: str, value):
    return tuple(value) if kind == "multi_label" else value


def _flat(value) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


def _write(task: dict, folder, split: str, header, rows, has):
    ending, out = task["format"], io.StringIO(newline="")
    end = "\r\n" if "crlf" in has else "\n"
    if ending == "jsonl":
        if "json_array" in has:
            out.write(json.dumps(rows, ensure_ascii=False))
        else:
            out.writelines(
                json.dumps({c: r[c] for c in header}, ensure_ascii=False) + end for r in rows
            )
    elif ending == "csv":
        if "index_column" in has:
            header = ["", *header]
            rows = [{"": n, **row} for n, row in enumerate(rows)]
        delimiter = ";" if "semicolons" in has else "\t" if "tabs_in_csv" in has else ","
        writer = csv.writer(out, delimiter=delimiter, lineterminator=end)
        writer.writerow(header)
        writer.writerows([["" if row[c] is None else row[c] for c in header] for row in rows])
    else:
        lines = ["\t".join(header), *("\t".join(str(row[c]) for c in header) for row in rows)]
        out.write(end.join(lines) + end)
    text = out.getvalue()
    if "open_quote" in has and ending == "csv":
        lines = text.split(end)
        lines[len(lines) // 2] = '"' + lines[len(lines) // 2]
        text = end.join(lines)
    if "blank_line" in has:
        text = text + end
    if "no_last_line_end" in has:
        text = text.removesuffix(end)
    data = (b"\xef\xbb\xbf" if "bom" in has else b"") + text.encode()
    if "capital_ending" in has:
        ending = ending.upper()
    if "gz" in has:
        ending, data = f"{ending}.gz", gzip.compress(data)
    path = folder / f"{split}.{ending}"
    path.write_bytes(data)
    return path


def _write_conll(task: dict, folder, split: str, rng: random.Random) -> TaskFile:
    tags = ("O", "B-X", "I-X", "B-Y")
    rows = []
    for n in range(task["rows"]):
        words = tuple(_text({**task, "script": "english"}, rng).split())
        rows.append((words, tuple(tags[(n + k) % 4] for k in range(len(words)))))
    end = "\r\n" if "crlf" in task["properties"] else "\n"
    lines = ["".join(f"{word} {tag}{end}" for word, tag in zip(*row, strict=True)) for row in rows]
    if split == "test":
        lines = ["".join(f"{word}{end}" for word in words) for words, _ in rows]
        rows = [(words, None) for words, _ in rows]
    data = end.join(lines).encode()
    path = folder / f"{split}.txt"
    path.write_bytes((b"\xef\xbb\xbf" if "bom" in task["properties"] else b"") + data)
    return TaskFile(path, rows, [])


def _write_squad(task: dict, folder, split: str, rng: random.Random) -> TaskFile:
    rows, paragraphs = [], []
    for n in range(task["rows"]):
        words = [rng.choice(WORDS) for _ in range(rng.randint(4, 30))]
        context, place = " ".join(words), rng.randrange(len(words))
        start = len(" ".join([*words[:place], ""]))
        answer = words[place]
        if "empty_text" in task["properties"] and place + 1 < len(words):
            answer += " "  # An answer that ends in a space.
        has_answer = n % 4 != 3
        question = _text({**task, "script": "english"}, rng)
        qa = {"id": f"q{n}", "question": question}
        if split != "test":
            answers = [{"text": answer, "answer_start": start}] if has_answer else []
            qa |= {"answers": answers, "is_impossible": not has_answer}
            if "null_text" in task["properties"] and has_answer:
                qa["is_impossible"] = "false"
        paragraphs.append({"context": context, "qas": [qa]})
        rows.append(((question, context), (answer.strip() if has_answer else "")))
    tree = {"version": "2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}
    path = folder / f"{split}.json"
    prefix = b"\xef\xbb\xbf" if "bom" in task["properties"] else b""
    path.write_bytes(prefix + json.dumps(tree).encode())
    return TaskFile(path, rows, [])


def _write_choices(task: dict, folder, split: str, rng: random.Random) -> TaskFile:
    rows = []
    for n in range(task["rows"]):
        texts, choices = _text(task, rng), [_text(task, rng) for _ in range(3)]
        rows.append({"text": texts, "choices": choices, "label": n % 3})
    wanted = [((row["text"], *row["choices"]), row["label"]) for row in rows]
    if split == "test":
        for row in rows:
            del row["label"]
    return TaskFile(_write(task, folder, split, list(rows[0]), rows, _general(task)), wanted, [])


def _write_ranking(task: dict, folder, split: str, rng: random.Random) -> TaskFile:
    rows = []
    for n in range(task["rows"]):
        row = {"query": f"the {n // 4} {WORDS[n // 4]}", "document": _text(task, rng)}
        rows.append({**row, "relevance": n % 3})
    wanted = [((row["query"], row["document"]), row["relevance"]) for row in rows]
    if split == "test":
        for row in rows:
            del row["relevance"]
    return TaskFile(_write(task, folder, split, list(rows[0]), rows, _general(task)), wanted, [])


def _general(task: dict) -> set[str]:
    """Properties that JSON lines of any kind may have."""
    return {"bom", "crlf", "no_last_line_end", "gz", "json_array"} & set(task["properties"])
