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
_FEW_EXAMPLES = 30  # With 30, one is 3% of an accuracy, and its 95% interval is up to ±18%.
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
      numbers in each, `texts` with counts of texts that reading changes, `lengths` in tokens and
      `counts`.
    """
    train_texts = [text_of(example) for example in train]
    distinct_texts = set(train_texts)
    known_texts = distinct_texts - {""}
    num_in_train = sum(text_of(example) in known_texts for example in dev)
    num_lost = 0
    if not task.tokenizer.keep_whitespace:
        num_lost = sum(bool(_LOST.search(text)) for text in known_texts)
    cleaned = {
        hash(task.tokenizer.clean(text)) for text in known_texts
    }  # Hashes, as texts may be long.
    train_classes, dev_classes = _class_counts(train), _class_counts(dev)
    classes = {}
    for name, _ in (train_classes + dev_classes).most_common():
        classes[name] = [train_classes[name], dev_classes[name]]
    median, percentile_99 = np.percentile(lengths, [50, 99], method="higher").tolist()
    return {
        "columns": list(task.config.task.text_columns),
        "train": {"examples": len(train), "copies": len(train_texts) - len(distinct_texts)},
        "dev": {"examples": len(dev), "also_in_train": num_in_train},
        "classes": classes,
        "f1_is_of": task.positive_class,
        "texts": {
            "with_lost_white_space": num_lost,
            "equal_after_cleaning": len(known_texts) - len(cleaned),
        },
        "lengths": {
            "median": median,
            "99%": percentile_99,
            "longest": int(np.max(lengths)),
            "max_length": task.config.task.max_length,
        },
        "counts": dict(counts),
    }


def _class_counts(examples: Sequence[Example]) -> collections.Counter[str]:
    counts: collections.Counter[str] = collections.Counter()
    for example in examples:
        counts.update(classes_of(example))
    return counts


def report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a report that a person reads before training, warnings included.

    Args:
      report: as `data_report` returns it.
    """
    train, dev = report["train"], report["dev"]
    line = f"train       {train['examples']:,} examples"
    if train["copies"]:
        line += f", {train['copies']:,} of them copies"
    yield line
    line = f"dev         {dev['examples']:,} examples"
    if dev["also_in_train"]:
        line += f"; {dev['also_in_train']:,} of its texts are in train"
    if dev["examples"] < _FEW_EXAMPLES:
        line += "; so few that metrics vary by chance"
    yield line
    if report["classes"]:
        yield _classes_line(report["classes"], report["f1_is_of"])
        yield from _class_warnings(report["classes"])
    lengths = report["lengths"]
    line = (
        f"lengths     median {lengths['median']} tokens, 99% {lengths['99%']}, "
        f"longest {lengths['longest']}"
    )
    num_truncated = report["counts"].get("train_truncated", 0)
    if num_truncated:
        line += f"; {num_truncated:,} cut at {lengths['max_length']}"
    yield line
    texts = report["texts"]
    if texts["with_lost_white_space"]:
        yield (
            f"texts       {texts['with_lost_white_space']:,} have line breaks, tabs or runs of "
            "spaces, each read as one space; a vocabulary of `xlnet vocab --keep_whitespace` "
            "keeps them"
        )
    if texts["equal_after_cleaning"]:
        yield (
            f"texts       {texts['equal_after_cleaning']:,} are equal to another one once they are "
            "cleaned"
        )


def _classes_line(classes: Mapping[str, Sequence[int]], positive_class: str | None) -> str:
    """The most frequent classes, with their numbers of training examples."""
    counts = [f"{name} {num_train:,}" for name, (num_train, _) in classes.items()]
    line = f"classes     {', '.join(counts[:_MOST_CLASSES])}"
    if len(counts) > _MOST_CLASSES:
        line += f", … ({len(counts)} classes)"
    if positive_class:
        line += f"; f1 refers to {positive_class}"
    return line


def _class_warnings(classes: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yields warnings about the classes."""
    missing = [name for name, (_, num_dev) in classes.items() if not num_dev]
    if missing:
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
    texts: list[str] = []
    for name in ("texts", "words", "choices", "question", "context", "query", "document"):
        value = getattr(example, name, ())
        texts += [value] if isinstance(value, str) else value
    return "\0".join(texts)


def classes_of(example: Example) -> tuple[str, ...]:
    """Returns the names of the classes of an example; tags as often as they occur; no numbers."""
    label = getattr(example, "label", None) or getattr(example, "tags", None)
    names = label if isinstance(label, tuple) else (label,)
    return tuple(name for name in names if isinstance(name, str))
