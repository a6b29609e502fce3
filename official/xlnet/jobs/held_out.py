"""A share of the training examples to evaluate on, where a user has no others."""

from __future__ import annotations

import collections
import random
from collections.abc import Sequence

from absl import logging

from official.xlnet.data.examples import Example
from official.xlnet.errors import DataError
from official.xlnet.tasks.data_report import classes_of

_FEW_GROUPS = 5  # A class with fewer groups need not be in both parts.


def held_out(
    examples: Sequence[Example], seed: int, share: float = 0.1
) -> tuple[list[Example], list[Example]]:
    """Splits examples into those to train on and those to evaluate on.

    Each class has its share in both parts. Copies of a text stay together; instead, where there
    are any, examples of one group (`task.group_column`), the documents of a query or the questions
    about a paragraph or passage. The last example of a class stays in training.

    Args:
      examples: all labelled examples.
      seed: random seed of the choice.
      share: share of the groups to evaluate on, above 0 and below 1.

    Returns:
      The training examples, and those to evaluate on, both in their order.

    Raises:
      DataError: none can be held out.
    """
    groups: list[list[int]] = []
    ranges_of_classes = []  # Places in `groups` of each class with enough groups.
    for stratum in strata(examples, seed):
        if len(stratum) >= _FEW_GROUPS:
            ranges_of_classes.append(range(len(groups), len(groups) + len(stratum)))
        groups += stratum
    # At equal distances, which gives each class its share.
    num_preferred = max(1, round(share * len(groups)))
    preferred = [int((k + 0.5) * len(groups) / num_preferred) for k in range(num_preferred)]
    for groups_of_class in ranges_of_classes:
        if not any(index in groups_of_class for index in preferred):
            preferred.append(groups_of_class[0])
    in_training = _num_examples_by_class(examples)
    chosen: set[int] = set()
    for index in preferred:
        counts = _num_examples_by_class([examples[n] for n in groups[index]])
        if all(in_training[name] > count for name, count in counts.items()):
            chosen.update(groups[index])
            in_training -= counts
    if not chosen or len(groups) < 2:
        why = (
            "each is the last of its class" if len(groups) > 1 else "all are copies or of one group"
        )
        raise DataError(
            "dev: expected data to evaluate on, got none, and none of the "
            f"{len(examples)} training examples can be held out, as {why}"
        )
    logging.warning(
        "dev: %d of %d training examples are held out to evaluate on", len(chosen), len(examples)
    )
    train = [example for n, example in enumerate(examples) if n not in chosen]
    dev = [example for n, example in enumerate(examples) if n in chosen]
    return train, dev


def strata(examples: Sequence[Example], seed: int) -> list[list[list[int]]]:
    """Groups examples that stay together, and sorts the groups by class.

    Args:
      examples: all labelled examples.
      seed: random seed of the order of groups.

    Returns:
      For each class, the groups whose rarest class it is, in random order; a group is a list of
      indices of its examples.
    """
    examples_by_class = _num_examples_by_class(examples)
    groups = collections.defaultdict(list)
    for index, example in enumerate(examples):
        groups[_group_key(example)].append(index)
    shuffled = random.Random(seed).sample(list(groups.values()), len(groups))
    groups_by_class = collections.defaultdict(list)
    for group in shuffled:
        classes = _num_examples_by_class([examples[index] for index in group])
        rarest = min(classes, key=lambda name: (examples_by_class[name], name), default="")
        groups_by_class[rarest].append(group)
    return [groups_by_class[name] for name in sorted(groups_by_class)]


def _num_examples_by_class(examples: Sequence[Example]) -> collections.Counter[str]:
    """Number of examples with each class; an example may have several."""
    counts: collections.Counter[str] = collections.Counter()
    for example in examples:
        counts.update(set(classes_of(example)))
    return counts


def _group_key(example: Example) -> tuple[str, object]:
    """Key of examples that stay together: query, paragraph, group, or else the same text."""
    for name in ("query_id", "context", "passage", "group", "texts", "words"):
        value = getattr(example, name, "")
        if value:
            return name, value
    return "id", id(example)
