"""XLNet for TensorFlow: the public API.

Names are imported when first used, so `import official.xlnet` costs nothing and does not load
TensorFlow.

Example:
  >>> from official import xlnet
  >>> config = xlnet.XLNetConfig.load("configs/tiny.yaml")
  >>> encoder = xlnet.XLNetEncoder(config)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
    from official.xlnet.checkpoints.model_directory import (
        load_encoder,
        load_pretrainer,
        save_pretrained,
    )
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.data.pretraining_dataset import pretraining_dataset
    from official.xlnet.data.reading import register_reader
    from official.xlnet.inference.embedding import embed
    from official.xlnet.modeling.heads import register_head
    from official.xlnet.modeling.layers.relative_attention import TwoStreamRelativeAttention
    from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding
    from official.xlnet.modeling.layers.relative_segment import RelativeSegmentEncoding
    from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
    from official.xlnet.modeling.layers.xlnet_block import XLNetBlock
    from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
    from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
    from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
    from official.xlnet.modeling.objectives import register_objective
    from official.xlnet.tasks.registry import register_task
    from official.xlnet.tokenization.tokenizer import Tokenizer
    from official.xlnet.training.optimization import create_optimizer

__version__ = "0.1.0"

_MODULE_OF = {
    "RelativePositionEncoding": "modeling.layers.relative_position",
    "RelativeSegmentEncoding": "modeling.layers.relative_segment",
    "Tokenizer": "tokenization.tokenizer",
    "TwoStreamAttentionMask": "modeling.layers.two_stream_mask",
    "TwoStreamRelativeAttention": "modeling.layers.relative_attention",
    "XLNetBlock": "modeling.layers.xlnet_block",
    "XLNetConfig": "configs.experiment",
    "XLNetEncoder": "modeling.networks.xlnet_encoder",
    "XLNetPretrainer": "modeling.models.xlnet_pretrainer",
    "XLNetTaskModel": "modeling.models.xlnet_task_model",
    "create_optimizer": "training.optimization",
    "embed": "inference.embedding",
    "load_config": "checkpoints.any_format",
    "load_encoder": "checkpoints.model_directory",
    "load_pretrainer": "checkpoints.model_directory",
    "load_tokenizer": "checkpoints.any_format",
    "pretraining_dataset": "data.pretraining_dataset",
    "register_head": "modeling.heads",
    "register_objective": "modeling.objectives",
    "register_reader": "data.reading",
    "register_task": "tasks.registry",
    "save_pretrained": "checkpoints.model_directory",
}

__all__ = [
    "RelativePositionEncoding",
    "RelativeSegmentEncoding",
    "Tokenizer",
    "TwoStreamAttentionMask",
    "TwoStreamRelativeAttention",
    "XLNetBlock",
    "XLNetConfig",
    "XLNetEncoder",
    "XLNetPretrainer",
    "XLNetTaskModel",
    "__version__",
    "create_optimizer",
    "embed",
    "load_config",
    "load_encoder",
    "load_pretrainer",
    "load_tokenizer",
    "pretraining_dataset",
    "register_head",
    "register_objective",
    "register_reader",
    "register_task",
    "save_pretrained",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULE_OF[name]}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
