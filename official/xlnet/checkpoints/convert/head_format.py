"""The heads of tasks in other formats: their variables, and how a model is recognized by them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from official.xlnet.checkpoints.convert.variable_map import Row, row


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeadFormat:
    """A task's head in HF and in the TF1 release, entered in `HEAD_FORMATS` under the task's name.

    Attributes:
      rows: the variables of the head; none of a pre-trained model. One ends in `logits/kernel`:
        models that have it have the head, and letter C in its shape says that there are classes.
      architecture: HF's class.
      problem: HF's `problem_type`; None if it does not have one.
      usual_logits: numbers of logits for which the head is the one that is meant where HF's
        configuration does not say.
      hf_settings: {key of HF's configuration: our key} of the head.
      hf_labels: names of the labels in HF's configuration of a task without labels.
    """

    rows: tuple[Row, ...] = ()
    architecture: str = "XLNetLMHeadModel"
    problem: str | None = None
    usual_logits: range = range(0)
    hf_settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hf_labels: tuple[str, ...] = ()

    def logits(self) -> Row:
        """Returns the variable that the head is recognized by."""
        return next(row for row in self.rows if row.xlnet.name.endswith("logits/kernel"))


def dense(ours: str, shape: str, tf1: str | None, hf: str, bias: bool = True) -> tuple[Row, ...]:
    """Returns the variables of a dense layer.

    Args:
      ours: our name of the layer.
      shape: dimension letters of the kernel.
      tf1: its name in the TF1 release; None if it does not have one.
      hf: its name in HF's format.
      bias: whether it has a bias.
    """
    tf1_kernel = f"{tf1}/kernel" if tf1 else None
    kernel = row(f"{ours}/kernel", shape, tf1_kernel, shape, f"{hf}.weight", shape[::-1])
    if not bias:
        return (kernel,)
    last, tf1_bias = shape[-1], f"{tf1}/bias" if tf1 else None
    return kernel, row(f"{ours}/bias", last, tf1_bias, last, f"{hf}.bias", last)


def with_summary(shape: str, tf1: str | None) -> tuple[Row, ...]:
    """Returns the variables of a head with logits of a sequence summary.

    Args:
      shape: dimension letters of the logits' kernel.
      tf1: name of the logits in the TF1 release; None if it does not have the head.
    """
    tf1_summary = "model/sequnece_summary/summary" if tf1 else None
    return (
        *dense("head/summary/projection", "DS", tf1_summary, "sequence_summary.summary"),
        *dense("head/logits", shape, tf1, "logits_proj"),
    )
