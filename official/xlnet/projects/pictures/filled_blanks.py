"""Texts of a data set with a blank, and the words that a model fills in."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from official import xlnet
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.inference.language_model import is_causal
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.tokenization.blanks import has_blank
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer

_NUM_TEXTS = 3
_NUM_CANDIDATES = 5  # Of each blank.
_NUM_TOKENS_AROUND = 20  # On either side of a blank.


def filled_blanks(
    model: XLNetPretrainer, records: Records, directory: str
) -> list[tuple[str, str, str]]:
    """Hides a word in a few held-out texts and lets the model predict it.

    Args:
      model: the model.
      records: the data set; without held-out texts, its training texts are used.
      directory: the model directory, with the vocabulary.

    Returns:
      For each text, the text with the blank, the hidden word, and the model's candidates with
      their probabilities. Empty for a causal model, which does not read the text after a blank,
      and if no project computes candidates.
    """
    blank_candidates = getattr(xlnet, "blank_candidates", None)  # Another project has it.
    if blank_candidates is None or is_causal(model.config):
        return []
    tokenizer = Tokenizer(os.path.join(directory, VOCAB_FILE))
    hidden_words = _texts_with_a_blank(records, tokenizer)
    if not hidden_words:
        return []
    candidates_of_texts = blank_candidates(model, [*hidden_words], _NUM_CANDIDATES, tokenizer)
    rows = []
    for (text, word), (candidates,) in zip(hidden_words.items(), candidates_of_texts, strict=True):
        parts = [f"{candidate.string} {candidate.probability:.0%}" for candidate in candidates]
        rows.append((text, word, ", ".join(parts)))
    return rows


def _texts_with_a_blank(records: Records, tokenizer: Tokenizer) -> dict[str, str]:
    """Returns {text with a blank: the hidden word}."""
    split = "heldout" if "heldout" in records.manifest.splits else "train"
    num_rows = records.largest_batch(split, 4 * _NUM_TEXTS)
    windows = records.batches(num_rows, split, epochs=1).unbatch().take(8 * num_rows)
    hidden_words: dict[str, str] = {}
    for window in windows:
        if not window["is_reversed"]:
            ids = window["token_ids"].numpy()[: records.manifest.reuse_len]
            hidden_words |= _hide_a_word(ids, window["is_word_start"].numpy(), tokenizer)
        if len(hidden_words) == _NUM_TEXTS:
            break
    return hidden_words


def _hide_a_word(
    ids: np.ndarray, is_word_start: np.ndarray, tokenizer: Tokenizer
) -> Mapping[str, str]:
    """Returns {text with a blank: the hidden word}, empty if the text has no suitable word.

    The word is the first one in the second half of the text that is a token of its own.
    """
    for place in range(len(ids) // 2, len(ids) - 1):
        word = tokenizer.id_to_piece(int(ids[place]))[1:]
        if word.isalpha() and is_word_start[place : place + 2].all():
            start = max(0, place - _NUM_TOKENS_AROUND)
            before = tokenizer.decode(ids[start:place].tolist())
            after = tokenizer.decode(ids[place + 1 : place + _NUM_TOKENS_AROUND].tolist())
            if has_blank(before + after):
                return {}
            return {f"{before} ____ {after}": word}
    return {}
