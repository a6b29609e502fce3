"""Scores texts: log-likelihood under a factorization order, per token and in total.

Prints one JSON object per text, with `text`, `tokens`, `log_likelihoods` (nats) and `total`.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.configs.choices import SCORING_ORDERS
from official.xlnet.data.text_files import read_texts, write_json_lines
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.perplexity import perplexity
from official.xlnet.tokenization.unknown_text import check_unknown

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_TEXT = flags.DEFINE_multi_string("text", [], "Input text; may be repeated.", flag_values=FLAGS)
_INPUT = flags.DEFINE_string(
    "input", None, "File with one text per line, or JSON lines.", flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output file (JSON lines); default: standard output.", flag_values=FLAGS
)
_ORDER = flags.DEFINE_enum(
    "order",
    "left_to_right",
    SCORING_ORDERS,
    "Factorization order; pseudo: pseudo-log-likelihood (each token given all others).",
    flag_values=FLAGS,
)
_NUM_ORDERS = flags.DEFINE_integer(
    "num_orders",
    8,
    "Number of orders to average over, for --order=random.",
    lower_bound=1,
    upper_bound=10_000,
    flag_values=FLAGS,
)
_SEED = flags.DEFINE_integer(
    "seed",
    0,
    "Random seed, for --order=random.",
    lower_bound=0,
    upper_bound=2**32 - 1,
    flag_values=FLAGS,
)


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def run() -> dict[str, Any]:
    """Scores texts; returns `texts`, `tokens`, `log_likelihood` (nats) and `perplexity`."""
    from official.xlnet.api.language_model import score
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.inference.language_model import load_language_model

    texts = read_texts(_TEXT.value, _INPUT.value)
    model, tokenizer = load_language_model(_MODEL.value), load_tokenizer(_MODEL.value)
    scores = score(model, texts, _ORDER.value, _NUM_ORDERS.value, _SEED.value, tokenizer)
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
        "perplexity": perplexity(-total / max(1, num_tokens)),
        **check_unknown(tokenizer.counts, "texts"),
    }
