"""Texts with targets to be predicted, and their decoding one target after the other."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import tensorflow as tf

from official.xlnet.errors import require_data
from official.xlnet.inference.decoding.cached import Draws, Template, decode
from official.xlnet.inference.decoding.sampling import Sampling
from official.xlnet.inference.language_model import bucket, is_causal
from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.modeling.ops.visibility import NEVER_VISIBLE
from official.xlnet.tokenization.blanks import BlankText
from official.xlnet.tokenization.special_tokens import (
    EOD_ID,
    EOP_ID,
    MASK_ID,
    NUM_SPECIAL,
    PAD_ID,
    WHITESPACE_PIECES,
    WORD_START,
)
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.unspaced_scripts import begins_unspaced_word

# Sets of pieces that a target may become; see `allowed_pieces`.
TEXT_OR_END, _WORD_BEGIN, _WORD_INSIDE, _IN_BLANK, SPACE_OR_WORD = range(5)


@dataclasses.dataclass
class TargetRow:
    """A text and the positions in it that are to be predicted.

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


class Decoder(Protocol):
    """A way to decode the targets of texts.

    Attributes:
      takes_masked: whether it decodes models of `<mask>`, too.
    """

    takes_masked: bool

    def decode(
        self,
        model: LanguageModel,
        rows: Sequence[TargetRow],
        is_allowed_GV: np.ndarray,
        sampling: Sampling,
    ) -> list[tuple[list[int], np.ndarray]]:
        """Returns, for each row, the ids of its targets and their log-likelihoods, float32 [P].

        Args:
          model: the model.
          rows: a batch of rows.
          is_allowed_GV: bool [G, V], the pieces that targets of each group may become.
          sampling: how tokens are chosen.
        """
        ...


class OneByOne:
    """Decodes target after target, each given the context and the targets before it."""

    takes_masked = False

    def decode(
        self,
        model: LanguageModel,
        rows: Sequence[TargetRow],
        is_allowed_GV: np.ndarray,
        sampling: Sampling,
    ) -> list[tuple[list[int], np.ndarray]]:
        """See `Decoder`."""
        template = _template(rows, is_allowed_GV, is_causal(model.config))
        draws = None
        if sampling.temperature > 0:
            uniform_BC = np.zeros(template.order_BC.shape, np.float32)
            for uniform_C, row in zip(uniform_BC, rows, strict=True):
                uniform_C[: len(row.targets)] = row.random.random(len(row.targets), np.float32)
            draws = Draws(
                tf.constant(uniform_BC),
                tf.constant(sampling.temperature, tf.float32),
                tf.constant(sampling.top_k, tf.int32),
                tf.constant(sampling.top_p, tf.float32),
            )
        token_BP, score_BP = decode(model, template, draws)
        results = []
        for row, token_P, score_P in zip(
            rows, finite(token_BP.numpy()), finite(score_BP.numpy()), strict=True
        ):
            num_targets = len(row.targets)
            results.append((token_P[:num_targets].tolist(), score_P[:num_targets]))
        return results


def _template(rows: Sequence[TargetRow], is_allowed_GV: np.ndarray, causal: bool) -> Template:
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


def blank_row(parsed: BlankText, lengths: list[int], random: np.random.Generator) -> TargetRow:
    """The tokens of a text whose blanks have these lengths, with `<mask>` in the blanks."""
    row = TargetRow([], [], [], random)
    for ids, blank, length in zip(parsed.ids, parsed.blanks, lengths, strict=False):
        row.token_ids += ids
        row.targets += range(len(row.token_ids), len(row.token_ids) + length)
        row.token_ids += [MASK_ID] * length
        row.groups += [_WORD_BEGIN if blank.begins_word else _WORD_INSIDE]
        row.groups += [_IN_BLANK] * (length - 1)
    row.token_ids += parsed.ids[-1]
    return row


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


def check_length(model: LanguageModel, parsed: BlankText, lengths: list[int]) -> None:
    """Raises `DataError` if text and blanks are longer than the windows of training."""
    longest = model.config.data.seq_len + model.config.model.mem_len
    num_context, num_blank = sum(map(len, parsed.ids)), sum(lengths)
    expected = f"text and blanks to have at most {longest} pieces"
    got = f"{num_context} of text and {num_blank} of blanks"
    require_data(num_context + num_blank <= longest, "blanks too long", expected, got)
