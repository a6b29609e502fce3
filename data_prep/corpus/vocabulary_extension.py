"""Extension of a SentencePiece unigram vocabulary by pieces of a domain.

Old pieces keep their ids and scores; new ones come last. So text in which no new piece occurs is
segmented exactly as before. Candidates are whole words and the pieces of a unigram model trained on
the domain. As in the training of such a model (Kudo, 2018, section 3.2), they are pruned in rounds
by the loss of log-likelihood of the text without them; here, the old pieces are never pruned:

    score(w) = log(number of times w is used / number of all tokens of the text)
    gain(w)  = number of times w is used · (score(w) − score of the best segmentation without w)

The score of a piece is thus a log-probability on the domain's text, as old scores are on theirs,
and a piece that old ones spell more cheaply than it has no gain. Scores stay in the range of the
old ones, from which SentencePiece derives the scores of unknown characters
and user-defined symbols.
"""

from __future__ import annotations

import collections
import dataclasses
import re

import numpy as np
from sentencepiece import SentencePieceProcessor

from data_prep.corpus.vocabulary import Sample, train_unigram
from data_prep.settings import MAX_VOCAB_SIZE
from official.xlnet.errors import DataError, require_data
from official.xlnet.tokenization.sentencepiece_proto import (
    NORMAL,
    UNIGRAM,
    UNKNOWN_PENALTY,
    parse_model,
)
from official.xlnet.tokenization.special_tokens import UNK_ID, WORD_START
from official.xlnet.tokenization.tokenizer import Tokenizer

_KEPT = 0.75  # Share of the candidates that a round keeps; SentencePiece's shrinking factor.
_MAX_PIECE_CHARS = 16  # SentencePiece's limit.
_SPLIT_BY_TOKENIZER = re.compile(r"\d,$")  # See `tokenizer`: such a piece never is a token.


@dataclasses.dataclass(frozen=True)
class Extension:
    """A vocabulary with new pieces at its end.

    Attributes:
      model_proto: the SentencePiece model, serialized.
      replaced: for each new piece, the ids of the old pieces that spelled it before.
      log_share: float64, for each new piece, log of the share that it takes of the occurrences of
        an old piece that it replaces, averaged over these pieces; at most 0.
      tokens_before: tokens of the text in the old vocabulary.
      tokens_after: tokens of the text in the new vocabulary.
    """

    model_proto: bytes
    replaced: list[list[int]]
    log_share: np.ndarray
    tokens_before: int
    tokens_after: int


def extend_vocabulary(tokenizer: Tokenizer, sample: Sample, num_pieces: int) -> Extension:
    """Adds the pieces to a vocabulary that gain most on the text of a domain.

    Args:
      tokenizer: tokenizer with the old vocabulary.
      sample: text of the domain, normalized as the tokenizer does.
      num_pieces: number of pieces to add.

    Returns:
      The extended vocabulary, and the old pieces that each new piece replaces.

    Raises:
      DataError: the vocabulary is not a unigram model or would be too large, or the text does not
        have so many pieces that gain anything.
    """
    if tokens := tokenizer.added_tokens:
        raise DataError(f"expected a vocabulary without added tokens, got {[*tokens.values()]}")
    old = _Vocabulary(tokenizer)
    if old.size + num_pieces > MAX_VOCAB_SIZE:
        raise DataError(
            f"expected at most {MAX_VOCAB_SIZE - old.size:,} new pieces for a vocabulary of "
            f"{old.size:,}, got {num_pieces:,}"
        )
    words = collections.Counter(word for line in sample.sentences for word in line.split())
    scores, is_pruned = _candidates(sample, words, old, num_pieces), False
    while True:
        counts_V = _counts(old.extended(scores), words)
        used = counts_V[old.size :]
        scores = dict(zip(scores, np.log(np.maximum(used, 1) / counts_V.sum()), strict=True))
        if is_pruned and len(scores) == num_pieces:
            return _extension(old, scores, words)
        gains = used * (np.array([*scores.values()]) - old.scores_without(scores))
        ranked = sorted((-gain, w) for w, gain in zip(scores, gains, strict=True) if gain > 0)
        if len(ranked) < num_pieces:
            raise DataError(
                f"not enough text for {num_pieces:,} new pieces: found {len(ranked):,} that the "
                "vocabulary lacks and that the text would use"
            )
        kept = ranked[: max(num_pieces, int(_KEPT * len(scores)))]
        scores, is_pruned = {piece: scores[piece] for _, piece in kept}, True


class _Vocabulary:
    """The old vocabulary, to which pieces are added.

    Attributes:
      size: its number of pieces.
      pieces: the pieces.
      keep_whitespace: see `Tokenizer`.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._model_proto, self.keep_whitespace = tokenizer.model_proto, tokenizer.keep_whitespace
        model = parse_model(self._model_proto)
        require_data(
            model.trainer_spec.model_type == UNIGRAM,
            f"vocabulary {tokenizer.model_file!r}",
            "a unigram model, which can be extended",
            "another type",
        )
        self.size = len(model.pieces)
        self.pieces = {piece.piece for piece in model.pieces}
        normal = [piece.score for piece in model.pieces if piece.type == NORMAL]
        self._lowest, self._highest = min(normal), max(normal)

    def extended(self, scores: dict[str, float], of_words: bool = True) -> bytes:
        """The serialized model with new pieces.

        Args:
          scores: {new piece: score}.
          of_words: whether the model segments text, in which a space comes before the first word,
            or the given strings unchanged.
        """
        model = parse_model(self._model_proto)
        for piece, score in scores.items():
            model.pieces.add(piece=piece, score=np.clip(score, self._lowest, self._highest))
        model.trainer_spec.vocab_size = len(model.pieces)
        if not of_words:
            model.normalizer_spec.add_dummy_prefix = False
            model.normalizer_spec.remove_extra_whitespaces = False
        return model.SerializeToString()

    def scores_without(self, scores: dict[str, float]) -> np.ndarray:
        """For each new piece, the score of its best segmentation into other pieces."""
        processor = SentencePieceProcessor(model_proto=self.extended(scores, of_words=False))
        score_V = np.array([processor.get_score(i) for i in range(processor.vocab_size())])
        score_V[UNK_ID] = self._lowest - UNKNOWN_PENALTY
        best_two = processor.nbest_encode([_text(piece) for piece in scores], nbest_size=2)
        others = [
            next((ids for ids in candidates if ids != [self.size + piece_number]), [UNK_ID])
            for piece_number, candidates in enumerate(best_two)
        ]
        return np.array([score_V[ids].sum() for ids in others])


def _candidates(
    sample: Sample, words: collections.Counter[str], old: _Vocabulary, num_pieces: int
) -> dict[str, float]:
    """{piece: score} of pieces of the domain that the old vocabulary lacks.

    The pieces of a unigram model that is large enough for twice the number of new pieces asked for,
    and the most frequent words: SentencePiece starts from strings that two different words share,
    so a word that stands alone is not among its pieces.
    """
    size = old.size + 2 * num_pieces + len(sample.characters)
    model_proto = train_unigram(
        sample.sentences, size, allow_fewer=True, whitespace=old.keep_whitespace
    )
    whole = {
        WORD_START + word: np.log(count / words.total())
        for word, count in words.most_common(size)
        if count > 1 and word.isalpha() and len(word) < _MAX_PIECE_CHARS
    }
    parts = {
        piece.piece: piece.score
        for piece in parse_model(model_proto).pieces
        if piece.type == NORMAL
    }
    return {
        piece: score
        for piece, score in (whole | parts).items()
        if piece not in old.pieces and not _SPLIT_BY_TOKENIZER.search(piece)
    }


def _extension(
    old: _Vocabulary, scores: dict[str, float], words: collections.Counter[str]
) -> Extension:
    """The extension by pieces with their scores, the most frequent one first."""
    scores = dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
    model_proto = old.extended(scores)
    counts_V = _counts(model_proto, words)
    used = np.maximum(counts_V[old.size :], 1)
    speller = SentencePieceProcessor(model_proto=old.extended({}, of_words=False))
    replaced = speller.encode([_text(piece) for piece in scores])
    occurrences_V = counts_V[: old.size].astype(np.float64)
    for ids, count in zip(replaced, used, strict=True):
        np.add.at(occurrences_V, ids, count)
    log_share = [
        float(np.mean(np.log(count / occurrences_V[ids])))
        for ids, count in zip(replaced, used, strict=True)
    ]
    return Extension(
        model_proto,
        replaced,
        np.array(log_share),
        tokens_before=int(_counts(old.extended({}), words).sum()),
        tokens_after=int(counts_V.sum()),
    )


def _counts(model_proto: bytes, words: collections.Counter[str]) -> np.ndarray:
    """Number of times that each piece is used, int64 [V]: no piece goes beyond a word."""
    processor = SentencePieceProcessor(model_proto=model_proto)
    ids = processor.encode([*words], return_type="numpy")
    times = np.repeat([*words.values()], [len(row) for row in ids])
    counts_V = np.bincount(np.concatenate(ids), times, minlength=processor.vocab_size())
    return counts_V.astype(np.int64)


def _text(piece: str) -> str:
    """The text that a piece stands for."""
    return piece.replace(WORD_START, " ")
