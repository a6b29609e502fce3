"""Head of multiple choice in other formats."""

from official.xlnet.checkpoints.convert.head_format import (
    HeadFormat,
    with_summary,
)
from official.xlnet.configs.registry import FORMATS


@FORMATS.register("multiple_choice")
class ChoiceFormat(HeadFormat):
    """One logit for each option."""

    rows = with_summary("S1", "logits/dense")
    architecture = "XLNetForMultipleChoice"
