"""`score`: log-likelihoods of the texts of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model
from official.xlnet.api.verbs import USE, register_verb
from official.xlnet.configs.choices import GIVEN_SIDES
from official.xlnet.configs.registry import ORDERS
from official.xlnet.files.arguments import OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.registry import NameIn
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb("score", group=USE)
@public()
def score_file(
    model: Model,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    order: Annotated[str, NameIn(ORDERS)] = "left_to_right",
    num_orders: Annotated[int, Range(1, 10_000)] = 8,
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0,
    context: str | None = None,
    given: Annotated[str, OneOf(GIVEN_SIDES)] = "left",
    whole_given: bool = False,
) -> dict[str, Any]:
    """Scores texts: log-likelihood under a factorization order, per token and in total.

    Prints one JSON object per text, with `text`, `tokens`, `log_likelihoods` (nats) and their sum,
    `log_likelihood` or `total`. The other columns of a table come back, too. A text of unknown
    tokens alone has `only_unknown`, as its log-likelihood says nothing of its words. Running the
    same command again resumes one that was killed.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file (JSON lines); default: standard output; - for standard output without
        results at the end.
      order: factorization order; pseudo: pseudo-log-likelihood (each token given all others).
      num_orders: number of orders to average over, for the order random.
      seed: random seed, for the order random.
      context: text that is given and not scored; default: the column `context`.
      given: where the context stands; both: around its blank ____.
      whole_given: whether the tokens of the context attend to each other.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`.

    Example:
      $ xlnet score --model=runs/model --text='The cat sat.'
    """
    with loading_tensorflow():
        from official.xlnet.jobs.file_scoring import ScoringCall, score_texts
    call = ScoringCall(
        model=model,
        text=text,
        input=input,
        output=output,
        order=order,
        num_orders=num_orders,
        seed=seed,
        context=context,
        given=given,
        whole_given=whole_given,
    )
    return score_texts(call)
