"""A pre-trained model with its LM head, as scoring and generation use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
from official.xlnet.checkpoints.model_directory import load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.validation import require, require_one_of
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.tokenization.tokenizer import Tokenizer, checked_texts

_BUCKET = 128


def load_language_model(model_dir: str) -> XLNetPretrainer:
    """Returns the pre-training model of a model directory, with room for one row of memory.

    Raises:
      ConfigError: there is no usable configuration, or the model cannot score or generate text;
        see `require_language_model`.
      DataError: there is no usable checkpoint, or it holds an encoder without LM head.
    """
    config = load_config(model_dir)
    require_language_model(config)
    return load_pretrainer(model_dir, config, batch_size=1, dtype="float32")


def loaded(
    model: str | XLNetPretrainer, tokenizer: Tokenizer | None
) -> tuple[XLNetPretrainer, Tokenizer]:
    """Returns a model, loaded if it is a path, and its tokenizer.

    Raises:
      ConfigError: a loaded model comes without its tokenizer; see also `load_language_model`.
    """
    if isinstance(model, str):
        return load_language_model(model), load_tokenizer(model)
    if tokenizer is None:
        raise ConfigError("tokenizer: expected that of the loaded model, got None")
    return model, tokenizer


def for_each(texts: str | Sequence[str], function: Callable[[list[str]], list[Any]]) -> Any:
    """Returns what a function of a list gives for texts; for a single string, its only result.

    Raises:
      TypeError: a text is not a string.
    """
    if isinstance(texts, str):
        return function(checked_texts([texts]))[0]
    return function(checked_texts(texts))


def require_language_model(config: XLNetConfig) -> None:
    """Raises `ConfigError` unless a model was trained to predict a token from those before it.

    A `permutation` model does so from the query stream, a `causal` one from the content stream at
    the previous token. A `denoising` model predicts masked tokens, independently of each other.

    Args:
      config: the configuration that the model was pre-trained with.
    """
    network = config.model.network
    require(network == "xlnet", "model.network", "xlnet to score or generate text", network)
    key = "objective.kind of a model that scores or generates text"
    require_one_of(key, config.objective.kind, ("permutation", "causal"))


def window_length(config: XLNetConfig) -> int:
    """Number of tokens of a window in which a language model reads text, as in training.

    A causal model has been trained on the `reuse_len` part of the windows of its records.

    Args:
      config: the configuration that the model was pre-trained with.
    """
    data = config.data
    return (is_causal(config) and data.reuse_len) or data.seq_len


def is_causal(config: XLNetConfig) -> bool:
    """Whether a language model predicts the next token from the content stream.

    Args:
      config: the configuration that the model was pre-trained with.

    Raises:
      ConfigError: see `require_language_model`.
    """
    require_language_model(config)
    return config.objective.kind == "causal"


def require_both_sides(config: XLNetConfig, what: str) -> None:
    """Raises `ConfigError` unless a language model predicts a token from both of its sides.

    Args:
      config: the configuration that the model was pre-trained with.
      what: what the model is asked for.
    """
    expected = f"permutation to {what}, which takes the tokens on both sides"
    require(not is_causal(config), "objective.kind", expected, config.objective.kind)


def bucket(length: int) -> int:
    """Returns the static length that `length` tokens are padded to, so that few graphs compile.

    Powers of two from 16 to 128, then multiples of 128.
    """
    if length > _BUCKET:
        return -(-length // _BUCKET) * _BUCKET
    return max(16, 1 << (length - 1).bit_length())
