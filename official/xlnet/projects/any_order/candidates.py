"""Candidates for the blanks of a text, with their probabilities and ranks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.configs.registry import PUBLIC_NAMES
from official.xlnet.configs.validation import require
from official.xlnet.errors import require_data
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range
from official.xlnet.inference.decoding.target_rows import (
    SPACE_OR_WORD,
    allowed_pieces,
    blank_row,
    check_length,
)
from official.xlnet.inference.language_model import (
    loaded,
    require_both_sides,
)
from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.inference.scoring import Scorer
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.tokenization.batches.arguments import checked_texts
from official.xlnet.tokenization.blanks import BlankText, parse_blanks
from official.xlnet.tokenization.tokenizer import Tokenizer

# Sequences of a beam: twice the candidates and some more, after the last piece many times as many.
_WIDTH, _LAST = 16, 8
_ROWS = 64  # Sequences that run together.


class Candidate(NamedTuple):
    """A candidate for a blank.

    Attributes:
      string: the text.
      probability: of its pieces together, given all the text around the blank.
      rank: place among the candidates, 1 for the most probable one.
    """

    string: str
    probability: float
    rank: int


@PUBLIC_NAMES.register("blank_candidates")
@public()
def blank_candidates(
    model: AnyPath | LanguageModel,
    texts: str | Sequence[str],
    candidates: Annotated[int, Range(1)] | Sequence[str] = 10,
    tokenizer: Tokenizer | None = None,
    max_length: Annotated[int, Range(1)] = 1,
) -> Any:
    """Returns candidates for each blank of each text, the most probable ones first.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model. One
        that masks tokens (BERT) will do.
      texts: texts with blanks, written `____`; see `fill_blanks`. Other blanks than the
        one that is asked for are hidden.
      candidates: number of candidates; or a list of strings of any length, which are put into
        texts of one blank and compared as they are tokenized there. The probability of a string
        is the product over its pieces, from left to right.
      tokenizer: the tokenizer of a loaded model.
      max_length: without a list, maximum number of word pieces of a candidate in a blank without a
        length. They are found by a beam search; see docs/any_order.md.

    Returns:
      For each text, for each of its blanks, its candidates; a single string has no first axis.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or a
        causal model is asked, which does not read the text on the right.
      DataError: the model cannot be loaded, a text has no blank, or one that is too long.

    Example:
      >>> blank_candidates("runs/base", ["The ____ sat."], ["cat", "door mat"])[0][0][0]
      Candidate(string='cat', probability=0.012, rank=1)
    """
    if isinstance(texts, str):
        return blank_candidates(model, [texts], candidates, tokenizer, max_length)[0]
    texts = checked_texts(texts)
    pretrainer, its_tokenizer = loaded(model, tokenizer, takes_masked=True)
    rank = ranker(pretrainer, its_tokenizer, candidates, max_length)
    return [rank(text) for text in texts]


def ranker(
    model: LanguageModel, tokenizer: Tokenizer, candidates: int | Sequence[str], max_length: int
) -> Callable[[str], list[list[Candidate]]]:
    """Returns a function from a text to the candidates for each of its blanks.

    Args:
      model: the model.
      tokenizer: its tokenizer.
      candidates: see `blank_candidates`.
      max_length: see `blank_candidates`.
    """
    require_both_sides(model.config, "fill blanks")
    if isinstance(candidates, int):
        return _BeamSearch(model, tokenizer, candidates, max_length).candidates
    are_texts = all(map(str.strip, candidates))
    require(are_texts, "candidates", "strings that are not empty", candidates)
    return _Choices(Scorer(model, tokenizer), candidates).candidates


@dataclasses.dataclass(frozen=True)
class _Choices:
    """Ranks strings by their likelihood in the only blank of a text.

    Attributes:
      scorer: the model.
      strings: the strings.
    """

    scorer: Scorer
    strings: Sequence[str]

    def candidates(self, text: str) -> list[list[Candidate]]:
        """The candidates for each blank of a text."""
        before, *after = parse_blanks(self.scorer.tokenizer, text).parts
        require_data(len(after) == 1, f"{text:.60}", "one blank for given candidates", len(after))
        spans = [[(len(before), len(before) + len(string))] for string in self.strings]
        filled = [before + string + after[0] for string in self.strings]
        scores = self.scorer.score(filled, targets=spans, whole_given=True)
        totals = [score.total for score in scores]
        return [_sorted(zip(self.strings, totals, strict=True))]


class _BeamSearch:
    """Finds the most probable strings for blanks.

    Args:
      model: the model.
      tokenizer: its tokenizer.
      num_candidates: number of strings for each blank.
      max_length: maximum number of pieces of a blank without a length.
    """

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, num_candidates: int, max_length: int
    ):
        self._model: Any = model
        self._tokenizer = tokenizer
        self._num_candidates = num_candidates
        self._max_length = max_length
        self._is_allowed_GV = allowed_pieces(tokenizer, model.config.model.vocab_size)

    def candidates(self, text: str) -> list[list[Candidate]]:
        """The candidates for each blank of a text."""
        parsed = parse_blanks(self._tokenizer, text)
        return [self._most_probable(parsed, blank) for blank in range(len(parsed.blanks))]

    def _most_probable(self, parsed: BlankText, index: int) -> list[Candidate]:
        """The most probable strings in one of the blanks of a text."""
        blank = parsed.blanks[index]
        log_likelihoods: dict[str, float] = {}
        for length in [blank.length] if blank.length else range(1, self._max_length + 1):
            lengths = [other.length or 1 for other in parsed.blanks]
            lengths[index] = length
            check_length(self._model, parsed, lengths)
            row = blank_row(parsed, lengths, np.random.default_rng())
            part = slice(sum(lengths[:index]), sum(lengths[: index + 1]))
            groups = row.groups[part]
            if blank.begins_word and length > 1:
                groups[0] = SPACE_OR_WORD
            sequences = self._sequences(row.token_ids, row.targets, part, groups)
            for log_p, ids in sequences:
                string = self._tokenizer.decode(ids)
                if not blank.begins_word:  # The tokenizer would not cut at the blank.
                    log_likelihoods[string] = max(log_p, log_likelihoods.get(string, -math.inf))
                elif self._tokenizer.encode(string)[-length:] == ids:
                    log_likelihoods[string] = log_p
        return _sorted(log_likelihoods.items())[: self._num_candidates]

    def _sequences(
        self, token_ids: list[int], all_targets: list[int], part: slice, groups: list[int]
    ) -> Iterator[tuple[float, list[int]]]:
        """Yields sequences of pieces at some targets and their log-likelihoods: a beam.

        A target is predicted from the context and the targets before it; other blanks are hidden.
        """
        targets = all_targets[part]
        order_T = np.zeros(len(token_ids), np.int32)
        order_T[all_targets] = len(targets) + 1
        order_T[targets] = np.arange(1, len(targets) + 1)
        width = 2 * self._num_candidates + _WIDTH
        log_p_W, ids_WT = np.zeros(1), np.array([token_ids])
        for place, is_allowed_V in zip(targets, self._is_allowed_GV[groups], strict=True):
            # More for the last piece, as strings that the tokenizer would not make are left out.
            width *= _LAST if place == targets[-1] else 1
            beam_3X = np.zeros([3, 0])  # Log-likelihoods, rows of the beam, pieces.
            for first in range(0, len(ids_WT), _ROWS):
                rows = slice(first, first + _ROWS)
                log_p_RV = log_p_W[rows, None] + self._log_p(ids_WT[rows], order_T, place)
                row_X, piece_X = np.nonzero(np.broadcast_to(is_allowed_V, log_p_RV.shape))
                beam_3X = np.c_[beam_3X, [log_p_RV[row_X, piece_X], first + row_X, piece_X]]
                beam_3X = beam_3X[:, np.argsort(-beam_3X[0], kind="stable")[:width]]
            log_p_W, (row_W, piece_W) = beam_3X[0], beam_3X[1:].astype(int)
            ids_WT = ids_WT[row_W]
            ids_WT[:, place] = piece_W
        return zip(log_p_W.tolist(), ids_WT[:, targets].tolist(), strict=True)

    def _log_p(self, ids_RT: np.ndarray, order_T: np.ndarray, place: int) -> np.ndarray:
        """Log-likelihoods of all pieces at one place of some rows, float32 [R, V]."""
        place_R1 = tf.fill([len(ids_RT), 1], place)
        inputs = {"token_ids": tf.constant(ids_RT, tf.int32)}
        if self._model.config.objective.predicts_masked:
            inputs["content_positions"] = place_R1
        else:
            inputs["order"] = tf.tile(order_T[None], [len(ids_RT), 1])
            inputs["target_positions"] = place_R1
        return finite(tf.nn.log_softmax(self._model(inputs)["logits"][:, 0]).numpy())


def _sorted(strings: Iterable[tuple[str, float]]) -> list[Candidate]:
    """Candidates of strings and their log-likelihoods."""
    best_first = sorted(strings, key=lambda candidate: -candidate[1])
    return [
        Candidate(string, math.exp(log_p), rank)
        for rank, (string, log_p) in enumerate(best_first, 1)
    ]
