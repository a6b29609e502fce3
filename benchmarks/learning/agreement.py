"""Pairs of sentences on agreement, with words of docstrings, for the model of `make demo`.

    python -m benchmarks.learning.agreement --output=demo_output/pairs.tsv
    xlnet pairs --model=demo_output/model --input=demo_output/pairs.tsv --cluster=noun \
          --output=demo_output/differences.csv

Ten nouns in both numbers and three verbs give 60 pairs of each kind: the verb follows its noun;
another noun of the other number stands between the two; a determiner precedes the noun. The last
line is JSON: the number of pairs.
"""

from __future__ import annotations

import json
import pathlib

from benchmarks.harness.command_line import parse, required

_NOUNS = (
    "array",
    "column",
    "element",
    "feature",
    "function",
    "method",
    "object",
    "parameter",
    "row",
    "value",
)
_VERBS = ("use", "return", "ignore")


def main() -> None:
    flags = parse(__doc__, output=required("table to write (TSV)"))
    rows = [("UID", "noun", "good", "bad"), *agreement_pairs()]
    text = "".join("\t".join(row) + "\n" for row in rows)
    pathlib.Path(flags.output).write_text(text, encoding="utf-8")
    print(json.dumps({"pairs": len(rows) - 1}))


def agreement_pairs() -> list[tuple[str, str, str, str]]:
    """Returns the kind, the noun, the correct and the wrong sentence of each pair."""
    pairs = []
    for noun, other in zip(_NOUNS, (*_NOUNS[1:], _NOUNS[0]), strict=True):
        for verb in _VERBS:
            done = verb.rstrip("e") + "ed"
            for word, near, good, bad, this, these in (
                (noun, f"{other}s", "is", "are", "this", "these"),
                (f"{noun}s", other, "are", "is", "these", "this"),
            ):
                phrase = f"The {word} of the {near}"
                start = verb.title()
                pairs += [
                    ("verb", noun, f"The {word} {good} {done}.", f"The {word} {bad} {done}."),
                    (
                        "verb, other noun between",
                        noun,
                        f"{phrase} {good} {done}.",
                        f"{phrase} {bad} {done}.",
                    ),
                    ("determiner", noun, f"{start} {this} {word}.", f"{start} {these} {word}."),
                ]
    return pairs


if __name__ == "__main__":
    main()
