"""XLNet for TensorFlow: the public API.

Names are imported when first used, so `import official.xlnet` costs nothing and does not load
TensorFlow.

Example:
  >>> from official import xlnet
  >>> config = xlnet.XLNetConfig.load("configs/tiny.yaml")
  >>> encoder = xlnet.XLNetEncoder(config)
"""

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

from official.xlnet.modeling.ops.keras_names import register_names

if TYPE_CHECKING:
    from data_prep.corpus.vocabulary import train_vocabulary
    from data_prep.pipelines.prepare import prepare
    from official.xlnet.analysis.attention_maps import attention_maps
    from official.xlnet.analysis.masks import make_masks
    from official.xlnet.api.finetuning import finetune
    from official.xlnet.api.keras_model import load_model
    from official.xlnet.api.prediction import Predictor, evaluate, predict
    from official.xlnet.api.vocabulary import extend_vocabulary
    from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
    from official.xlnet.checkpoints.convert import convert
    from official.xlnet.checkpoints.model_directory import (
        load_encoder,
        load_pretrainer,
        save_pretrained,
    )
    from official.xlnet.configs.base import register_settings
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.data.pretraining_dataset import pretraining_dataset
    from official.xlnet.data.reading import register_reader
    from official.xlnet.inference.cloze import blank_candidates
    from official.xlnet.inference.embedding import TextEmbedder, embed
    from official.xlnet.inference.generation import fill_blanks, generate
    from official.xlnet.inference.sampling import Sampling
    from official.xlnet.inference.scoring import Scorer, score
    from official.xlnet.inference.words import words_of
    from official.xlnet.modeling.depth.stacked import register_depth
    from official.xlnet.modeling.heads import register_head
    from official.xlnet.modeling.kernels.product_type import products_in
    from official.xlnet.modeling.layers.relative_attention import TwoStreamRelativeAttention
    from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding
    from official.xlnet.modeling.layers.relative_segment import RelativeSegmentEncoding
    from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
    from official.xlnet.modeling.layers.xlnet_block import XLNetBlock
    from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
    from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
    from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
    from official.xlnet.modeling.networks.encoder import register_network
    from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
    from official.xlnet.modeling.objectives import register_objective
    from official.xlnet.modeling.objectives.auxiliary import register_auxiliary
    from official.xlnet.modeling.ops.initializers import register_attention_init
    from official.xlnet.runtime.history import read_history
    from official.xlnet.serving.export import export
    from official.xlnet.serving.services.base import register_service
    from official.xlnet.tasks.preprocessor import Preprocessor
    from official.xlnet.tasks.task import register_task
    from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
    from official.xlnet.tokenization.tokenizer import Tokenizer
    from official.xlnet.training.optimization import create_optimizer
    from official.xlnet.training.pretraining import pretrain

__version__ = "1.0.0"  # The only place: the distribution and the site read it.

importlib.import_module(f"{__name__}.tasks")
with contextlib.suppress(ModuleNotFoundError):  # The package works without them, too.
    importlib.import_module(f"{__name__}.extensions")

register_names()

_MODULE_OF = {
    "GraphTokenizer": "tokenization.graph.tokenizer",
    "Predictor": "api.prediction",
    "Preprocessor": "tasks.preprocessor",
    "RelativePositionEncoding": "modeling.layers.relative_position",
    "RelativeSegmentEncoding": "modeling.layers.relative_segment",
    "Sampling": "inference.sampling",
    "Scorer": "inference.scoring",
    "TextEmbedder": "inference.embedding",
    "Tokenizer": "tokenization.tokenizer",
    "TwoStreamAttentionMask": "modeling.layers.two_stream_mask",
    "TwoStreamRelativeAttention": "modeling.layers.relative_attention",
    "XLNetBlock": "modeling.layers.xlnet_block",
    "XLNetClassifier": "modeling.models.xlnet_classifier",
    "XLNetConfig": "configs.experiment",
    "XLNetEncoder": "modeling.networks.xlnet_encoder",
    "XLNetPretrainer": "modeling.models.xlnet_pretrainer",
    "XLNetTaskModel": "modeling.models.xlnet_task_model",
    "attention_maps": "analysis.attention_maps",
    "blank_candidates": "inference.cloze",
    "convert": "checkpoints.convert",
    "create_optimizer": "training.optimization",
    "embed": "inference.embedding",
    "evaluate": "api.prediction",
    "export": "serving.export",
    "extend_vocabulary": "api.vocabulary",
    "fill_blanks": "inference.generation",
    "finetune": "api.finetuning",
    "generate": "inference.generation",
    "load_config": "checkpoints.any_format",
    "load_encoder": "checkpoints.model_directory",
    "load_model": "api.keras_model",
    "load_pretrainer": "checkpoints.model_directory",
    "load_tokenizer": "checkpoints.any_format",
    "make_masks": "analysis.masks",
    "predict": "api.prediction",
    "prepare": "data_prep.pipelines.prepare",
    "pretrain": "training.pretraining",
    "pretraining_dataset": "data.pretraining_dataset",
    "products_in": "modeling.kernels.product_type",
    "read_history": "runtime.history",
    "register_attention_init": "modeling.ops.initializers",
    "register_auxiliary": "modeling.objectives.auxiliary",
    "register_depth": "modeling.depth.stacked",
    "register_head": "modeling.heads",
    "register_network": "modeling.networks.encoder",
    "register_objective": "modeling.objectives",
    "register_reader": "data.reading",
    "register_service": "serving.services.base",
    "register_settings": "configs.base",
    "register_task": "tasks.task",
    "save_pretrained": "checkpoints.model_directory",
    "score": "inference.scoring",
    "train_vocabulary": "data_prep.corpus.vocabulary",
    "words_of": "inference.words",
}

__all__ = [
    "GraphTokenizer",
    "Predictor",
    "Preprocessor",
    "RelativePositionEncoding",
    "RelativeSegmentEncoding",
    "Sampling",
    "Scorer",
    "TextEmbedder",
    "Tokenizer",
    "TwoStreamAttentionMask",
    "TwoStreamRelativeAttention",
    "XLNetBlock",
    "XLNetClassifier",
    "XLNetConfig",
    "XLNetEncoder",
    "XLNetPretrainer",
    "XLNetTaskModel",
    "__version__",
    "attention_maps",
    "blank_candidates",
    "convert",
    "create_optimizer",
    "embed",
    "evaluate",
    "export",
    "extend_vocabulary",
    "fill_blanks",
    "finetune",
    "generate",
    "load_config",
    "load_encoder",
    "load_model",
    "load_pretrainer",
    "load_tokenizer",
    "make_masks",
    "predict",
    "prepare",
    "pretrain",
    "pretraining_dataset",
    "products_in",
    "read_history",
    "register_attention_init",
    "register_auxiliary",
    "register_depth",
    "register_head",
    "register_network",
    "register_objective",
    "register_reader",
    "register_service",
    "register_settings",
    "register_task",
    "save_pretrained",
    "score",
    "train_vocabulary",
    "words_of",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(_place_of(name)), name)
    return globals()[name]


def _place_of(name: str) -> str:
    module = _MODULE_OF[name]
    return module if module.startswith("data_prep.") else f"{__name__}.{module}"


def __dir__() -> list[str]:
    return __all__
