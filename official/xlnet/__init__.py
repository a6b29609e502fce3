"""XLNet for TensorFlow: the public API.

Names are imported when first used, so `import official.xlnet` costs nothing and does not load
TensorFlow.

Example:
  >>> from official import xlnet
  >>> config = xlnet.XLNetConfig.load("configs/tiny.yaml")
  >>> encoder = xlnet.XLNetEncoder(config)
"""

# ruff: noqa: F401  `__all__` has the names that are imported for type checkers.

import contextlib
import glob
import importlib
import os
import random
from typing import TYPE_CHECKING, Any

from official.xlnet.configs.registry import PUBLIC_NAMES
from official.xlnet.files.former_modules import register_former_modules
from official.xlnet.modeling.ops.keras_names import register_names

# Device files of NVIDIA, AMD and WSL. TensorFlow reports an error of cuInit if there is no GPU.
_HAS_GPU = any(map(glob.glob, ("/dev/nvidia*", "/dev/kfd", "/dev/dxg")))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Read when TensorFlow is imported.

if TYPE_CHECKING:
    import official.xlnet.testing as testing
    from data_prep.corpus.formats import register_format
    from official.xlnet.api.convert import convert
    from official.xlnet.api.evaluate import evaluate
    from official.xlnet.api.export import export
    from official.xlnet.api.finetune import finetune
    from official.xlnet.api.prepare import prepare
    from official.xlnet.api.pretrain import pretrain
    from official.xlnet.api.verbs import register_verb
    from official.xlnet.api.vocab import train_vocabulary
    from official.xlnet.checkpoints.adapters import load_adapters, save_adapters
    from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
    from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
    from official.xlnet.checkpoints.restoring import load_encoder
    from official.xlnet.checkpoints.saving import save_pretrained
    from official.xlnet.configs.base import register_settings
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.data.pretraining_dataset import pretraining_dataset
    from official.xlnet.data.reading import register_reader
    from official.xlnet.files.urls import register_file_system
    from official.xlnet.inference.decoding.sampling import Sampling
    from official.xlnet.inference.embedding import TextEmbedder, embed
    from official.xlnet.inference.generation import fill_blanks, generate
    from official.xlnet.inference.orders import register_order
    from official.xlnet.inference.scoring import Scorer, score
    from official.xlnet.jobs.keras_model import load_model
    from official.xlnet.jobs.prediction import Predictor, predict
    from official.xlnet.jobs.vocabulary import extend_vocabulary
    from official.xlnet.modeling.depth.stacked import register_depth
    from official.xlnet.modeling.heads import register_head
    from official.xlnet.modeling.kernels.product_type import matmul_precision
    from official.xlnet.modeling.layers.relative_attention import TwoStreamRelativeAttention
    from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding
    from official.xlnet.modeling.layers.relative_segment import RelativeSegmentEncoding
    from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
    from official.xlnet.modeling.layers.xlnet_block import XLNetBlock
    from official.xlnet.modeling.models.lora import add_lora, merge_lora
    from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
    from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
    from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
    from official.xlnet.modeling.networks.encoder import register_network
    from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
    from official.xlnet.modeling.objectives import register_objective
    from official.xlnet.modeling.objectives.auxiliary import register_auxiliary
    from official.xlnet.modeling.ops.initializers import register_attention_init
    from official.xlnet.runtime.distribution import register_strategy
    from official.xlnet.runtime.history import read_history
    from official.xlnet.runtime.pages import register_page
    from official.xlnet.serving.services.base import register_service
    from official.xlnet.tasks.preprocessor import Preprocessor
    from official.xlnet.tasks.task import register_task
    from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
    from official.xlnet.tokenization.tokenizer import Tokenizer
    from official.xlnet.training.optimization import create_optimizer, register_optimizer
    from official.xlnet.training.schedules import register_schedule

__version__ = "1.0.0"  # The only place: the distribution and the site read it.

importlib.import_module(f"{__name__}.projects")

register_names()
register_former_modules()

# The modules of the public names, as type checkers read them above.
_MODULE_OF = {
    "GraphTokenizer": "official.xlnet.tokenization.graph.tokenizer",
    "Predictor": "official.xlnet.jobs.prediction",
    "Preprocessor": "official.xlnet.tasks.preprocessor",
    "RelativePositionEncoding": "official.xlnet.modeling.layers.relative_position",
    "RelativeSegmentEncoding": "official.xlnet.modeling.layers.relative_segment",
    "Sampling": "official.xlnet.inference.decoding.sampling",
    "Scorer": "official.xlnet.inference.scoring",
    "TextEmbedder": "official.xlnet.inference.embedding",
    "Tokenizer": "official.xlnet.tokenization.tokenizer",
    "TwoStreamAttentionMask": "official.xlnet.modeling.layers.two_stream_mask",
    "TwoStreamRelativeAttention": "official.xlnet.modeling.layers.relative_attention",
    "XLNetBlock": "official.xlnet.modeling.layers.xlnet_block",
    "XLNetClassifier": "official.xlnet.modeling.models.xlnet_classifier",
    "XLNetConfig": "official.xlnet.configs.experiment",
    "XLNetEncoder": "official.xlnet.modeling.networks.xlnet_encoder",
    "XLNetPretrainer": "official.xlnet.modeling.models.xlnet_pretrainer",
    "XLNetTaskModel": "official.xlnet.modeling.models.xlnet_task_model",
    "add_lora": "official.xlnet.modeling.models.lora",
    "convert": "official.xlnet.api.convert",
    "create_optimizer": "official.xlnet.training.optimization",
    "embed": "official.xlnet.inference.embedding",
    "evaluate": "official.xlnet.api.evaluate",
    "export": "official.xlnet.api.export",
    "extend_vocabulary": "official.xlnet.jobs.vocabulary",
    "fill_blanks": "official.xlnet.inference.generation",
    "finetune": "official.xlnet.api.finetune",
    "generate": "official.xlnet.inference.generation",
    "load_adapters": "official.xlnet.checkpoints.adapters",
    "load_config": "official.xlnet.checkpoints.any_format",
    "load_encoder": "official.xlnet.checkpoints.restoring",
    "load_model": "official.xlnet.jobs.keras_model",
    "load_pretrainer": "official.xlnet.checkpoints.pretrained_directory",
    "load_tokenizer": "official.xlnet.checkpoints.any_format",
    "matmul_precision": "official.xlnet.modeling.kernels.product_type",
    "merge_lora": "official.xlnet.modeling.models.lora",
    "predict": "official.xlnet.jobs.prediction",
    "prepare": "official.xlnet.api.prepare",
    "pretrain": "official.xlnet.api.pretrain",
    "pretraining_dataset": "official.xlnet.data.pretraining_dataset",
    "read_history": "official.xlnet.runtime.history",
    "register_attention_init": "official.xlnet.modeling.ops.initializers",
    "register_auxiliary": "official.xlnet.modeling.objectives.auxiliary",
    "register_depth": "official.xlnet.modeling.depth.stacked",
    "register_file_system": "official.xlnet.files.urls",
    "register_format": "data_prep.corpus.formats",
    "register_head": "official.xlnet.modeling.heads",
    "register_network": "official.xlnet.modeling.networks.encoder",
    "register_objective": "official.xlnet.modeling.objectives",
    "register_optimizer": "official.xlnet.training.optimization",
    "register_order": "official.xlnet.inference.orders",
    "register_page": "official.xlnet.runtime.pages",
    "register_reader": "official.xlnet.data.reading",
    "register_schedule": "official.xlnet.training.schedules",
    "register_service": "official.xlnet.serving.services.base",
    "register_settings": "official.xlnet.configs.base",
    "register_strategy": "official.xlnet.runtime.distribution",
    "register_task": "official.xlnet.tasks.task",
    "register_verb": "official.xlnet.api.verbs",
    "save_adapters": "official.xlnet.checkpoints.adapters",
    "save_pretrained": "official.xlnet.checkpoints.saving",
    "score": "official.xlnet.inference.scoring",
    "train_vocabulary": "official.xlnet.api.vocab",
}
_FORMER_NAMES = {"products_in": "matmul_precision"}
__all__ = ["__version__", *_MODULE_OF, *PUBLIC_NAMES.modules]


def _module_of(name: str) -> str | None:
    """The module of a public name, of the core or of a project; None for another name."""
    if name in PUBLIC_NAMES.modules:
        return f"{__name__}.{PUBLIC_NAMES.modules[name]}"
    return _MODULE_OF.get(name)


def __getattr__(name: str) -> Any:
    if name == "testing":
        return importlib.import_module(f"{__name__}.testing")
    name = _FORMER_NAMES.get(name, name)
    module = _module_of(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    state = random.getstate()  # TensorFlow's import draws from it.
    try:
        globals()[name] = getattr(importlib.import_module(module), name)
    except KeyboardInterrupt:
        errors = importlib.import_module(f"{__name__}.errors")
        message = "interrupted while TensorFlow was loaded; restart Python to load it whole"
        raise errors.StoppedError(message) from None
    finally:
        random.setstate(state)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
