"""Head of token classification in other formats."""

from official.xlnet.checkpoints.convert.head_format import HeadFormat, dense
from official.xlnet.configs.registry import FORMATS


@FORMATS.register("token_classification")
class TokenFormat(HeadFormat):
    """The TF1 release has no such head."""

    rows = dense("head/logits", "DC", None, "classifier")
    architecture = "XLNetForTokenClassification"
