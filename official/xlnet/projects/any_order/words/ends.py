"""Surprisal of words with their ends.

The pieces of a vocabulary mark where a word begins, not where it ends: p(pieces of "cat") is also
that of "cats" and "category". With the event B that a word begins or the text ends,

    p(word | context) = p(pieces | context) · p(B | context, pieces) / p(B | context)

(Pimentel and Meister, 2024, equation 9; Oh and Schuler, 2024, whose probabilities are the same).
The numerator is the denominator of the next word, so surprisals still sum to that of the text, up
to the first and the last factor.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import string
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.configs.validation import require
from official.xlnet.errors import require_data
from official.xlnet.inference.language_model import window_length
from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.inference.scoring import Scorer
from official.xlnet.inference.scoring_windows import windows_of
from official.xlnet.inference.text_parts import TARGET, Span, TextParts, text_parts
from official.xlnet.projects.any_order.words import Word
from official.xlnet.tokenization.special_tokens import EOD_ID, EOP_ID, NUM_SPECIAL
from official.xlnet.tokenization.tokenizer import Tokenizer


class WordEnds:
    """Computes how likely words are to end, from left to right.

    Args:
      scorer: the model.

    Raises:
      ConfigError: the model predicts masked tokens, not from left to right.

    Example:
      >>> [log_p] = WordEnds(scorer)(["The cat"])  # ▁The ▁cat
      >>> log_p.shape  # Before each piece, and after the last one.
      (3,)
    """

    def __init__(self, scorer: Scorer):
        kind = scorer.config.objective.kind
        is_masked = scorer.config.objective.predicts_masked
        require(not is_masked, "word_ends", "a model that predicts from left to right", kind)
        self._scorer = scorer
        after_space_V, after_unspaced_V = _beginnings(scorer.tokenizer)
        self._masks = (tf.constant(after_space_V), tf.constant(after_unspaced_V))

    def __call__(
        self,
        texts: Sequence[str],
        targets: Sequence[Sequence[Span]] | None = None,
        whole_given: bool = False,
    ) -> list[np.ndarray]:
        """Returns log p(B) before each scored piece of each text, and after the last one.

        Args:
          texts: the texts; each and one piece more fit in a window.
          targets: see `Scorer`; all that is not a target is before it.
          whole_given: see `Scorer`.

        Returns:
          float64 [number of scored pieces + 1] of each text, in nats.

        Raises:
          DataError: a text is too long, or something is given after a target.
        """
        spans = targets if targets is not None else [None] * len(texts)
        parts = []
        for text, in_text in zip(texts, spans, strict=True):
            parts.append(self._with_end(text, in_text))
        results: list[np.ndarray] = [np.zeros(0)] * len(parts)
        waiting = sorted(range(len(parts)), key=lambda text: -len(parts[text].ids))
        while waiting:
            [window] = windows_of(self._scorer.config, len(parts[waiting[0]].ids))
            size = window.batch_size(len(waiting))
            batch, waiting = waiting[:size], waiting[size:]
            # Copies of the last text give the batch its static size.
            padded = [parts[text] for text in batch + (size - len(batch)) * batch[-1:]]
            orders = [window.order(text, None, whole_given) for text in padded]
            log_p_BTS = self._scorer.summary_of_predictions(
                self._log_beginnings,
                **window.inputs([text.ids for text in padded]),
                order=tf.constant(np.stack(orders), tf.int32),
            )
            for index, log_p_TS in zip(batch, finite(log_p_BTS.numpy()), strict=False):
                results[index] = self._of_targets(parts[index], log_p_TS)
        return results

    def _with_end(self, text: str, targets: Sequence[Span] | None) -> TextParts:
        """The tokens of a text and one more, whose prediction is that of what follows."""
        parts = text_parts(self._scorer.tokenizer, text, None, targets)
        longest = window_length(self._scorer.config) - 1
        expected = f"at most {longest} tokens for word_ends, one less than a window"
        require_data(len(parts.ids) <= longest, f"{text:.60}", expected, len(parts.ids))
        in_sequence = bool((np.diff(parts.role) >= 0).all())
        require_data(in_sequence, f"{text:.60}", "a context on the left for word_ends", "another")
        ids, role = np.append(parts.ids, np.int32(EOD_ID)), np.append(parts.role, TARGET)
        return dataclasses.replace(parts, ids=ids, role=role)

    def _log_beginnings(self, log_p_BTV: tf.Tensor) -> tf.Tensor:
        """Values log Σ p over the pieces of B, [B, T, S]: after a space or after no space."""
        sums = []
        for mask_V in self._masks:
            log_p_of_beginnings_BTV = tf.where(mask_V, log_p_BTV, log_p_BTV.dtype.min)
            sums.append(tf.reduce_logsumexp(log_p_of_beginnings_BTV, axis=-1))
        return tf.stack(sums, axis=-1)

    def _of_targets(self, parts: TextParts, log_p_TS: np.ndarray) -> np.ndarray:
        """The values of the targets and the end; which pieces begin a word depends on the last."""
        before = np.append(EOD_ID, parts.ids[:-1])
        is_unspaced = self._scorer.tokenizer.ends_unspaced[before]
        log_p_T = np.where(is_unspaced, log_p_TS[: len(before), 1], log_p_TS[: len(before), 0])
        return log_p_T[parts.targets].astype(float)


def _beginnings(tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """Pieces that begin a word or end the text, bool [V]: in general, and after unspaced scripts.

    Marks such as a comma are part of the word that they stand at.
    """
    pieces = [tokenizer.id_to_piece(i) for i in range(tokenizer.vocab_size)]
    is_mark_V = np.array([piece in string.punctuation for piece in pieces])
    masks = []
    for begins_V in (tokenizer.is_word_start & ~is_mark_V, tokenizer.is_start_after_unspaced):
        mask_V = np.array(begins_V[: len(pieces)])
        mask_V[:NUM_SPECIAL] = False
        mask_V[[EOD_ID, EOP_ID]] = True
        masks.append(mask_V)
    return masks[0], masks[1]


def surprisals_with_ends(
    words: Sequence[Word], log_ends: Sequence[float], unit: str = "nats"
) -> list[float]:
    """Returns the surprisal of each word with its end.

    Args:
      words: the words of a text, see `words_of`, in the same unit.
      log_ends: see `WordEnds`, in nats.
      unit: of the results, `nats` or `bits`.

    Example:
      >>> word = Word(1, "cat", 0, 3, 2, surprisal=5.0, cumulated=5.0)
      >>> surprisals_with_ends([word], [-0.5, -7.0, -1.0])
      [5.5]
    """
    scale = 1.0 if unit == "nats" else math.log(2.0)
    stops = [*itertools.accumulate(word.pieces for word in words)]
    surprisals = []
    for word, stop in zip(words, stops, strict=True):
        start = stop - word.pieces
        surprisals.append(word.surprisal + (log_ends[start] - log_ends[stop]) / scale)
    return surprisals
