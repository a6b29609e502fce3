"""Candidates for the blanks of a text, with their probabilities and ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.configs.validation import AT_LEAST_1, require, require_number
from official.xlnet.errors import require_data
from official.xlnet.files.arguments import checks_arguments
from official.xlnet.inference.generation import (
    WORD_BEGIN,
    WORD_INSIDE,
    allowed_pieces,
    check_length,
)
from official.xlnet.inference.language_model import SCORED, is_causal, loaded, require_both_sides
from official.xlnet.inference.network.finite_outputs import finite
from official.xlnet.inference.scoring import Scorer
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.tokenization.blanks import parse_blanks
from official.xlnet.tokenization.special_tokens import MASK_ID
from official.xlnet.tokenization.tokenizer import Tokenizer, checked_texts


class Candidate(NamedTuple):
    """What may stand in a blank.

    Attributes:
      string: the text.
      probability: of its pieces together, given all the text around the blank.
      rank: place among the candidates, 1 for the most probable one.
    """

    string: str
    probability: float
    rank: int


@checks_arguments("model")
def blank_candidates(
    model: str | XLNetPretrainer,
    texts: str | Sequence[str],
    candidates: int | Sequence[str] = 10,
    tokenizer: Tokenizer | None = None,
) -> Any:
    """Returns candidates for each blank of each text, the most probable ones first.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model. One
        that masks tokens (BERT) will do.
      texts: texts with blanks, written `____`; see `fill_blanks`. Other blanks than the
        one that is asked for are hidden.
      candidates: number of candidates, each of one word piece; or a list of strings of any length,
        which are put into texts of one blank and compared as they are tokenized there. A
        probability is that of all pieces of a string, from left to right.
      tokenizer: the tokenizer of a loaded model.

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
        return blank_candidates(model, [texts], candidates, tokenizer)[0]
    texts = checked_texts(texts)
    model, tokenizer = loaded(model, tokenizer, SCORED)
    if is_causal(model.config):
        require_both_sides(model.config, "fill blanks")
    if not isinstance(candidates, int):
        candidates = checked_texts([candidates] if isinstance(candidates, str) else candidates)
        require(all(candidates), "candidates", "strings that are not empty", candidates)
        scorer = Scorer(model, tokenizer)
        return [[_ranked(scorer, tokenizer, text, candidates)] for text in texts]
    require_number("candidates", candidates, AT_LEAST_1)
    is_allowed_GV = allowed_pieces(tokenizer, model.config.model.vocab_size)
    return [_pieces(model, tokenizer, text, candidates, is_allowed_GV) for text in texts]


def _ranked(
    scorer: Scorer, tokenizer: Tokenizer, text: str, candidates: list[str]
) -> list[Candidate]:
    """Given strings by their likelihood in the only blank of a text."""
    before, *after = parse_blanks(tokenizer, text).parts
    require_data(len(after) == 1, f"{text:.60}", "one blank for given candidates", len(after))
    spans = [[(len(before), len(before) + len(string))] for string in candidates]
    filled = [before + string + after[0] for string in candidates]
    scores = scorer.score(filled, targets=spans, whole_given=True)
    best_first = sorted(range(len(filled)), key=lambda n: -scores[n].total)
    return [
        Candidate(candidates[n], math.exp(scores[n].total), rank)
        for rank, n in enumerate(best_first, start=1)
    ]


def _pieces(
    model: XLNetPretrainer, tokenizer: Tokenizer, text: str, number: int, is_allowed_GV: np.ndarray
) -> list[list[Candidate]]:
    """The most probable pieces of each blank of a text."""
    parsed, ids, places = parse_blanks(tokenizer, text), list[int](), list[int]()
    for part, blank in zip(parsed.ids, parsed.blanks, strict=False):
        length = blank.length or 1
        require_data(length == 1, f"{text:.60}", "blanks of one piece, or given candidates", length)
        places.append(len(ids) + len(part))
        ids += [*part, MASK_ID]
    check_length(model, parsed, [1] * len(places), 1)
    rows, place_P1 = len(places), tf.constant(places)[:, None]
    inputs = {"token_ids": tf.constant([ids + parsed.ids[-1]] * rows)}
    if model.config.objective.kind == "denoising":
        inputs["content_positions"] = place_P1
    else:
        is_blank_T = np.isin(np.arange(inputs["token_ids"].shape[1]), places)
        order_PT = 2 * is_blank_T - tf.one_hot(places, len(is_blank_T), dtype=tf.int32)
        inputs |= {"order": order_PT, "target_positions": place_P1}
    log_p_PV = finite(tf.nn.log_softmax(model(inputs)["logits"][:, 0]).numpy())
    groups = [WORD_BEGIN if blank.begins_word else WORD_INSIDE for blank in parsed.blanks]
    allowed_PV = np.where(is_allowed_GV[groups], log_p_PV, -np.inf)
    return [
        [
            Candidate(tokenizer.decode([int(i)]), math.exp(log_p_V[i]), rank)
            for rank, i in enumerate(np.argsort(-log_p_V, kind="stable")[:number], start=1)
            if log_p_V[i] > -np.inf
        ]
        for log_p_V in allowed_PV
    ]
