"""What goes in comes out of the verbs of the project, from and to each format, or is refused."""

import pytest

from tests.helpers.oracles.drawn_rows import FORMATS, check_verb

TEXTS = {"text": ["The cat, sat.", "", ' "so" \u2028', "And then ____", "na\u00efve", "7"]}
BLANKS = {"text": ["The ____ sat.", "____", "so ____"]}
PAIRS = {"good": ["The cat.", "a", ' "so"'], "bad": ["cat The", "a", "\u2603"]}
NORMS = {"context": ["The", "A", ""], "text": ["cat", "", "\u2603"], "norm": ["1", "2.5", "0"]}
TABLES = ("tsv", "csv", "jsonl", "parquet")
# {verb: (its flags, texts, columns of the input that it does not write)}
VERBS = {
    "words": ([], TEXTS, ("text",)),
    "pairs": ([], PAIRS, ()),
    "consistency": (["--num_orders=2"], TEXTS, ()),
    "norms": (["--norms=norm"], NORMS, ()),
    "candidates": (["--candidates=2"], BLANKS, ()),
    "unmask": (["--num_tokens=2", "--steps=1"], TEXTS, ()),
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
