"""Scores texts: their log-likelihood under a factorization order, by token and in total.

Prints one JSON object for every text: `text`, `tokens`, `log_likelihoods` (nats) and `total`.
"""

from __future__ import annotations

import math
from typing import Any

from absl import flags

from official.xlnet.data.text_files import read_texts, write_json_lines
from official.xlnet.inference.language_model import load_language_model
from official.xlnet.inference.scoring import ORDERS, score
from official.xlnet.tokenization.tokenizer import load_tokenizer

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_TEXT = flags.DEFINE_multi_string("text", [], "A text; may be repeated.", flag_values=FLAGS)
_INPUT = flags.DEFINE_string("input", None, "File with one text a line.", flag_values=FLAGS)
_OUTPUT = flags.DEFINE_string(
    "output", None, "File for the scores; standard output by default.", flag_values=FLAGS
)
_ORDER = flags.DEFINE_enum(
    "order",
    "left_to_right",
    ORDERS,
    "Factorization order; pseudo: every token given all others.",
    flag_values=FLAGS,
)
_NUM_ORDERS = flags.DEFINE_integer(
    "num_orders", 8, "Orders to average over, for --order=random.", flag_values=FLAGS
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of random orders.", 0, flag_values=FLAGS)


def run() -> dict[str, Any]:
    """Returns `texts`, `tokens`, `log_likelihood` (total, nats) and `perplexity` per token."""
    texts = read_texts(_TEXT.value, _INPUT.value)
    model, tokenizer = load_language_model(_MODEL.value), load_tokenizer(_MODEL.value)
    scores = score(model, tokenizer, texts, _ORDER.value, _NUM_ORDERS.value, _SEED.value)
    write_json_lines(
        _OUTPUT.value,
        (
            {
                "text": result.text,
                "tokens": result.pieces,
                "log_likelihoods": result.log_likelihoods.tolist(),
                "total": result.total,
            }
            for result in scores
        ),
    )
    num_tokens = sum(len(result.pieces) for result in scores)
    total = sum(result.total for result in scores)
    return {
        "texts": len(texts),
        "tokens": num_tokens,
        "log_likelihood": total,
        "perplexity": math.exp(-total / num_tokens),
    }
