"""Report on the examples of fine-tuning: lines before the first step, and `data.json`."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.data.examples import Example
from official.xlnet.tasks.labels import meaning
from official.xlnet.tasks.task import Task

DATA_FILE = "data.json"
_MOST_CLASSES = 12  # Shown in a line.
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", re.IGNORECASE)
_LOST = re.compile(r"[^\s\0](?:[^\S ]|  )\s*[^\s\0]")  # White space that cleaning changes.
_MANY = 20  # Classes that are numbers, above which they are probably amounts.


def data_report(
    task: Task,
    train: Sequence[Example],
    dev: Sequence[Example],
    lengths: Sequence[int],
    counts: Mapping[str, float],
) -> dict[str, Any]:
    """Returns statistics of the examples of a run.

    Args:
      task: the task, complete.
      train: training examples.
      dev: examples for evaluation.
      lengths: numbers of tokens of the training inputs, before they are cut.
      counts: counts of truncated and skipped examples, with the name of the split in front.

    Returns:
      A tree for JSON: `train` and `dev` with numbers of examples and copies, `classes` with their
      numbers in each, `texts` with what reading them loses, `lengths` in tokens and `counts`.
    """
    known = set(filter(None, map(text_of, train)))
    texts = {split: list(map(text_of, each)) for split, each in (("train", train), ("dev", dev))}
    of_each = {
        split: collections.Counter(name for example in each for name in classes_of(example))
        for split, each in (("train", train), ("dev", dev))
    }
    cleaned = {hash(task.tokenizer.clean(text)) for text in known}  # Of long texts, too.
    median, most = np.percentile(lengths, [50, 99], method="higher").tolist()
    lost = () if task.tokenizer.keep_whitespace else filter(_LOST.search, known)
    labels = task.labels if task.config.task.name == "classification" else ()
    return {
        "columns": list(task.config.task.text_columns),
        "train": {"examples": len(train), "copies": len(texts["train"]) - len(set(texts["train"]))},
        "dev": {"examples": len(dev), "also_in_train": sum(t in known for t in texts["dev"])},
        "classes": {
            name: [of_each["train"][name], of_each["dev"][name]]
            for name, _ in (of_each["train"] + of_each["dev"]).most_common()
        },
        "f1_is_of": labels[1] if len(labels) == 2 else None,
        "texts": {
            "with_lost_white_space": len([*lost]),
            "equal_after_cleaning": len(known) - len(cleaned),
        },
        "lengths": {
            "median": median,
            "99%": most,
            "longest": int(np.max(lengths)),
            "max_length": task.config.task.max_length,
        },
        "counts": dict(counts),
    }


def report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a report that a person reads before training, warnings included.

    Args:
      report: as `data_report` returns it.
    """
    train, dev, texts = report["train"], report["dev"], report["texts"]
    copies = f", {train['copies']:,} of them copies" if train["copies"] else ""
    yield f"train       {train['examples']:,} examples{copies}"
    also = f"; {dev['also_in_train']:,} of its texts are in train" if dev["also_in_train"] else ""
    yield f"dev         {dev['examples']:,} examples{also}"
    classes = report["classes"]
    if classes:
        shown = [f"{name} {number:,}" for name, (number, _) in classes.items()]
        more = f", … ({len(shown)} classes)" if len(shown) > _MOST_CLASSES else ""
        positive = f"; f1 refers to {report['f1_is_of']}" if report["f1_is_of"] else ""
        yield f"classes     {', '.join(shown[:_MOST_CLASSES])}{more}{positive}"
        yield from _about_classes(classes)
    lengths = report["lengths"]
    cut = report["counts"].get("train_truncated", 0)
    of_all = f"; {cut:,} cut at {lengths['max_length']}" if cut else ""
    yield (
        f"lengths     median {lengths['median']} tokens, 99% {lengths['99%']}, longest "
        f"{lengths['longest']}{of_all}"
    )
    for key, what in (
        (
            "with_lost_white_space",
            "have line breaks, tabs or runs of spaces, each read as one space; a vocabulary of "
            "`xlnet vocab --keep_whitespace` keeps them",
        ),
        ("equal_after_cleaning", "are equal to another one once they are cleaned"),
    ):
        if texts[key]:
            yield f"texts       {texts[key]:,} {what}"


def _about_classes(classes: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yields warnings about the classes."""
    if missing := [name for name, (_, in_dev) in classes.items() if not in_dev]:
        yield f"warning     dev has no {', '.join(missing[:_MOST_CLASSES])}"
    spellings = collections.defaultdict(list)
    for name in classes:
        spellings[meaning(name).casefold()].append(name)
    for names in spellings.values():
        if len(names) > 1:
            yield f"warning     {' and '.join(map(repr, names))} are different classes"
    if len(classes) > _MANY and all(map(_NUMBER.fullmatch, classes)):
        yield "warning     the classes are numbers; --task=regression predicts amounts"


def text_of(example: Example) -> str:
    """Returns the texts of an example as one string, with zero characters between them."""
    found: list[str] = []
    for name in ("texts", "words", "choices", "question", "context", "query", "document"):
        value = getattr(example, name, ())
        found += [value] if isinstance(value, str) else value
    return "\0".join(found)


def classes_of(example: Example) -> tuple[str, ...]:
    """The names of the classes of an example; of tags, as often as they occur; not numbers."""
    label = getattr(example, "label", None) or getattr(example, "tags", None)
    names = label if isinstance(label, tuple) else (label,)
    return tuple(name for name in names if isinstance(name, str))
