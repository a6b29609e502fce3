"""Scores, continuations and filled blanks of texts, from the path of a pre-trained model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.errors import ConfigError
from official.xlnet.files.arguments import checks_arguments
from official.xlnet.inference import generation, scoring
from official.xlnet.inference.language_model import load_language_model
from official.xlnet.inference.sampling import Sampling
from official.xlnet.inference.scoring import Score
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.tokenization.tokenizer import Tokenizer, checked_texts

Texts = list[str] | tuple[str, ...]
_DRAWN, _GREEDY = Sampling(), Sampling(temperature=0.0)


@overload
def score(
    model: str | XLNetPretrainer,
    texts: str,
    order: str = ...,
    num_orders: int = ...,
    seed: int = ...,
    tokenizer: Tokenizer | None = ...,
) -> Score: ...


@overload
def score(
    model: str | XLNetPretrainer,
    texts: Texts,
    order: str = ...,
    num_orders: int = ...,
    seed: int = ...,
    tokenizer: Tokenizer | None = ...,
) -> list[Score]: ...


@checks_arguments("model")
def score(
    model: str | XLNetPretrainer, texts, order="left_to_right", num_orders=1, seed=0, tokenizer=None
):
    """Computes the log-likelihood of texts. To score often, create a `Scorer` and keep it.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      texts: a text or a list of texts. An empty text has no tokens, and a total of 0.
      order: `left_to_right`, `random` or `pseudo`; see `Scorer`.
      num_orders: orders drawn for `random`.
      seed: random seed of the orders.
      tokenizer: the tokenizer of a loaded model.

    Returns:
      A `Score` for each text; for a text that is not in a list, its `Score`.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or the
        objective that the model was trained with does not predict this.
      DataError: the model cannot be loaded.
      TypeError: a text is not a string.

    Example:
      >>> score("runs/base", "The cat sat.").total
      -22.4
    """
    texts, is_single = _as_list(texts)
    model, tokenizer = _loaded(model, tokenizer)
    results = scoring.score(model, tokenizer, texts, order, num_orders, seed)
    return results[0] if is_single else results


@overload
def generate(
    model: str | XLNetPretrainer,
    prompts: str,
    num_tokens: int = ...,
    sampling: Sampling = ...,
    tokenizer: Tokenizer | None = ...,
) -> str: ...


@overload
def generate(
    model: str | XLNetPretrainer,
    prompts: Texts,
    num_tokens: int = ...,
    sampling: Sampling = ...,
    tokenizer: Tokenizer | None = ...,
) -> list[str]: ...


@checks_arguments("model")
def generate(model: str | XLNetPretrainer, prompts, num_tokens=64, sampling=_DRAWN, tokenizer=None):
    """Continues texts, until the end of the document or for `num_tokens` tokens.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      prompts: a text or a list of texts. An empty one is continued from nothing.
      num_tokens: maximum number of tokens to add.
      sampling: how tokens are chosen, e.g. `Sampling(temperature=0)` for greedy search.
      tokenizer: the tokenizer of a loaded model.

    Returns:
      Each text with its continuation; for a text that is not in a list, a single one.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or the
        objective that the model was trained with does not predict this.
      DataError: the model cannot be loaded.
      TypeError: a text is not a string.

    Example:
      >>> generate("runs/base", "The cat", num_tokens=3)
      'The cat sat on the'
    """
    prompts, is_single = _as_list(prompts)
    model, tokenizer = _loaded(model, tokenizer)
    results = generation.generate(model, tokenizer, prompts, num_tokens, sampling)
    return results[0] if is_single else results


@overload
def fill_blanks(
    model: str | XLNetPretrainer,
    texts: str,
    max_length: int = ...,
    sampling: Sampling = ...,
    tokenizer: Tokenizer | None = ...,
) -> str: ...


@overload
def fill_blanks(
    model: str | XLNetPretrainer,
    texts: Texts,
    max_length: int = ...,
    sampling: Sampling = ...,
    tokenizer: Tokenizer | None = ...,
) -> list[str]: ...


@checks_arguments("model")
def fill_blanks(
    model: str | XLNetPretrainer, texts, max_length=1, sampling=_GREEDY, tokenizer=None
):
    """Fills the blanks of texts, written `____`, or `____{3}` for a blank of three word pieces.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      texts: a text or a list of texts with blanks. An empty one stays empty.
      max_length: maximum number of word pieces in a blank without a length.
      sampling: how tokens are chosen; the most probable ones by default.
      tokenizer: the tokenizer of a loaded model.

    Returns:
      The filled texts; for a text that is not in a list, a single one.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or the
        objective that the model was trained with does not predict this.
      DataError: the model cannot be loaded, a text has no blank, or is too long.
      TypeError: a text is not a string.

    Example:
      >>> fill_blanks("runs/base", "The ____ sat on the ____{2}.")
      'The cat sat on the door mat.'
    """
    texts, is_single = _as_list(texts)
    model, tokenizer = _loaded(model, tokenizer)
    results = [
        generation.fill_blanks(model, tokenizer, text, max_length, sampling)
        if text.strip()
        else text
        for text in texts
    ]
    return results[0] if is_single else results


def _as_list(texts: str | Sequence[str]) -> tuple[list[str], bool]:
    """Returns a list of texts, and whether it was a single one.

    Raises:
      TypeError: a text is not a string.
    """
    if isinstance(texts, str):
        return [texts], True
    return checked_texts(texts), False


def _loaded(
    model: str | XLNetPretrainer, tokenizer: Tokenizer | None
) -> tuple[XLNetPretrainer, Tokenizer]:
    """Returns the model, loaded if it is a path, and its tokenizer."""
    if isinstance(model, str):
        return load_language_model(model), load_tokenizer(model)
    if tokenizer is None:
        raise ConfigError("tokenizer: expected that of the loaded model, got None")
    return model, tokenizer
