"""Generation: continuing a text, and filling the blanks in one.

Both predict tokens one after the other from the context and the tokens predicted before, with a
cache (`decoding`). Filling a blank is the same as continuing a text, except for where the targets
are: the context stands on both sides.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import numpy as np
import tensorflow as tf

from official.xlnet.errors import require_data
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range
from official.xlnet.inference.decoding.cached import Draws, Template, decode
from official.xlnet.inference.decoding.sampling import Sampling
from official.xlnet.inference.decoding.stepwise import Steps, decode_in_steps, steps_of
from official.xlnet.inference.language_model import (
    GENERATED,
    SCORED,
    bucket,
    for_each,
    is_causal,
    loaded,
    require_both_sides,
)
from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.modeling.ops.visibility import NEVER_VISIBLE
from official.xlnet.tokenization.blanks import BlankText, has_blank, parse_blanks
from official.xlnet.tokenization.sentencepiece_proto import WHITESPACE_PIECES
from official.xlnet.tokenization.special_tokens import (
    EOD_ID,
    EOP_ID,
    MASK_ID,
    NUM_SPECIAL,
    PAD_ID,
)
from official.xlnet.tokenization.tokenizer import WORD_START, Tokenizer
from official.xlnet.tokenization.unspaced_scripts import begins_unspaced_word

Texts = TypeVar("Texts", str, list[str])
BATCH_SIZE = 8
_DRAWN, _GREEDY = Sampling(), Sampling(temperature=0.0)
# What a target may become; see `allowed_pieces`.
_TEXT_OR_END, _WORD_BEGIN, _WORD_INSIDE, _IN_BLANK, SPACE_OR_WORD = range(5)


@dataclasses.dataclass
class _Row:
    """A row of a `Template`.

    Attributes:
      token_ids: ids of the positions; anything at targets.
      targets: positions to be predicted, in order.
      groups: what each of them may become.
      random: draws of this row.
    """

    token_ids: list[int]
    targets: list[int]
    groups: list[int]
    random: np.random.Generator


@public()
def generate(
    model: AnyPath | XLNetPretrainer,
    prompts: Texts,
    num_tokens: Annotated[int, Range(1)] = 64,
    sampling=_DRAWN,
    tokenizer=None,
    max_blank_length: Annotated[int, Range(1)] = 1,
    temperature=None,
    top_k=None,
    top_p=None,
    seed=None,
    steps=None,
    select="confidence",
    remask=False,
) -> Texts:
    """Continues texts, and fills their blanks if they have any, as `xlnet generate` does.

    A text with blanks, written `____`, is filled as `fill_blanks` does, and is not continued.
    Others are continued until the end of the document, or for `num_tokens` tokens.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      prompts: a text or a list of texts, which are context: every token of one sees all of it, as
        in pre-training; with a causal model, `<eod>` and the tokens before it. An empty one is
        continued from nothing.
      num_tokens: maximum number of tokens to add.
      sampling: how tokens are chosen, e.g. `Sampling(temperature=0)` for greedy search.
      tokenizer: the tokenizer of a loaded model.
      max_blank_length: maximum number of word pieces in a blank without a length.
      temperature: as in `Sampling`, in place of the value in `sampling`.
      top_k: the same.
      top_p: the same.
      seed: the same.
      steps: number of passes of the network, each of which adds several tokens; see
        docs/any_order.md. By default one by one, which a model of `<mask>` cannot.
      select: which tokens a step adds first, see `Steps`.
      remask: whether tokens of earlier steps can become unknown again, see `Steps`.

    Returns:
      Each text with its continuation, or with its blanks filled; for a text that is not in a list,
      a single one.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or the
        objective that the model was trained with does not predict this.
      DataError: the model cannot be loaded.
      TypeError: a text is not a string.

    Example:
      >>> generate("runs/base", "The cat", num_tokens=3, temperature=0)
      'The cat sat on the'
    """
    sampling = _changed(sampling, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    in_steps = steps_of(steps, select, remask)

    def outputs(texts: list[str]) -> list[str]:
        language_model = loaded(model, tokenizer, SCORED if in_steps else GENERATED)
        return outputs_of(*language_model, texts, num_tokens, sampling, max_blank_length, in_steps)

    return for_each(prompts, outputs)


def outputs_of(
    model: XLNetPretrainer,
    tokenizer: Tokenizer,
    texts: list[str],
    num_tokens: int,
    sampling: Sampling,
    max_blank_length: int,
    steps: Steps | None = None,
    first: int = 0,
) -> list[str]:
    """Returns texts with their continuations, or with their blanks filled; see `generate`.

    Args:
      model: the model.
      tokenizer: its tokenizer.
      texts: the texts.
      num_tokens: see `generate`.
      sampling: see `generate`.
      max_blank_length: see `generate`.
      steps: see `generate`; None: one by one.
      first: number of texts before these; what is drawn depends on it.
    """
    # Blanks first, as they may be refused.
    outputs = {
        number: _filled(model, tokenizer, text, max_blank_length, sampling, steps, number)
        for number, text in enumerate(texts, first)
        if has_blank(text)
    }
    others = {number: text for number, text in enumerate(texts, first) if number not in outputs}
    outputs |= _continuations(model, tokenizer, others, num_tokens, sampling, steps)
    return [outputs[number] for number in range(first, first + len(texts))]


@public()
def fill_blanks(
    model: AnyPath | XLNetPretrainer,
    texts: Texts,
    max_length: Annotated[int, Range(1)] = 1,
    sampling=_GREEDY,
    tokenizer=None,
    temperature=None,
    top_k=None,
    top_p=None,
    seed=None,
    steps=None,
    select="confidence",
    remask=False,
) -> Texts:
    """Fills the blanks of texts, written `____`, or `____{3}` for a blank of three word pieces.

    Blanks are filled from left to right, given all the text around them. Where a blank says no
    length, all lengths up to `max_length` are tried, and the one whose pieces have the highest
    mean log-likelihood is kept; later blanks without a length count as one piece meanwhile.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      texts: a text or a list of texts with blanks. An empty one stays empty.
      max_length: maximum number of word pieces in a blank without a length.
      sampling: how tokens are chosen; the most probable ones by default.
      tokenizer: the tokenizer of a loaded model.
      temperature: as in `Sampling`, in place of the value in `sampling`.
      top_k: the same.
      top_p: the same.
      seed: the same.
      steps: number of passes of the network, each of which adds several tokens; see
        docs/any_order.md. By default one by one, which a model of `<mask>` cannot.
      select: which tokens a step adds first, see `Steps`.
      remask: whether tokens of earlier steps can become unknown again, see `Steps`.

    Returns:
      The filled texts; for a text that is not in a list, a single one.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or the
        objective that the model was trained with does not predict this.
      DataError: the model cannot be loaded, a text has no blank, or is longer with its blanks than
        what the model has been trained to see, `seq_len` and `mem_len` together.
      TypeError: a text is not a string.

    Example:
      >>> fill_blanks("runs/base", "The ____ sat on the ____{2}.")
      'The cat sat on the door mat.'
    """
    sampling = _changed(sampling, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    in_steps = steps_of(steps, select, remask)

    def filled(texts: list[str]) -> list[str]:
        language_model = loaded(model, tokenizer, SCORED if in_steps else GENERATED)
        return [
            _filled(*language_model, text, max_length, sampling, in_steps, number)
            if text.strip()
            else text
            for number, text in enumerate(texts)
        ]

    return for_each(texts, filled)


def _changed(sampling: Sampling, **values: float | None) -> Sampling:
    changes: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    return dataclasses.replace(sampling, **changes)


def _continuations(
    model: XLNetPretrainer,
    tokenizer: Tokenizer,
    prompts: Mapping[int, str],
    num_tokens: int,
    sampling: Sampling,
    steps: Steps | None,
) -> dict[int, str]:
    """Continuations of texts by their places in the list."""
    if steps:
        require_both_sides(model.config, "generate in steps")
    start = [EOD_ID] if is_causal(model.config) else []
    rows = []
    for number, prompt in prompts.items():
        ids = start + tokenizer.encode(prompt)
        targets = list(range(len(ids), len(ids) + num_tokens))
        random = np.random.default_rng([sampling.seed, number])
        rows.append(_Row(ids, targets, [_TEXT_OR_END] * num_tokens, random))
    texts = {}
    predicted = _predict(model, tokenizer, rows, sampling, steps)
    for (number, prompt), (ids, _) in zip(prompts.items(), predicted, strict=True):
        ids = ids[: ids.index(EOD_ID)] if EOD_ID in ids else ids
        is_word = bool(ids) and tokenizer.id_to_piece(ids[0]).startswith(WORD_START)
        context = prompt if tokenizer.keep_whitespace else prompt.rstrip()
        texts[number] = context + " " * is_word + tokenizer.decode(ids)
    return texts


def _filled(
    model: XLNetPretrainer,
    tokenizer: Tokenizer,
    text: str,
    max_length: int,
    sampling: Sampling,
    steps: Steps | None,
    number: int,
) -> str:
    """The text with its blanks filled; `number` is its place in the list."""
    require_both_sides(model.config, "fill blanks")
    parsed = parse_blanks(tokenizer, text)
    lengths = [blank.length or 1 for blank in parsed.blanks]
    check_length(model, parsed, [blank.length or max_length for blank in parsed.blanks])
    fillings = None
    how = sampling, steps, number
    for index, blank in enumerate(parsed.blanks):
        if blank.length is None and max_length > 1:
            candidates = [
                [*lengths[:index], length, *lengths[index + 1 :]]
                for length in range(1, max_length + 1)
            ]
            filled = _fill(model, tokenizer, parsed, candidates, *how)
            best = int(np.argmax([np.mean(scores[index]) for _, scores in filled]))
            lengths, (fillings, _) = candidates[best], filled[best]
    if fillings is None:
        [(fillings, _)] = _fill(model, tokenizer, parsed, [lengths], *how)
    return parsed.fill([tokenizer.decode(ids.tolist()) for ids in fillings])


def _fill(
    model: XLNetPretrainer,
    tokenizer: Tokenizer,
    parsed: BlankText,
    candidates: list[list[int]],
    sampling: Sampling,
    steps: Steps | None,
    number: int,
) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """For each choice of lengths: the ids in every blank and their log-likelihoods."""
    rows = [
        blank_row(parsed, lengths, np.random.default_rng([sampling.seed, number]))
        for lengths in candidates
    ]
    results = []
    for lengths, (ids, scores) in zip(
        candidates, _predict(model, tokenizer, rows, sampling, steps), strict=True
    ):
        ends = np.cumsum(lengths)[:-1]
        results.append((np.split(ids, ends), np.split(scores, ends)))
    return results


def blank_row(parsed: BlankText, lengths: list[int], random: np.random.Generator) -> _Row:
    """The tokens of a text whose blanks have these lengths, with `<mask>` in the blanks."""
    row = _Row([], [], [], random)
    for ids, blank, length in zip(parsed.ids, parsed.blanks, lengths, strict=False):
        row.token_ids += ids
        row.targets += range(len(row.token_ids), len(row.token_ids) + length)
        row.token_ids += [MASK_ID] * length
        row.groups += [_WORD_BEGIN if blank.begins_word else _WORD_INSIDE]
        row.groups += [_IN_BLANK] * (length - 1)
    row.token_ids += parsed.ids[-1]
    return row


def _predict(
    model: XLNetPretrainer,
    tokenizer: Tokenizer,
    rows: list[_Row],
    sampling: Sampling,
    steps: Steps | None = None,
) -> list[tuple[list[int], np.ndarray]]:
    """Ids and log-likelihoods of the targets of every row."""
    is_allowed_GV = allowed_pieces(tokenizer, model.config.model.vocab_size)
    results: list[tuple[list[int], np.ndarray]] = []
    for first in range(0, len(rows), BATCH_SIZE):
        batch = rows[first : first + BATCH_SIZE]
        if steps:
            results += decode_in_steps(
                model,
                [row.token_ids for row in batch],
                [row.targets for row in batch],
                [is_allowed_GV[row.groups] for row in batch],
                [row.random for row in batch],
                *(sampling, steps),
            )
            continue
        template = _template(batch, is_allowed_GV, is_causal(model.config))
        draws = None
        if sampling.temperature > 0:
            uniform_BC = np.zeros(template.order_BC.shape, np.float32)
            for uniform_C, row in zip(uniform_BC, batch, strict=True):
                uniform_C[: len(row.targets)] = row.random.random(len(row.targets), np.float32)
            draws = Draws(
                tf.constant(uniform_BC),
                tf.constant(sampling.temperature, tf.float32),
                tf.constant(sampling.top_k, tf.int32),
                tf.constant(sampling.top_p, tf.float32),
            )
        tokens, scores = (finite(result.numpy()) for result in decode(model, template, draws))
        for row, row_tokens, row_scores in zip(batch, tokens, scores, strict=True):
            count = len(row.targets)
            results.append((row_tokens[:count].tolist(), row_scores[:count]))
    return results


def _template(rows: list[_Row], is_allowed_GV: np.ndarray, causal: bool) -> Template:
    lengths = [max(len(row.token_ids), row.targets[-1] + 1) for row in rows]
    num_slots = bucket(max(lengths) + 1)
    num_tokens = bucket(max(len(row.token_ids) for row in rows))
    order_BC = np.full([len(rows), num_slots], NEVER_VISIBLE, np.int32)
    for order_C, row in zip(order_BC, rows, strict=True):
        num_context = len(row.token_ids)
        order_C[:num_context] = np.arange(1 - num_context, 1) if causal else 0
        order_C[row.targets] = np.arange(1, len(row.targets) + 1)
    padded = functools.partial(keras.utils.pad_sequences, padding="post")
    targets = [row.targets for row in rows]
    return Template(
        token_ids_BT=tf.constant(padded([row.token_ids for row in rows], num_tokens, value=PAD_ID)),
        order_BC=tf.constant(order_BC),
        target_position_BC=tf.constant(padded(targets, num_slots, value=num_slots - 1)),
        num_targets=tf.constant(max(map(len, targets))),
        group_BC=tf.constant(padded([row.groups for row in rows], num_slots)),
        is_allowed_GV=tf.constant(is_allowed_GV),
    )


def allowed_pieces(tokenizer: Tokenizer, vocab_size: int) -> np.ndarray:
    """Returns which pieces are allowed for each group of targets, bool [G, V].

    Special tokens are not text, except for the end of a paragraph, and of the document where that
    ends a continuation. A blank never becomes a bare space, and only of candidates, which are
    compared whole, one may come first. In scripts without spaces, words begin without one.
    """
    pieces = [tokenizer.id_to_piece(i) for i in range(tokenizer.vocab_size)]
    follows_space_V = np.array([piece.startswith(WORD_START) for piece in pieces])
    is_unspaced_V = np.array([begins_unspaced_word(piece) for piece in pieces])
    blank = {WORD_START, *WHITESPACE_PIECES}
    is_space_V = np.array([piece in blank for piece in pieces])
    is_text_V = np.arange(len(pieces)) >= NUM_SPECIAL
    text_or_end_V = is_text_V.copy()
    text_or_end_V[[EOD_ID, EOP_ID]] = True
    is_allowed_GV = np.stack(
        [
            text_or_end_V,
            is_text_V & (follows_space_V | is_unspaced_V) & ~is_space_V,
            is_text_V & ~follows_space_V,
            is_text_V & ~is_space_V,
            is_text_V & (follows_space_V | is_unspaced_V),
        ]
    )
    return np.pad(is_allowed_GV, [(0, 0), (0, vocab_size - len(pieces))])


def check_length(model: XLNetPretrainer, parsed: BlankText, lengths: list[int]) -> None:
    """Raises `DataError` if text and blanks are longer than the windows of training."""
    longest = model.config.data.seq_len + model.config.model.mem_len
    num_context, num_blank = sum(map(len, parsed.ids)), sum(lengths)
    expected = f"text and blanks to have at most {longest} pieces"
    got = f"{num_context} of text and {num_blank} of blanks"
    require_data(num_context + num_blank <= longest, "blanks too long", expected, got)
