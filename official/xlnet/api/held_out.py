"""A tenth of the training examples to evaluate on, where a user has no other."""

from __future__ import annotations

import collections
import random
from collections.abc import Sequence

from absl import logging

from official.xlnet.data.examples import Example
from official.xlnet.errors import DataError

_SHARE = 0.1


def held_out(examples: Sequence[Example], seed: int) -> tuple[list[Example], list[Example]]:
    """Splits examples into those to train on and those to evaluate on.

    The documents of a query stay together, and so do the questions about a paragraph. The last
    example of a class stays in training.

    Args:
      examples: all labelled examples.
      seed: random seed of the choice.

    Returns:
      The training examples, and a tenth to evaluate on, both in their order.

    Raises:
      DataError: none can be held out.
    """
    groups = collections.defaultdict(list)
    for number, example in enumerate(examples):
        groups[_group(example, number)].append(number)
    wanted = max(1, round(_SHARE * len(groups)))
    left = collections.Counter(name for example in examples for name in _classes(example))
    chosen: set[int] = set()
    for key in random.Random(seed).sample(list(groups), len(groups)):
        classes = collections.Counter(c for n in groups[key] for c in _classes(examples[n]))
        if wanted and all(left[name] > number for name, number in classes.items()):
            chosen.update(groups[key])
            left -= classes
            wanted -= 1
    if not chosen or len(groups) < 2:
        raise DataError(
            "dev: expected data to evaluate on, got none, and none of the "
            f"{len(examples)} training examples can be held out"
        )
    logging.warning(
        "dev: none given: %d of %d training examples are held out to evaluate on",
        len(chosen),
        len(examples),
    )
    train = [example for n, example in enumerate(examples) if n not in chosen]
    return train, [example for n, example in enumerate(examples) if n in chosen]


def _group(example: Example, number: int) -> object:
    """What keeps examples together: a query, a paragraph, or nothing."""
    return getattr(example, "query_id", None) or getattr(example, "context", None) or number


def _classes(example: Example) -> tuple[str, ...]:
    """The names of the classes of an example."""
    label = getattr(example, "label", None) or getattr(example, "tags", None)
    if isinstance(label, str):
        return (label,)
    return tuple(set(label)) if isinstance(label, tuple) else ()
