"""Scores texts: log-likelihood under a factorization order, per token and in total.

Prints one JSON object per text, with `text`, `tokens`, `log_likelihoods` (nats) and `total`.

Example:
  xlnet score --model=runs/model --text='The cat sat.'
"""

from __future__ import annotations

from typing import Any

from official.xlnet.commands import MODEL, TEXTS, choice, flag_table, integer, seed
from official.xlnet.configs.choices import SCORING_ORDERS
from official.xlnet.data.reading import check_unknown
from official.xlnet.data.text_files import read_texts, write_json_lines
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.perplexity import perplexity

FLAGS = flag_table(
    MODEL,
    TEXTS,
    choice(
        "order",
        default="left_to_right",
        values=SCORING_ORDERS,
        text="Factorization order; pseudo: pseudo-log-likelihood (each token given all others).",
    ),
    integer(
        "num_orders",
        default=8,
        text="Number of orders to average over, for --order=random.",
        least=1,
        most=10_000,
    ),
    seed("Random seed, for --order=random."),
)


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def run() -> dict[str, Any]:
    """Scores texts; returns `texts`, `tokens`, `log_likelihood` (nats) and `perplexity`."""
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.inference.language_model import load_language_model
    from official.xlnet.inference.scoring import score

    texts = read_texts(FLAGS.text, FLAGS.input)
    model, tokenizer = load_language_model(FLAGS.model), load_tokenizer(FLAGS.model)
    scores = score(model, texts, FLAGS.order, FLAGS.num_orders, FLAGS.seed, tokenizer)
    write_json_lines(
        FLAGS.output,
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
