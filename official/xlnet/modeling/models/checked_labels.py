"""Labels that a loss of Keras takes."""

from __future__ import annotations

import functools
from typing import Any

from official.xlnet.modeling.heads.label_rule import LabelRule
from official.xlnet.modeling.ops.keras import keras

_OF_PROBABILITIES = ("crossentropy", "dice", "tversky")  # Ends of names of losses.


def rule_of_loss(loss: Any, num_logits: int, names: tuple[str, ...]) -> LabelRule | None:
    """The rule of a loss of Keras; None for others, which may take anything.

    Args:
      loss: a loss, class of it or function, but not its name.
      num_logits: number of logits, C.
      names: names of the classes, if they are known.
    """
    ignored = None
    if isinstance(loss, keras.losses.Loss):
        ignored = loss.get_config().get("ignore_class")
    elif isinstance(loss, functools.partial):
        ignored, loss = loss.keywords.get("ignore_class"), loss.func
    name_source = type(loss) if isinstance(loss, keras.losses.Loss) else loss
    module = getattr(name_source, "__module__", None) or ""
    if module.partition(".")[0] != keras.__name__:
        return None
    reader = name_source.__name__
    name = reader.replace("_", "").lower()
    if name == "sparsecategoricalcrossentropy":
        return LabelRule(reader, 0, num_logits - 1, True, ignored=ignored, names=names)
    if name.endswith(_OF_PROBABILITIES):
        return LabelRule(reader, 0, 1, num_in_row=num_logits, names=names)
    return LabelRule(reader, num_in_row=num_logits, names=names)
