"""What goes in comes out: columns of all types and names, from and to each format, or refused."""

import numpy as np
import pandas
import pytest

from data_prep.tasks.text_rows import read_text_rows
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import vector_file, write_rows
from official.xlnet.errors import DataError
from tests.helpers.oracles.drawn_rows import (
    FORMATS,
    assert_same_rows,
    check_verb,
    draw_file,
    read_written,
)

TEXTS = {"text": ["The cat, sat.", "", ' "so" \u2028', "And then ____", "naïve", "7"]}
WIDTH = 3


def write_lines(path, rows):
    write_json_lines(path, rows)


def write_vectors(path, rows):
    with vector_file(path, rows, WIDTH) as write:
        for row in rows:
            write([row], np.ones([1, WIDTH], np.float32))


WRITERS = {
    "lines.jsonl": write_lines,
    "vectors.parquet": write_vectors,
    **{f"table.{ending}": write_rows for ending in ("tsv", "csv", "jsonl", "parquet")},
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("ending", FORMATS)
def test_rows_that_are_read_and_written_are_the_same(ending, writer, tmp_path):
    output = tmp_path / writer
    num_written = 0
    for seed in range(12):
        path, expected = draw_file(seed, ending, TEXTS, tmp_path)
        rows = read_text_rows([], str(path))
        assert_same_rows(rows, expected, "jsonl")
        try:
            WRITERS[writer](str(output), rows)
        except DataError as error:
            assert output.suffix == ".parquet" and "expected values of one type" in str(error)
            assert not output.exists()
            continue
        assert_same_rows(read_written(output), expected, output.suffix[1:])
        output.unlink()
        num_written += 1
    assert num_written >= (3 if output.suffix == ".parquet" else 12)


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n", "\u2028", "\x85"])
def test_line_ends_within_fields_of_csv_come_back(line_end, tmp_path):
    rows = [{"text": f"a{line_end}b", "id": "1"}, {"text": line_end, "id": "2"}]
    path = tmp_path / "rows.csv"
    write_rows(str(path), rows)
    assert path.read_bytes().startswith(b"text,id\n")
    assert read_written(path) == rows
    assert pandas.read_csv(path, dtype=str).to_dict("records") == rows
    assert read_text_rows([], str(path)) == rows


# {verb: (its flags, the ending of its output, columns of the input that it does not write)}
VERBS = {
    "score": (["--order=random", "--num_orders=2"], "jsonl", ()),
    "generate": (["--num_tokens=1"], "jsonl", ()),
    "embed": ([], "jsonl", ()),
    "embed to Parquet": ([], "parquet", ()),
    "embed --pooling=words": ([], "jsonl", ("text",)),
}


@pytest.mark.nightly
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("ending", FORMATS)
def test_rows_of_verbs_come_back(ending, verb, world, capfd, tmp_path):
    flags, output_ending, dropped = VERBS[verb]
    arguments = [*verb.removesuffix(" to Parquet").split(), f"--model={world.pretrained}", *flags]
    check_verb(arguments, ending, TEXTS, tmp_path, output_ending, dropped, capfd)
