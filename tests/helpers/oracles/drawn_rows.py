"""Rows of drawn columns, in files of each format that is read; and reading what was written."""

import csv
import datetime
import io
import itertools
import json
import random

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from official.xlnet import cli

WORDS = ["", "a", "007", "1e5", "NA", "nan", "None", "true", " x ", 'say "hi"', '"', "a,b", "a;b"]
WORDS += ["a\tb", "line\nbreak", "naïve", "=1+1", "\u2028", "\U0001f642", "-", "null", "[1]", "\\n"]
NAMES = ["id", "amount", "naïve", "a b", "a,b", 'q"q', " lead", "NA", "1", "True", "index", "label"]
NAMES += ["Unnamed: 0", "group", "labels", "source", "\U0001f642", "TEXT", "_", "a/b", "None"]
# Columns that some verb writes; a verb refuses its own.
WRITTEN = ["total", "tokens", "output", "vector", "error", "text_id", "word", "start", "part"]
WRITTEN += ["log_likelihood", "candidates", "difference", "standard_error", "deviation", "weighted"]
INTEGERS = [0, 1, -3, 2**53 + 1, 2**62, -(2**62)]
FLOATS = [0.1, 1e-300, 1e300, -2.5, 2.0, 123456.789, 1 / 3]
DATES = [datetime.date(2026, 11, 30), datetime.datetime(2026, 11, 30, 9, 41, 53, 7)]
TREES = [[1, "a", None], [], {"x": 0.5, "y": {"z": [True]}}, {}, [[1], [2, 3]]]
OF_TYPES = {
    "texts": lambda rng: rng.choice(WORDS),
    "integers": lambda rng: rng.choice(INTEGERS),
    "floats": lambda rng: rng.choice(FLOATS),
    "truth values": lambda rng: rng.random() < 0.5,
    "dates": lambda rng: DATES[1],
    "lists": lambda rng: [rng.choice(WORDS) for _ in range(rng.randint(0, 3))],
    "objects": lambda rng: {"a": rng.choice(INTEGERS), "b": [rng.choice(WORDS)]},
    "anything": lambda rng: rng.choice([*WORDS, *INTEGERS, *FLOATS, *TREES, True]),
}
TEXT_TYPES = ["texts"]
JSON_TYPES = [name for name in OF_TYPES if name != "dates"]
ARROW_TYPES = [name for name in OF_TYPES if name != "anything"]


def drawn_columns(rng, types, texts, num_written):
    """{name: values}: the texts, in their order, among columns of other types, some with gaps.

    Args:
      rng: the random generator.
      types: names in `OF_TYPES`.
      texts: {name: values}, all of one length.
      num_written: number of names that a verb may write.
    """
    names = rng.sample(NAMES, rng.randint(1, 4)) + rng.sample(WRITTEN, num_written)
    number = len(next(iter(texts.values())))
    columns = dict(texts)
    for name in names:
        value_of = OF_TYPES[rng.choice(types)]
        has_gaps = types != TEXT_TYPES and rng.random() < 0.3
        columns[name] = []
        for _ in range(number):
            is_missing = has_gaps and rng.random() < 0.4
            columns[name].append(None if is_missing else value_of(rng))
    order = list(columns)
    rng.shuffle(order)
    return {name: columns[name] for name in order}


def rows_of(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _write_csv(columns, path, rng):
    with open(path, "w", newline="", encoding="utf-8") as file:
        line_end, quoting = (
            rng.choice(["\n", "\r\n"]),
            rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        )
        writer = csv.writer(file, lineterminator=line_end, quoting=quoting)
        writer.writerows([list(columns), *zip(*columns.values(), strict=True)])


def _write_tsv(columns, path, rng):
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), newline="\n")


def _write_json(columns, path, rng):
    path.write_text(json.dumps(rows_of(columns), ensure_ascii=rng.random() < 0.5))


def _write_json_lines(columns, path, rng):
    lines = [json.dumps(row, ensure_ascii=rng.random() < 0.5) for row in rows_of(columns)]
    path.write_text("\n".join(lines) + "\n")


def _write_parquet(columns, path, rng):
    pa.parquet.write_table(pa.table(columns), path, row_group_size=rng.choice([2, 9]))


def _write_feather(columns, path, rng):
    pa.feather.write_feather(pa.table(columns), path)


# {ending: (types of its columns, function that writes it)}
FORMATS = {
    "csv": (TEXT_TYPES, _write_csv),
    "tsv": (TEXT_TYPES, _write_tsv),
    "json": (JSON_TYPES, _write_json),
    "jsonl": (JSON_TYPES, _write_json_lines),
    "parquet": (ARROW_TYPES, _write_parquet),
    "feather": (ARROW_TYPES, _write_feather),
}


def draw_file(seed, ending, texts, folder, num_written=0):
    """Writes a file of drawn columns; returns its path, and its rows as JSON has them."""
    rng = random.Random(f"{ending} {seed}")
    types, write = FORMATS[ending]
    columns = drawn_columns(rng, types, texts, num_written)
    if ending == "tsv":  # Has no quotes.
        columns = {
            name: [value.replace("\t", " ").replace("\n", " ") for value in values]
            for name, values in columns.items()
        }
    path = folder / f"rows.{ending}"
    write(columns, path, rng)
    return path, [{name: as_json(value) for name, value in row.items()} for row in rows_of(columns)]


def as_json(value):
    """Dates are texts."""
    return str(value) if isinstance(value, datetime.date) else value


def as_field(value):
    """A value as a field of CSV."""
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def read_written(path):
    """Rows of a file that a verb has written, by another reader than ours."""
    ending = path.suffix[1:]
    if ending == "parquet":
        return pa.parquet.read_table(path).to_pylist()
    text = path.read_bytes().decode()
    if ending == "jsonl":
        return [json.loads(line) for line in text.removesuffix("\n").split("\n")]
    quoting = csv.QUOTE_MINIMAL if ending == "csv" else csv.QUOTE_NONE
    separator = "," if ending == "csv" else "\t"
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, quoting=quoting))


def assert_same_rows(found, expected, ending):
    """Fails unless the columns of `expected` are in `found`, with equal values of equal types."""
    assert len(found) == len(expected)
    for row, expected_row in zip(found, expected, strict=True):
        for name, value in expected_row.items():
            if ending in ("csv", "tsv"):
                value = as_field(value)
            if ending == "tsv":
                value = " ".join(value.replace("\r", "\n").replace("\t", "\n").split("\n"))
            there = row[name]
            if ending == "parquet":
                there, value = without_gaps(there), without_gaps(value)
            assert repr(there) == repr(value), (name, there, value)


def without_gaps(value):
    """Without keys whose values are missing, which columns of objects in Parquet have in all."""
    if isinstance(value, dict):
        return {key: without_gaps(item) for key, item in value.items() if item is not None}
    return [without_gaps(item) for item in value] if isinstance(value, list) else value


NO_TYPE, TAKEN = "expected values of one type", "without the columns that are written"


def check_verb(arguments, ending, texts, folder, output_ending, dropped, capfd, draws=6):
    """Runs a verb on drawn files: rows come back in order, or it is refused before it begins.

    Args:
      arguments: the verb and its flags, without those of files.
      ending: format of the input.
      texts: {column: texts}.
      folder: folder for files.
      output_ending: format of the output.
      dropped: columns of the input that the verb does not write, as it has rows for parts of texts.
      capfd: pytest's fixture.
      draws: number of files.
    """
    output, num_back = folder / f"out.{output_ending}", 0
    for seed in range(draws):
        source, expected = draw_file(seed, ending, texts, folder, num_written=seed // 2 % 2)
        status = cli.main([*arguments, f"--input={source}", f"--output={output}"])
        _, error = capfd.readouterr()
        if status:
            assert status == 2 and (TAKEN in error or NO_TYPE in error), error
            assert not output.exists() and "texts: 0" not in error
            continue
        kept = [{name: row[name] for name in row if name not in dropped} for row in expected]
        rows = read_written(output)
        if dropped:  # Several rows, or none, for each of the input.
            groups = itertools.groupby(rows, lambda row: row["text_id"])
            rows = [next(group) for _, group in groups]
            numbers = [int(row["text_id"]) for row in rows]
            kept = [kept[number - 1] for number in numbers]
            assert numbers == sorted(numbers) and len(numbers) > 1
        assert_same_rows(rows, kept, output_ending)
        output.unlink()
        num_back += 1
    assert num_back
