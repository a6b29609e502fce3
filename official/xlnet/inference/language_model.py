"""A pre-trained model with its LM head, as scoring and generation use it."""

from __future__ import annotations

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.model_directory import load_pretrainer
from official.xlnet.configs.validation import require
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer

_BUCKET = 128


def load_language_model(model_dir: str) -> XLNetPretrainer:
    """Returns the pre-training model of a model directory, with room for one row of memory.

    Raises:
      ConfigError: there is no usable configuration, or it is of another network than XLNet.
      DataError: there is no usable checkpoint, or it holds an encoder without LM head.
    """
    config = load_config(model_dir)
    require(
        config.model.network == "xlnet",
        "model.network",
        "xlnet to score or generate text, which reads the query stream and a memory",
        config.model.network,
    )
    config.training = config.training.in_one_piece(batch_size=1)
    return load_pretrainer(model_dir, config)


def bucket(length: int) -> int:
    """Returns the static length that `length` tokens are padded to, so that few graphs compile.

    Powers of two from 16 to 128, then multiples of 128.
    """
    if length > _BUCKET:
        return -(-length // _BUCKET) * _BUCKET
    return max(16, 1 << (length - 1).bit_length())
