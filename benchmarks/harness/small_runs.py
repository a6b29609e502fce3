"""Numbers of a command at a small size, which tell whether today's code gives a table's results.

Code that is written in another way gives the same numbers; a change of training or reading gives
others. So the end of a table has the numbers of its command with the flags of `SMALL`, on words
drawn here, and `benchmarks.learning.stale` computes them again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
_EXPERIMENT = re.compile(r"python -m (benchmarks\.learning[\w.]*)")
# {experiment: flags in the place of those of its command; {folder} has `text.txt`}.
SMALL = {
    "benchmarks.learning": "--text={folder}/text.txt --seeds=1 --steps=6",
    "benchmarks.learning.ablation": "--text={folder}/text.txt --seeds=1"
    " --set=training.num_steps=8 --set=training.warmup_steps=2",
    "benchmarks.learning.any_order": "--text={folder}/text.txt --seeds=1 --steps=20 --texts=30"
    " --rates=1e-2 --equal=compute",
    "benchmarks.learning.attention_length": "--text={folder}/text.txt --tokens=64"
    " --set=training.num_steps=8 --set=training.warmup_steps=2",
    "benchmarks.learning.cues": "--seeds=1 --steps=10",
    "benchmarks.learning.minimal_pairs": "--model={folder}/model --pairs={folder}/pairs.tsv",
    "benchmarks.learning.time_to_quality": "--text=small={folder}/text.txt --seeds=0 --steps=8"
    " --hf_steps= --tfm_steps= --results={folder}/results.json --document=",
}
# {experiment: commands that make what it reads}.
_BEFORE = {
    "benchmarks.learning.minimal_pairs": (
        "vocab --input={folder}/text.txt --output={folder}/vocab --size=1000",
        "prepare --input={folder}/text.txt --vocab={folder}/vocab --config=configs/tiny.yaml"
        " --output={folder}/data",
        "pretrain --config=configs/tiny.yaml --data={folder}/data --output={folder}/model"
        " --steps=8",
    )
}
_NOT_IN_SMALL = ("--output", "--document", "--picture", "--table")
# Other threads and kernels give numbers that differ by 5e-8; twice the weight decay, by 9e-6.
_TOLERANCE = 2e-6
_ROUNDING = 1e-4  # Of numbers that an experiment rounds.
_CODE = ("benchmarks/harness", "benchmarks/learning", "data_prep", "official")


@functools.cache
def small_numbers(command: str) -> tuple[float, ...]:
    """Runs a command at a small size, and returns the sum of the numbers of each of its rows.

    Args:
      command: of an experiment in `SMALL`, as one line.

    Raises:
      CalledProcessError: the command fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        text = small_text()
        pathlib.Path(folder, "text.txt").write_text(text, encoding="utf-8")
        pathlib.Path(folder, "pairs.tsv").write_text(_small_pairs(text), encoding="utf-8")
        *before, words = small_commands(command, folder)
        for words_before in before:
            subprocess.run(words_before, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        done = subprocess.run(words, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    rows = json.loads(done.stdout.splitlines()[-1])
    return tuple(sum(_numbers_of(row)) for row in rows.values())


def small_commands(command: str, folder: str) -> list[list[str]]:
    """Returns the words of a command at a small size, which writes no page, and of those before it.

    Args:
      command: of an experiment in `SMALL`.
      folder: of the text and the pairs, and of what the commands write.
    """
    match = _EXPERIMENT.search(command)
    assert match
    small = SMALL[match[1]].format(folder=folder).split()
    replaced = {word.partition("=")[0] for word in small} - {"--set"}
    flags = [word for word in command[match.end() :].split() if word.startswith("--")]
    kept = [x for x in flags if x.partition("=")[0] not in replaced.union(_NOT_IN_SMALL)]
    commands = [
        [sys.executable, "-m", "official.xlnet.cli", *before.format(folder=folder).split()]
        for before in _BEFORE.get(match[1], ())
    ]
    output = f"--output={folder}/output"
    return [*commands, [sys.executable, "-m", match[1], *kept, *small, output]]


def are_close(numbers: tuple[float, ...], others: tuple[float, ...]) -> bool:
    """Whether the numbers of two calls of `small_numbers` are those of one computation."""
    return len(numbers) == len(others) and all(
        abs(number - other) <= _TOLERANCE * abs(other) + _ROUNDING
        for number, other in zip(numbers, others, strict=True)
    )


def small_text() -> str:
    """Returns forty documents of sentences of made-up words, of which a few are frequent."""
    random_ = random.Random(0)
    ends = ("", "n", "r", "s", "l")
    syllables = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in ends]
    words = ["".join(random_.choices(syllables, k=1 + n % 4)) for n in range(12000)]
    shares = [1 / (10 + n) for n in range(len(words))]

    def sentence() -> str:
        return " ".join(random_.choices(words, shares, k=random_.randint(8, 16))).capitalize() + "."

    def document() -> str:
        return "\n".join(" ".join(sentence() for _ in range(5)) for _ in range(25))

    return "\n\n".join(document() for _ in range(40))


def _small_pairs(text: str) -> str:
    """Twelve pairs of sentences of a text, of two kinds and three nouns."""
    sentences = [x.strip(".") + "." for line in text.split("\n")[:6] for x in line.split(". ")]
    pairs = zip(sentences[::2], sentences[1::2], strict=True)
    rows = [(f"kind {n % 2}", f"noun {n % 3}", *pair) for n, pair in enumerate(pairs)]
    return "".join("\t".join(row) + "\n" for row in [("UID", "noun", "good", "bad"), *rows])


def code_digest() -> str:
    """Returns `code-DIGEST` of the Python files that an experiment can execute."""
    paths = sorted(path for folder in _CODE for path in ROOT.joinpath(folder).rglob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths))
    return f"code-{digest.hexdigest()[:8]}"


def _numbers_of(tree: Any) -> Iterator[float]:
    """Numbers of a JSON tree; null is left out."""
    if isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _numbers_of(value)
    elif tree is not None:
        yield float(tree)
