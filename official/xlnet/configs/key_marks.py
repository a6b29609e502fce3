"""Marks in the type of a key, beside its range: what else is known of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class KeyMark:
    """Mark in the type of a key; `Section.marked_keys` lists the keys that have it.

    Attributes:
      former_attribute: name of the class attribute that lists such keys in classes of other
        packages; empty: none.

    Example:
      >>> class MyConfig(TaskConfig):
      ...     threshold: Annotated[float, SHARE, MAY_CHANGE] = 0.5
      >>> MyConfig.marked_keys(MAY_CHANGE)
      ['label_type', 'patience', 'threshold']
    """

    former_attribute: str = ""


# A resumed run may have another value of a key with `MAY_CHANGE`, and not of one with `FIXED`. Of
# all other keys, fine-tuning refuses another value; pre-training takes another value of a key of
# `training`, and refuses it of the other sections.
MAY_CHANGE = KeyMark("may_change")
FIXED = KeyMark()
# Of the section `training`: keys that one of the two kinds of training has no use for.
OF_PRETRAINING = KeyMark()
OF_FINETUNING = KeyMark()
# The value follows from the training data where it is missing.
FROM_DATA = KeyMark("from_data")
# A trained head depends on the key: a run that continues with the head takes the value of its
# model.
OF_HEAD = KeyMark("of_head")
# Outputs follow from the key: the models of an ensemble have the same value.
OF_OUTPUTS = KeyMark("output_keys")


@dataclasses.dataclass(frozen=True)
class NewRuns:
    """Mark: `xlnet finetune` has another default, and model directories without the key mean this.

    Attributes:
      value: the default of new runs.
    """

    value: Any


@dataclasses.dataclass(frozen=True, eq=False)
class UnreadWith:
    """Mark: nothing reads the key where another key of the section has one of some values.

    Attributes:
      key: the other key.
      values: these values of it.

    Example:
      >>> class MyConfig(TrainingConfig):
      ...     cycles: Annotated[int, COUNT, UnreadWith("schedule", ("polynomial",))] = 3
    """

    key: str
    values: Collection[str]
