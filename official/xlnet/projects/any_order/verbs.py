"""Verbs of this project, which score and generate texts in any order, from files to files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model
from official.xlnet.api.verbs import USE, register_verb
from official.xlnet.configs.choices import (
    GIVEN_SIDES,
    PUNCTUATION,
    SCORED_SELECTIONS,
    STEP_SELECTIONS,
    UNITS,
)
from official.xlnet.configs.registry import ORDERS, TEXT_ROW_FORMATS
from official.xlnet.configs.validation import require
from official.xlnet.errors import ConfigError
from official.xlnet.files.arguments import COMMAS, STANDARD, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.registry import NameIn
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import loading_tensorflow

Order = Annotated[str, NameIn(ORDERS)]
NumOrders = Annotated[int, Range(1, 10_000)]
Seed = Annotated[int, Range(0, 2**32 - 1)]
Given = Annotated[str, OneOf(GIVEN_SIDES)]
Format = Annotated[str, NameIn(TEXT_ROW_FORMATS)]
Columns = Annotated[Sequence[str], COMMAS]


@register_verb("words", group=USE, former={"score.words": False})
@public()
def words_file(
    model: Model,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    unit: Annotated[str, OneOf(UNITS)] = "nats",
    punctuation: Annotated[str, OneOf(PUNCTUATION)] = "attached",
    word_ends: bool = False,
    format: Format | None = None,
    order: Order = "left_to_right",
    num_orders: NumOrders = 8,
    seed: Seed = 0,
    context: str | None = None,
    given: Given = "left",
    whole_given: bool = False,
    entropy: bool = False,
) -> dict[str, Any]:
    """Scores the words of texts: a row for each word, with its surprisal.

    A row has the number of its text, `text_id`, the other columns of a table, the `word`, its
    place in the text and its `surprisal`. Running the same command again resumes one that was
    killed.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file, ending in .tsv, .csv, .jsonl or .parquet; default: JSON lines on standard
        output.
      unit: unit of surprisal.
      punctuation: marks with their words or alone.
      word_ends: also write `surprisal_with_end`, the surprisal of the word and of its end.
      format: format of the input, if its name does not say it.
      order: factorization order; pseudo: pseudo-log-likelihood (each token given all others).
      num_orders: number of orders to average over, for the order random.
      seed: random seed, for the order random.
      context: text that is given and not scored; default: the column `context`.
      given: where the context stands; both: around its blank ____.
      whole_given: whether the tokens of the context attend to each other.
      entropy: whether to add the column `entropy`: of the distributions that the pieces of the word
        are predicted from.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`.

    Example:
      $ xlnet words --model=runs/model --input=stories.tsv --output=words.tsv
    """
    if word_ends:
        require(order == "left_to_right", "order", "left_to_right with word_ends", order)
        require(given == "left", "given", "left with word_ends", given)
        require(punctuation == "attached", "punctuation", "attached with word_ends", punctuation)
    with loading_tensorflow():
        from official.xlnet.projects.any_order.scoring_jobs import WordsCall, score_words
    call = WordsCall(
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
        format=format,
        unit=unit,
        punctuation=punctuation,
        word_ends=word_ends,
        entropy=entropy,
    )
    return score_words(call)


@register_verb("mutual_information", group=USE)
@public()
def mutual_information_file(
    model: Model,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    distance: Annotated[int, Range(0)] = 1,
    unit: Annotated[str, OneOf(UNITS)] = "nats",
    punctuation: Annotated[str, OneOf(PUNCTUATION)] = "attached",
    format: Format | None = None,
    context: str | None = None,
    given: Given = "left",
) -> dict[str, Any]:
    """Measures the mutual information of the words of texts: a row for each two words.

    A row has the pointwise mutual information of two words, given the rest of the text, in both
    orders: `information` is what the first tells about the second, `reversed_information` the
    reverse; they differ where the model is inconsistent. Running the same command again resumes one
    that was killed.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file, ending in .tsv, .csv, .jsonl or .parquet; default: JSON lines on standard
        output.
      distance: largest distance of two words, 1 for neighbors; 0: any.
      unit: unit of information.
      punctuation: marks with their words or alone.
      format: format of the input, if its name does not say it.
      context: text that is given, and has no pairs; default: the column `context`.
      given: where the context stands; both: around its blank ____.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`; `pairs`, and
      `mean_gap`, the mean absolute difference of the two orders.

    Example:
      $ xlnet mutual_information --model=runs/model --text='The cat sat.'
    """
    with loading_tensorflow():
        from official.xlnet.projects.any_order.words.information_jobs import (
            InformationCall,
            measure_information,
        )
    call = InformationCall(
        model=model,
        text=text,
        input=input,
        output=output,
        order="left_to_right",
        num_orders=1,
        seed=0,
        context=context,
        given=given,
        whole_given=False,
        format=format,
        distance=distance,
        unit=unit,
        punctuation=punctuation,
    )
    return measure_information(call)


@register_verb("pairs", group=USE, former={"score.pairs": False})
@public()
def pairs_file(
    model: Model,
    input: Path,
    output: OutputFile | None = None,
    group: str | None = None,
    order: Order = "left_to_right",
    num_orders: NumOrders = 8,
    seed: Seed = 0,
    context: str | None = None,
    given: Given = "left",
    whole_given: bool = False,
    cluster: Columns = (),
) -> dict[str, Any]:
    """Compares minimal pairs of texts, of which one should be more probable.

    The result has the share of pairs whose good text is more probable, and the mean difference of
    log-likelihoods, each with a 95% interval, of all pairs and of each group. Running the same
    command again resumes one that was killed.

    Args:
      model: model directory.
      input: table with the columns `good` and `bad` (BLiMP's `sentence_good` and `sentence_bad`),
        or a SyntaxGym suite (.json), whose predictions name the conditions to compare.
      output: output file with a row for each pair, ending in .tsv, .csv, .jsonl or .parquet;
        default: none.
      group: column that groups pairs; default: UID, if there is one.
      order: factorization order; pseudo: pseudo-log-likelihood (each token given all others).
      num_orders: number of orders to average over, for the order random.
      seed: random seed, for the order random and for the intervals.
      context: text that is given and not scored; default: the column `context`.
      given: where the context stands; both: around its blank ____.
      whole_given: whether the tokens of the context attend to each other.
      cluster: columns, separated by commas, of what pairs have in common that are not independent,
        such as a noun; intervals are over these.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`; `pairs`, `accuracy`
      and `mean_difference` with their intervals, and the same in `groups`; `clusters`, the number
      of each kind.

    Example:
      $ xlnet pairs --model=runs/model --input=pairs.jsonl
    """
    if input == STANDARD:
        raise ConfigError("input: expected a file, got standard input")
    with loading_tensorflow():
        from official.xlnet.projects.any_order.scoring_jobs import PairsCall, score_pairs
    call = PairsCall(
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
        group=group,
        cluster=cluster,
    )
    return score_pairs(call)


@register_verb("norms", group=USE, former={"score.norms": None})
@public()
def norms_file(
    model: Model,
    norms: str,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    group: str | None = None,
    order: Order = "left_to_right",
    num_orders: NumOrders = 8,
    seed: Seed = 0,
    context: str | None = None,
    given: Given = "left",
    whole_given: bool = False,
    cluster: Columns = (),
    baseline: Columns = (),
) -> dict[str, Any]:
    """Correlates the log-likelihoods of completions with cloze probabilities or other norms.

    Prints one JSON object per text, as `score` does. Running the same command again resumes one
    that was killed.

    Args:
      model: model directory.
      norms: column of cloze probabilities, or of other norms of the input, to correlate with the
        log-likelihood of completions.
      text: input text; may be repeated.
      input: table with the columns `context` and `text`, or `frame` and `completion`; - for
        standard input.
      output: output file (JSON lines); default: standard output; - for standard output without
        results at the end.
      group: column that groups completions; default: none.
      order: factorization order; pseudo: pseudo-log-likelihood (each token given all others).
      num_orders: number of orders to average over, for the order random.
      seed: random seed, for the order random.
      context: text that is given and not scored; default: the column `context`.
      given: where the context stands; both: around its blank ____.
      whole_given: whether the tokens of the context attend to each other.
      cluster: columns, separated by commas, of what texts have in common that are not independent,
        such as a frame or a subject; intervals are over these.
      baseline: columns of numbers, separated by commas, of a regression of the norms, such as
        length and frequency; measures what surprisal adds to it.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`; `pearson` and
      `spearman`, and the same in `groups`; with `cluster`, their intervals and the number of
      `clusters`; with `baseline`, `log_likelihood_gain` (nats per text), its interval, and the
      `coefficient` of surprisal.

    Example:
      $ xlnet norms --model=runs/model --input=norms.csv --norms=cloze
    """
    with loading_tensorflow():
        from official.xlnet.projects.any_order.scoring_jobs import NormsCall, score_norms
    call = NormsCall(
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
        norms=norms,
        group=group,
        cluster=cluster,
        baseline=baseline,
    )
    return score_norms(call)


@register_verb("consistency", group=USE, former={"score.consistency": False})
@public()
def consistency_file(
    model: Model,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    format: Format | None = None,
    order: Order = "left_to_right",
    num_orders: Annotated[int, Range(2, 10_000)] = 8,
    seed: Seed = 0,
    context: str | None = None,
    given: Given = "left",
    whole_given: bool = False,
) -> dict[str, Any]:
    """Scores texts, and measures how far the factorization orders of each disagree.

    Prints one JSON object per text, as `score` does, with `deviation`, the standard deviation of
    the log-likelihood over random orders, and `halves_gap`, the gap between the two orders of the
    text's halves; both without its context, and null for a text of fewer than two tokens. Running
    the same command again resumes one that was killed.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file (JSON lines); default: standard output; - for standard output without
        results at the end.
      format: format of the input, if its name does not say it.
      order: factorization order of the scores; pseudo: pseudo-log-likelihood (each token given all
        others).
      num_orders: number of random orders to compare, and to average over for the order random.
      seed: random seed of these orders.
      context: text that is given and not scored; default: the column `context`.
      given: where the context stands; both: around its blank ____.
      whole_given: whether the tokens of the context attend to each other.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`; the means of
      `deviation` and `halves_gap` over the `compared_texts`, those of two tokens or more.

    Example:
      $ xlnet consistency --model=runs/model --text='The cat sat.'
    """
    with loading_tensorflow():
        from official.xlnet.projects.any_order.scoring_jobs import (
            ConsistencyCall,
            score_consistency,
        )
    call = ConsistencyCall(
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
        format=format,
    )
    return score_consistency(call)


@register_verb("candidates", group=USE, former={"generate.candidates": 0, "generate.choices": ()})
@public()
def candidates_file(
    model: Model,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    candidates: Annotated[int, Range(1, 10_000)] = 10,
    choices: Annotated[Sequence[str], COMMAS] = (),
    max_blank_length: Annotated[int, Range(1, 1000)] = 1,
) -> dict[str, Any]:
    """Ranks candidates for the blanks of texts, or choices that are given.

    A blank is written ____ (four or more underscores); ____{3} is one of exactly 3 word pieces.
    Prints one JSON object per text, with `text` and `candidates`: for each blank its possible
    fillers, with probabilities and ranks. Running the same command again resumes one that was
    killed.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file (JSON lines); default: standard output; - for standard output without
        results at the end.
      candidates: number of the most probable strings to print for each blank.
      choices: rank these strings as fillers for the blank of each text, separated by commas.
      max_blank_length: maximum length of a blank without a given length, in word pieces.

    Returns:
      The number of `texts`.

    Example:
      $ xlnet candidates --model=runs/model --text='The ____ of the people.'
    """
    require(all(map(str.strip, choices)), "choices", "strings that are not empty", choices)
    with loading_tensorflow():
        from official.xlnet.projects.any_order.generation_jobs import (
            CandidatesCall,
            rank_candidates,
        )
    call = CandidatesCall(
        model=model,
        text=text,
        input=input,
        output=output,
        candidates=candidates,
        choices=choices,
        max_blank_length=max_blank_length,
    )
    return rank_candidates(call)


_STEPS = {"generate.steps": None, "generate.select": "confidence", "generate.remask": False}


@register_verb(
    "unmask",
    group=USE,
    former=_STEPS,
    counts={"continued": "texts continued", "filled": "blanks filled"},
)
@public()
def unmask_file(
    model: Model,
    steps: Annotated[int, Range(1)],
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    select: Annotated[str, OneOf(STEP_SELECTIONS)] = "confidence",
    remask: bool = False,
    num_tokens: Annotated[int, Range(1, 1_000_000)] = 64,
    max_blank_length: Annotated[int, Range(1, 1000)] = 1,
    temperature: Annotated[float, Range(0, 1e6)] = 1.0,
    top_k: Annotated[int, Range(0)] = 0,
    top_p: Annotated[float, Range(0, 1)] = 1.0,
    seed: Seed = 0,
) -> dict[str, Any]:
    """Generates text in steps, each of which adds several tokens: continues prompts, fills blanks.

    As `generate`, which adds tokens one by one. Models of masked tokens (denoising,
    absorbing_diffusion) generate in steps only.

    Args:
      model: model directory.
      steps: number of passes of the network, each of which adds several tokens.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file (JSON lines); default: standard output; - for standard output without
        results at the end.
      select: which positions a step fills first: those whose most probable token has the highest
        probability, the largest margin to the second, the lowest entropy, random ones, or those
        whose drawn token has the highest probability.
      remask: whether tokens of earlier steps that are less certain become unknown again.
      num_tokens: maximum number of generated word pieces.
      max_blank_length: maximum length of a blank without a given length, in word pieces.
      temperature: sampling temperature; 0 is greedy decoding.
      top_k: sample from the k most probable pieces; 0: all.
      top_p: nucleus sampling: cumulative probability of the candidates.
      seed: random seed of sampling.

    Returns:
      The number of texts `continued` and `filled`; counts of tokens.

    Example:
      $ xlnet unmask --model=runs/model --steps=8 --text='The ____{12} of the people.'
    """
    with loading_tensorflow():
        from official.xlnet.projects.any_order.generation_jobs import UnmaskCall, unmask_texts
    call = UnmaskCall(
        model=model,
        text=text,
        input=input,
        output=output,
        num_tokens=num_tokens,
        max_blank_length=max_blank_length,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        steps=steps,
        select=select,
        remask=remask,
    )
    return unmask_texts(call)


_SCORE_STEPS = {"score.steps": None, "score.select": "confidence"}


@register_verb("score_steps", group=USE, former=_SCORE_STEPS)
@public()
def score_steps_file(
    model: Model,
    steps: Annotated[int, Range(1)],
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    format: Format | None = None,
    select: Annotated[str, OneOf(SCORED_SELECTIONS)] = "confidence",
    context: str | None = None,
    given: Given = "left",
) -> dict[str, Any]:
    """Scores texts by the exact log-likelihood that `unmask` draws them with, in several steps.

    Prints one JSON object per text, as `score` does. The likelihood is of sampling at temperature 1
    from all pieces, of a text of a known number of pieces. Running the same command again resumes
    one that was killed.

    Args:
      model: model directory.
      steps: number of passes of the network, each of which adds several tokens.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file (JSON lines); default: standard output; - for standard output without
        results at the end.
      format: format of the input, if its name does not say it.
      select: which positions a step fills first: those whose most probable token has the highest
        probability, the largest margin to the second, or the lowest entropy.
      context: text that is given and not scored; default: the column `context`.
      given: where the context stands; both: around its blank ____.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`.

    Example:
      $ xlnet score_steps --model=runs/model --steps=2 --text='The cat sat.'
    """
    with loading_tensorflow():
        from official.xlnet.projects.any_order.stepwise.scoring_jobs import (
            StepsCall,
            score_in_steps,
        )
    call = StepsCall(
        model=model,
        text=text,
        input=input,
        output=output,
        order="in steps",
        num_orders=1,
        seed=0,
        context=context,
        given=given,
        whole_given=True,
        format=format,
        steps=steps,
        select=select,
    )
    return score_in_steps(call)
