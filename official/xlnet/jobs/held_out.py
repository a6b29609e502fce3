"""A share of the training examples to evaluate on, where a user has no others, and folds."""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Iterator, Sequence

from absl import logging

from official.xlnet.data.examples import Example
from official.xlnet.errors import require_data
from official.xlnet.tasks.data_report import classes_of

_FEW = 5  # A class with fewer groups need not be in both parts.


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
    strata = _strata(examples, seed)
    groups = [group for members in strata for group in members]
    wanted = max(1, round(share * len(groups)))
    # At equal distances, which gives each class its share.
    preferred = [int((k + 0.5) * len(groups) / wanted) for k in range(wanted)]
    first = 0
    for members in strata:
        if len(members) >= _FEW and not any(first <= n < first + len(members) for n in preferred):
            preferred.append(first)
        first += len(members)
    left = collections.Counter(name for example in examples for name in set(classes_of(example)))
    chosen: set[int] = set()
    for number in preferred:
        classes = (classes_of(examples[n]) for n in groups[number])
        counts = collections.Counter(itertools.chain(*map(set, classes)))
        if all(left[name] > count for name, count in counts.items()):
            chosen.update(groups[number])
            left -= counts
    require_data(
        bool(chosen) and len(groups) >= 2,
        "dev",
        "data to evaluate on",
        f"none, and none of the {len(examples)} training examples can be held out",
    )
    logging.warning(
        "dev: %d of %d training examples are held out to evaluate on", len(chosen), len(examples)
    )
    train = [example for n, example in enumerate(examples) if n not in chosen]
    return train, [example for n, example in enumerate(examples) if n in chosen]


def folds(
    examples: Sequence[Example], number: int, seed: int
) -> Iterator[tuple[list[Example], list[Example]]]:
    """Yields the training and held-out examples of each fold of a cross-validation.

    Folds keep together what `held_out` does, and each has its share of every class.

    Args:
      examples: all labelled examples.
      number: number of folds, at least 2.
      seed: random seed of the partition.

    Raises:
      DataError: there are fewer groups than folds.
    """
    groups = [group for members in _strata(examples, seed) for group in members]
    require_data(
        len(groups) >= number, "folds", f"at most {len(groups)}, the number of groups", number
    )
    for k in range(number):
        chosen = {n for group in groups[k::number] for n in group}
        yield (
            [example for n, example in enumerate(examples) if n not in chosen],
            [example for n, example in enumerate(examples) if n in chosen],
        )


def _strata(examples: Sequence[Example], seed: int) -> list[list[list[int]]]:
    """Indices of the examples of each group, in random order, by the rarest class of the group."""
    numbers = collections.Counter(name for example in examples for name in set(classes_of(example)))
    strata, groups = collections.defaultdict(list), collections.defaultdict(list)
    for number, example in enumerate(examples):
        groups[_group(example)].append(number)
    for group in random.Random(seed).sample(list(groups.values()), len(groups)):
        classes = {name for n in group for name in set(classes_of(examples[n]))}
        strata[min(classes, key=lambda name: (numbers[name], name), default="")].append(group)
    return [strata[name] for name in sorted(strata)]


def _group(example: Example) -> tuple[str, object]:
    """Key of examples that stay together: query, paragraph, group, or else the same text."""
    for name in ("query_id", "context", "passage", "group", "texts", "words"):
        if any(value := getattr(example, name, "")):
            return name, value
    return "id", id(example)
