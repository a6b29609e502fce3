"""`score`: see the module beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model
from official.xlnet.api.verbs import USE, register_verb
from official.xlnet.configs.choices import (
    GIVEN_SIDES,
    PUNCTUATION,
    SCORING_ORDERS,
    UNITS,
)
from official.xlnet.files.arguments import COMMAS, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb("score", group=USE)
@public()
def score_file(
    model: Model,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    order: Annotated[str, OneOf(SCORING_ORDERS)] = "left_to_right",
    num_orders: Annotated[int, Range(1, 10_000)] = 8,
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0,
    context: str | None = None,
    given: Annotated[str, OneOf(GIVEN_SIDES)] = "left",
    whole_given: bool = False,
    consistency: bool = False,
    words: bool = False,
    unit: Annotated[str, OneOf(UNITS)] = "nats",
    punctuation: Annotated[str, OneOf(PUNCTUATION)] = "attached",
    pairs: bool = False,
    norms: str | None = None,
    group: str | None = None,
    format: Annotated[str, OneOf(("kaldi", "nbest"))] | None = None,
    weights: Annotated[Sequence[str], COMMAS] = (),
) -> dict[str, Any]:
    """Scores texts: log-likelihood under a factorization order, per token, per word and in total.

    Prints one JSON object per text, with `text`, `tokens`, `log_likelihoods` (nats) and their sum,
    `log_likelihood` or `total`. The other columns of a table come back, too. A text of unknown
    tokens alone has `only_unknown`, as its log-likelihood says nothing of its words. Running the
    same command again resumes one that was killed.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file: JSON lines, or a table for words and pairs; default: standard output; -
        for standard output without results at the end.
      order: factorization order; inside_out: from the middle; confidence, entropy: next the token
        that the model is most certain of; pseudo: pseudo-log-likelihood (each token given all
        others).
      num_orders: number of orders to average over, for the order random and for consistency.
      seed: random seed, for the order random and for the intervals of pairs.
      context: text that is given and not scored; default: the column `context`.
      given: where the context stands; both: around its blank ____.
      whole_given: whether the tokens of the context attend to each other.
      consistency: also measure how far orders disagree: the standard deviation of the
        log-likelihood over random orders, and the gap between the two orders of the text's halves,
        without its context.
      words: write a row for each word, with its surprisal; the output ends in .tsv, .csv, .jsonl
        or .parquet.
      unit: unit of surprisal, for words.
      punctuation: marks with their words or alone, for words.
      pairs: compare the columns `good` and `bad` of the input (BLiMP's `sentence_good` and
        `sentence_bad`), or the conditions that the predictions of a SyntaxGym suite (.json) name.
      norms: column of cloze probabilities, or of other norms of the input, to correlate with the
        log-likelihood of completions (columns `context` and `text`, or `frame` and `completion`).
      group: column that groups pairs (default: UID, if there is one) or norms.
      format: format of the input, if its name does not say it: kaldi, an id and words on each line;
        nbest, JSON lines with a list hyps of objects with a text and other scores.
      weights: with nbest, writes only the hypothesis of each line with the largest weighted sum of
        scores, e.g. am:1,lm:0.7, where lm is the log-likelihood and other names are of the objects.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`, and the metrics of
      pairs, norms or consistency (means over the texts).

    Example:
      $ xlnet score --model=runs/model --text='The cat sat.'
    """
    with loading_tensorflow():
        from official.xlnet.commands.score import score_file as job
    return job(
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
        consistency=consistency,
        words=words,
        unit=unit,
        punctuation=punctuation,
        pairs=pairs,
        norms=norms,
        group=group,
        format=format,
        weights=weights,
    )
