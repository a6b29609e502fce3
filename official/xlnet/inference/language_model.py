"""A pre-trained model with its LM head, as scoring and generation use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
from official.xlnet.checkpoints.restoring import restore
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.objective import ObjectiveConfig
from official.xlnet.configs.registry import OBJECTIVES
from official.xlnet.configs.validation import require, require_one_of, require_type
from official.xlnet.errors import ConfigError, require_config, require_data
from official.xlnet.modeling.models.language_model import LanguageModel, LanguageModule
from official.xlnet.runtime.host import host_state_kept
from official.xlnet.runtime.progress import waiting
from official.xlnet.tokenization.batches.arguments import checked_texts
from official.xlnet.tokenization.tokenizer import Tokenizer

_BUCKET = 128
_GENERATED = ("permutation", "causal")  # Values of `objective.kind` whose models generate.


class PickledByPath:
    """Base class of models in use, which are pickled as the path that they were loaded from."""

    _made_from: tuple[Any, ...] = ()  # The arguments, if the first one is a path.

    def __reduce__(self) -> tuple:
        name = type(self).__name__
        expected = f"a {name} of a path to be pickled"
        require_config(bool(self._made_from), name, expected, "one of weights in memory")
        return type(self), self._made_from


def loaded(
    model: str | LanguageModel,
    tokenizer: Tokenizer | None = None,
    takes_masked: bool = False,
) -> tuple[LanguageModel, Tokenizer]:
    """Returns a model and its tokenizer.

    Args:
      model: the model; or its directory, from which encoder and LM head are loaded.
      tokenizer: the tokenizer of a loaded model.
      takes_masked: see `require_language_model`.

    Raises:
      ConfigError: there is no usable configuration, the model cannot score or generate text, or a
        loaded model comes without its tokenizer.
      DataError: there is no usable checkpoint, or it holds an encoder without LM head.
    """
    if isinstance(model, str):
        config = load_config(model)
        require_language_model(config, takes_masked)
        with waiting("reading the model"), host_state_kept():
            language_model = LanguageModule(config)
            restore(model, encoder=language_model.encoder, lm_head=language_model.lm_head)
        return language_model, load_tokenizer(model)
    if tokenizer is None:
        raise ConfigError("tokenizer: expected the loaded model's tokenizer, got None")
    require_type("model", model, LanguageModel)
    require_language_model(model.config, takes_masked)
    return model, tokenizer


def for_each(texts: str | Sequence[str], function: Callable[[list[str]], list[Any]]) -> Any:
    """Returns what a function of a list gives for texts; for a single string, its only result.

    Raises:
      TypeError: a text is not a string.
    """
    if isinstance(texts, str):
        return function(checked_texts([texts]))[0]
    return function(checked_texts(texts))


def require_language_model(config: XLNetConfig, takes_masked: bool = False) -> None:
    """Raises `ConfigError` unless a model was trained to predict tokens as it is asked to.

    A `permutation` model predicts a token from the query stream, a `causal` one from the content
    stream at the previous token, a model of `<mask>` from the content stream where it is masked.

    Args:
      config: the configuration that the model was pre-trained with.
      takes_masked: whether a model of `<mask>` will do, as for scoring.
    """
    network, objective = config.model.network, config.objective
    can = network == "xlnet" or takes_masked
    require(can, "model.network", "xlnet to generate text or to export a head of language", network)
    if objective.kind in _GENERATED or (takes_masked and objective.predicts_masked):
        return
    kinds, verb = list(_GENERATED), "generates"
    if takes_masked:
        verb = "scores"
        for name in OBJECTIVES.names():
            if ObjectiveConfig.create(kind=name).predicts_masked:
                kinds.append(name)
    require_one_of(f"objective.kind of a model that {verb} text", objective.kind, kinds)


def window_length(config: XLNetConfig) -> int:
    """Number of tokens of a window in which a language model reads text, as in training.

    A causal model has been trained on the `reuse_len` part of the windows of its records.

    Args:
      config: the configuration that the model was pre-trained with.
    """
    data = config.data
    return (is_causal(config) and data.reuse_len) or data.seq_len


def require_one_window(
    config: XLNetConfig, text: str, num_tokens: int, purpose: str, place: str = ""
) -> None:
    """Raises `DataError` if a text is longer than a window.

    Args:
      config: the configuration that the model was pre-trained with.
      text: the text, for the error.
      num_tokens: number of its tokens.
      purpose: of one window, for the error.
      place: where the text is from, for the error.
    """
    longest = window_length(config)
    where = f"{place}, {text:.60}" if place else f"{text:.60}"
    got = f"{num_tokens} tokens, more than {longest}"
    require_data(num_tokens <= longest, where, f"a text of one window for {purpose}", got)


def require_windows(
    config: XLNetConfig,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    purpose: str,
    places: Sequence[str] = (),
) -> None:
    """Raises `DataError` if one of some texts is longer than a window; its tokens are not counted.

    Args:
      config: the configuration that the model was pre-trained with.
      tokenizer: its tokenizer.
      texts: the texts.
      purpose: of one window, for the error.
      places: where each text is from, for the error.
    """
    with tokenizer.uncounted():
        for index, text in enumerate(texts):
            place = places[index] if places else ""
            require_one_window(config, text, len(tokenizer.encode(text)), purpose, place)


def is_causal(config: XLNetConfig) -> bool:
    """Whether a language model predicts the next token from the content stream.

    Args:
      config: the configuration that the model was pre-trained with.
    """
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
