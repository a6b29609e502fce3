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
    from official.xlnet.checkpoint import load_encoder
    from official.xlnet.config import XLNetConfig
    from official.xlnet.encoder import XLNetEncoder
    from official.xlnet.input_pipeline import pretraining_dataset
    from official.xlnet.pretrainer import XLNetPretrainer
    from official.xlnet.tokenization import Tokenizer, load_tokenizer

__version__ = "0.1.0"

_MODULE_OF = {
    "Tokenizer": "tokenization",
    "XLNetConfig": "config",
    "XLNetEncoder": "encoder",
    "XLNetPretrainer": "pretrainer",
    "load_encoder": "checkpoint",
    "load_tokenizer": "tokenization",
    "pretraining_dataset": "input_pipeline",
}

__all__ = [
    "Tokenizer",
    "XLNetConfig",
    "XLNetEncoder",
    "XLNetPretrainer",
    "__version__",
    "load_encoder",
    "load_tokenizer",
    "pretraining_dataset",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULE_OF[name]}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
