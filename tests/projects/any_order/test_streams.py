"""Verbs of the project on standard input: a wrong row gets an error, the next ones are answered."""

import json
import os

import pytest

from official.xlnet import cli
from tests.helpers.wrong_input import refused, run

LINES = [
    b'{"text": "The ____ sat.", "id": "a"}',
    b"{",
    b'{"id": 7}',
    b'{"text": "two ____ of ____ them", "id": "b", "context": 3}',
    b'{"text": "The ____ sat.", "id": "a"}',
]
VERBS = {  # {verb: (its flags, numbers of the lines that are wrong)}
    "words": ([], [1, 2, 3]),
    "mutual_information": ([], [1, 2, 3]),
    "consistency": (["--num_orders=2"], [1, 2, 3]),
    "unmask": (["--steps=1", "--temperature=0"], [1, 2]),
    "candidates": (["--choices=cat,dog"], [1, 2, 3]),
}


@pytest.fixture
def standard_input():
    """A function that makes bytes the standard input."""
    kept = os.dup(0)

    def give(data):
        read_end, write_end = os.pipe()
        os.write(write_end, data)
        os.close(write_end)
        os.dup2(read_end, 0)
        os.close(read_end)

    yield give
    os.dup2(kept, 0)
    os.close(kept)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("verb", VERBS)
def test_wrong_rows_get_errors(verb, world, standard_input, capfd):
    flags, wrong = VERBS[verb]
    standard_input(b"\n".join(LINES))
    has_parts = verb in ("words", "mutual_information")  # A row for each of them.
    output = [] if has_parts else ["--output=-"]
    assert cli.main([verb, f"--model={world.pretrained}", "--input=-", *flags, *output]) == 0
    out, error = capfd.readouterr()
    *rows, result = [json.loads(line) for line in out.splitlines()]
    if output:
        rows, result = [*rows, result], json.loads(error.splitlines()[-1])
    if has_parts:
        texts = [[row for row in rows if row["text_id"] == n] for n in range(1, 6)]
        assert [len(text) == 1 and "error" in text[0] for text in texts] == [
            n in wrong for n in range(5)
        ]
        first, last = ([row | {"text_id": 0} for row in texts[n]] for n in (0, 4))
        assert str(first) == str(last) and len(first) >= 2
    else:
        assert [n for n, row in enumerate(rows) if "error" in row] == wrong
        assert [row.get("id") for row in rows] == ["a", None, 7, "b", "a"]
    assert result["errors"] == len(wrong)


def test_norms_are_of_all_rows(world, standard_input, capfd):
    standard_input(b'{"text": "a", "context": "b", "norm": 1}\n{"norm": 1}\n')
    flags = [f"--model={world.pretrained}", "--norms=norm", "--input=-"]
    assert "standard input, row 2: expected a string" in refused(run(capfd, "norms", *flags))
