"""Task examples before tokenization.

They are created by the readers of tasks, and encoded by the tasks. The label is None if the file is
unlabelled, as for prediction.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from official.xlnet.errors import require_data

Label = str | float | tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
    """Base class of examples; subclasses add their fields.

    Attributes:
      id: identifies the example in predictions.
      label_field: the field that is None, or False, in an example without a label.
    """

    label_field: ClassVar[str] = "label"

    id: str

    @property
    def is_labelled(self) -> bool:
        """Whether the example has a label; NaN is none."""
        label = getattr(self, self.label_field)
        return label is not None and label is not False and label == label

    @property
    def expected(self) -> Any:
        """Expected prediction, for evaluation, as JSON."""
        return getattr(self, self.label_field)

    def inputs(self, names: Sequence[str]) -> dict[str, Any]:
        """Returns the text inputs of a request to an exported model, by name.

        Args:
          names: names of the inputs, in the order of the texts of an example.

        Raises:
          DataError: the example does not fit the inputs.
        """
        return {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True, slots=True)
class TextExample(Example):
    """Example of classification, multi-label classification or regression.

    Attributes:
      texts: one or more texts, each encoded as its own segment.
      label: a class name, a tuple of class names (multi-label), or a number (regression).
      subtask: name of its data set in multi-task training.
      group: examples of one group are held out together.
    """

    texts: tuple[str, ...]
    label: Label | None = None
    subtask: str = ""
    group: str = ""

    def inputs(self, names):
        require_data(
            len(self.texts) == len(names),
            self.id,
            f"the texts {', '.join(names)}",
            f"{len(self.texts)} texts",
        )
        return dict(zip(names, self.texts, strict=True))


def examples_checksum(examples: Iterable[Example]) -> str:
    """Returns the SHA-256 of the contents of examples, in order.

    Attributes with default values, and those that do not compare, do not count, so that new ones
    do not change it.

    Args:
      examples: the examples.
    """
    digest = hashlib.sha256()
    for example in examples:
        said = {
            field.name: value
            for field in dataclasses.fields(example)
            if field.compare and (value := getattr(example, field.name)) != field.default
        }
        digest.update(json.dumps([type(example).__name__, said], default=repr).encode() + b"\n")
    return digest.hexdigest()
