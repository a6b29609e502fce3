"""Effective context length of language models, relative to each other (RECL).

Dai et al. (2019), Transformer-XL, appendix C, https://arxiv.org/abs/1901.02860. Models i have the
loss l_i(c, t) at word t, given the c words before it. A longer context c' counts as far as it is
better than the best model with c:

    b(c, t) = min_i l_i(c, t)
    f_i(c, c') = mean of min(b(c, t), l_i(c', t)) over the words t that have the largest b(c, t)
    g_i(c, c') = 1 - exp(f_i(c, c')) / exp(f_i(c, c))

The effective length of a model is the first c from which a longer one gains less than 1%.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from official.xlnet.configs.validation import require
from official.xlnet.errors import require_data

if TYPE_CHECKING:
    from official.xlnet.inference.scoring import Scorer


def losses_by_context(scorer: Scorer, texts: Sequence[str], lengths: Sequence[int]) -> np.ndarray:
    """Computes the loss of the last word of each text, given only some of the words before it.

    Args:
      scorer: the model.
      texts: texts with more words than the longest context; words are separated by spaces.
      lengths: numbers of words of the contexts, each at least 1.

    Returns:
      float64 [lengths, texts], in nats per word, whatever the vocabulary.

    Raises:
      DataError: a text has too few words.

    Example:
      >>> losses_by_context(scorer, ["the cat sat on the mat"], [1, 5]).round(1)
      array([[6.1], [4.9]])
    """
    words = [text.split() for text in texts]
    for text_number, text in enumerate(words):
        expected = f"more than {max(lengths)} words, for the longest context"
        require_data(len(text) > max(lengths), f"text {text_number}", expected, str(len(text)))
    parts = [text[-length - 1 :] for length in lengths for text in words]
    read = [" ".join(part) for part in parts]
    last = [[(len(x) - len(part[-1]), len(x))] for x, part in zip(read, parts, strict=True)]
    scores = scorer.score(read, targets=last, whole_given=True)
    return -np.reshape([score.total for score in scores], [len(lengths), len(texts)])


def relative_context_lengths(
    losses: Mapping[str, np.ndarray], lengths: Sequence[int], hardest: float = 1.0
) -> dict[str, int]:
    """Computes the effective context length of each model of a group.

    Args:
      losses: {name of a model: float [lengths, words]}, of the same words; see `losses_by_context`.
      lengths: lengths of the contexts, ascending.
      hardest: fraction of words, those with the highest losses, that are compared; r in the paper.

    Returns:
      {name: length}; the last length if every longer context gains at least 1%.

    Raises:
      ConfigError: `lengths` does not ascend, or `hardest` is not in (0, 1].

    Example:
      >>> relative_context_lengths({"causal": [[3.0], [2.0], [2.0]]}, [4, 8, 16])
      {'causal': 8}
    """
    require(list(lengths) == sorted(set(lengths)), "lengths", "ascending numbers", lengths)
    require(0 < hardest <= 1, "hardest", "a fraction above 0, at most 1", hardest)
    losses_MCT = np.stack([np.asarray(of_model, float) for of_model in losses.values()])
    best_CT = losses_MCT.min(axis=0)[:-1]
    num_hard = max(1, round(hardest * best_CT.shape[1]))
    hard_1CH = np.argsort(-best_CT, axis=1, kind="stable")[None, :, :num_hard]
    change_MCT = np.minimum(losses_MCT[:, 1:] - best_CT, 0)
    gain_MC = 1 - np.exp(np.take_along_axis(change_MCT, hard_1CH, axis=2).mean(axis=2))
    is_enough_MC = np.pad(gain_MC < 0.01, [(0, 0), (0, 1)], constant_values=True)
    stops = zip(losses, is_enough_MC.argmax(axis=1).tolist(), strict=True)
    return {name: lengths[stop] for name, stop in stops}
