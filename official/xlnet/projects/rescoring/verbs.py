"""`rescore`: log-likelihoods of the hypotheses of a speech recognizer, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model
from official.xlnet.api.verbs import USE, register_verb
from official.xlnet.configs.choices import GIVEN_SIDES
from official.xlnet.configs.registry import ORDERS
from official.xlnet.errors import ConfigError
from official.xlnet.files.arguments import COMMAS, STANDARD, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.registry import NameIn
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb("rescore", group=USE, former={"score.format": None, "score.weights": ()})
@public()
def rescore_file(
    model: Model,
    input: Path,
    output: OutputFile | None = None,
    format: Annotated[str, OneOf(("kaldi", "nbest"))] = "nbest",
    weights: Annotated[Sequence[str], COMMAS] = (),
    drop: Annotated[Sequence[str], COMMAS] = (),
    order: Annotated[str, NameIn(ORDERS)] = "left_to_right",
    num_orders: Annotated[int, Range(1, 10_000)] = 8,
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0,
    context: str | None = None,
    given: Annotated[str, OneOf(GIVEN_SIDES)] = "left",
    whole_given: bool = False,
) -> dict[str, Any]:
    """Rescores hypotheses of a speech recognizer: n-best lists, or lines of an id and words.

    Prints one JSON object per hypothesis: its values in the input, and `tokens`,
    `log_likelihoods` (nats) and their sum, `log_likelihood` or `total`. With weights, only the best
    hypothesis of each list, with its weighted sum of scores, `weighted`; null for an empty list.
    Running the same command again resumes one that was killed.

    Args:
      model: model directory.
      input: file of hypotheses.
      output: output file (JSON lines); default: standard output; - for standard output without
        results at the end.
      format: format of the input: kaldi, an id and words on each line; nbest, JSON lines with a
        list hyps of objects with a text and other scores.
      weights: with nbest, writes only the hypothesis of each line with the largest weighted sum of
        scores, e.g. am:1,lm:0.7,length:0.5, where lm is the log-likelihood, length the number of
        tokens, and other names are of the objects.
      drop: words that are not scored, e.g. <eps>,<unk>,[laughter].
      order: factorization order; pseudo: pseudo-log-likelihood (each token given all others).
      num_orders: number of orders to average over, for the order random.
      seed: random seed, for the order random.
      context: text that is given and not scored; default: the column `context`.
      given: where the context stands; both: around its blank ____.
      whole_given: whether the tokens of the context attend to each other.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`.

    Example:
      $ xlnet rescore --model=runs/model --input=lists.jsonl --weights=am:1,lm:0.7
    """
    if input == STANDARD:
        raise ConfigError("format: expected input from a file, got standard input")
    if weights and format != "nbest":
        raise ConfigError("weights: expected format=nbest, whose lists have several hypotheses")
    with loading_tensorflow():
        from official.xlnet.projects.rescoring.rescore_job import (
            RescoringCall,
            rescore_hypotheses,
        )
    call = RescoringCall(
        model=model,
        text=(),
        input=input,
        output=output,
        order=order,
        num_orders=num_orders,
        seed=seed,
        context=context,
        given=given,
        whole_given=whole_given,
        format=format,
        weights=weights,
        drop=drop,
    )
    return rescore_hypotheses(call)
