"""Evaluates a model: held-out loss and perplexity.

The loss is in nats per target; unigram_loss is that of a model that knows only word counts.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.evaluation import evaluate

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_DATA = flags.DEFINE_string(
    "data", None, "Data set of `xlnet prepare`.", required=True, flag_values=FLAGS
)
_SPLIT = flags.DEFINE_enum(
    "split", "heldout", ["heldout", "train"], "Which windows.", flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Returns `loss`, `unigram_loss`, `perplexity` and the number of `targets`."""
    return evaluate(_MODEL.value, _DATA.value, _SPLIT.value)
