"""A share of the training examples to evaluate on, where a user has no others."""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator, Sequence

from absl import logging

from official.xlnet.data.examples import Example
from official.xlnet.errors import DataError

_FEW = 5  # A class with fewer groups need not be in both parts.


def held_out(
    examples: Sequence[Example], seed: int, share: float = 0.1
) -> tuple[list[Example], list[Example]]:
    """Splits examples into those to train on and those to evaluate on.

    Each class has its share in both parts. Copies of a text stay together, and so do examples of
    one group (`task.group_column`), the documents of a query and the questions about a paragraph.
    The last example of a class stays in training.

    Args:
      examples: all labelled examples.
      seed: random seed of the choice.
      share: share of the groups to evaluate on, above 0 and below 1.

    Returns:
      The training examples, and those to evaluate on, both in their order.

    Raises:
      DataError: none can be held out.
    """
    groups = _groups(examples)
    classes = {
        key: collections.Counter(c for n in members for c in _classes(examples[n]))
        for key, members in groups.items()
    }
    left = sum(classes.values(), collections.Counter())
    strata = collections.defaultdict(list)
    for key in random.Random(seed).sample(list(groups), len(groups)):
        rarest = min(classes[key], key=lambda name: (left[name], name), default="")
        strata[rarest].append(key)
    in_order = [key for stratum in sorted(strata) for key in strata[stratum]]
    wanted = max(1, round(share * len(groups)))
    # At equal distances, which gives each class its share.
    preferred = [in_order[int((k + 0.5) * len(groups) / wanted)] for k in range(wanted)]
    for members in strata.values():
        if len(members) >= _FEW and set(members).isdisjoint(preferred):
            preferred.append(members[0])
    chosen: set[int] = set()
    for key in preferred:
        if all(left[name] > number for name, number in classes[key].items()):
            chosen.update(groups[key])
            left -= classes[key]
    if not chosen or len(groups) < 2:
        raise DataError(
            "dev: expected data to evaluate on, got none, and none of the "
            f"{len(examples)} training examples can be held out"
        )
    logging.warning(
        "dev: %d of %d training examples are held out to evaluate on", len(chosen), len(examples)
    )
    train = [example for n, example in enumerate(examples) if n not in chosen]
    return train, [example for n, example in enumerate(examples) if n in chosen]


def _groups(examples: Sequence[Example]) -> dict[object, list[int]]:
    """Indices of the examples that share a key with one another, directly or through others."""
    parent: dict[object, object] = {}

    def root(key: object) -> object:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    keys = [list(_keys(example)) for example in examples]
    for first, *others in keys:
        for other in others:
            parent[root(other)] = root(first)
    groups = collections.defaultdict(list)
    for number, (first, *_) in enumerate(keys):
        groups[root(first)].append(number)
    return groups


def _keys(example: Example) -> Iterator[tuple[str, object]]:
    """What keeps examples together: a query, a paragraph, a group, or the same text."""
    for name in ("query_id", "context", "group", "texts", "words"):
        if value := getattr(example, name, None):
            yield name, value
    yield "self", id(example)


def _classes(example: Example) -> tuple[str, ...]:
    """The names of the classes of an example."""
    label = getattr(example, "label", None) or getattr(example, "tags", None)
    if isinstance(label, str):
        return (label,)
    return tuple(set(label)) if isinstance(label, tuple) else ()
