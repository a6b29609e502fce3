"""Columns of the input come back unchanged, or a verb refuses them before it begins."""

import json

import pytest

from tests.helpers.oracles.drawn_rows import FORMATS, check_verb
from tests.helpers.oracles.written_columns import check_rows_come_back
from tests.helpers.wrong_input import run

TEXTS = [{"text": "The cat sat."}, {"text": "And then ____"}]
BLANKS = [{"text": "The ____ sat."}, {"text": "And then ____"}]
NORMS = [
    {"context": "The", "text": "cat", "norm": 1},
    {"context": "A", "text": "\u2603", "norm": 2},
]
# A column `text` beside the two texts is theirs.
PAIRS = [{"good": "The", "bad": "a", "text": "x"}, {"good": "\u2603", "bad": "a", "text": "y"}]


@pytest.mark.parametrize(
    ("verb", "flags", "rows", "dropped"),
    [
        ("words", [], TEXTS, ("text",)),
        ("consistency", ["--order=random", "--num_orders=2"], TEXTS, ()),
        ("norms", ["--norms=norm"], NORMS, ()),
        ("pairs", [], PAIRS, ()),
        ("candidates", ["--candidates=2"], BLANKS, ()),
        ("unmask", ["--num_tokens=2", "--steps=2"], TEXTS, ()),
        ("score_steps", ["--steps=2"], TEXTS, ()),
        ("mutual_information", [], TEXTS, ("text",)),
    ],
)
def test_rows_come_back_whole(verb, flags, rows, dropped, capfd, world, tmp_path):
    flags = [f"--model={world.pretrained}", *flags]
    assert check_rows_come_back(verb, capfd, tmp_path, *flags, rows=rows, dropped=dropped)


def test_two_columns_for_one_are_refused(capfd, world, tmp_path):
    """BLiMP's name beside ours, with another text."""
    row = {"good": "a", "sentence_good": "b", "bad": "c"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    outcome = run(capfd, "pairs", f"--model={world.pretrained}", f"--input={tmp_path}/a.jsonl")
    assert outcome.status == 2
    assert "row 1: expected one column of 'sentence_good' and 'good', got both" in outcome.err


DRAWN_TEXTS = {"text": ["The cat, sat.", "", ' "so" \u2028', "And then ____", "na\u00efve", "7"]}
DRAWN_BLANKS = {"text": ["The ____ sat.", "____", "so ____"]}
DRAWN_PAIRS = {"good": ["The cat.", "a", ' "so"'], "bad": ["cat The", "a", "\u2603"]}
DRAWN_NORMS = {
    "context": ["The", "A", ""],
    "text": ["cat", "", "\u2603"],
    "norm": ["1", "2.5", "0"],
}
TABLES = ("tsv", "csv", "jsonl", "parquet")
# {verb: (its flags, texts, columns of the input that it does not write)}
VERBS = {
    "words": ([], DRAWN_TEXTS, ("text",)),
    "pairs": ([], DRAWN_PAIRS, ()),
    "consistency": (["--num_orders=2"], DRAWN_TEXTS, ()),
    "norms": (["--norms=norm"], DRAWN_NORMS, ()),
    "candidates": (["--candidates=2"], DRAWN_BLANKS, ()),
    "unmask": (["--num_tokens=2", "--steps=1"], DRAWN_TEXTS, ()),
}
OUTPUTS = [(verb, ending) for verb in ("words", "pairs") for ending in TABLES]
OUTPUTS += [(verb, "jsonl") for verb in VERBS if verb not in ("words", "pairs")]


@pytest.mark.nightly
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(("verb", "output_ending"), OUTPUTS)
@pytest.mark.parametrize("ending", FORMATS)
def test_rows_of_verbs_come_back(ending, verb, output_ending, world, capfd, tmp_path):
    flags, texts, dropped = VERBS[verb]
    arguments = [verb, f"--model={world.pretrained}", *flags]
    check_verb(arguments, ending, texts, tmp_path, output_ending, dropped, capfd, draws=4)
