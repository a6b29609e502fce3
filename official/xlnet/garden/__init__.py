"""XLNet in the TensorFlow Model Garden: experiments, an encoder for its BERT models,
and its BERT checkpoints.

Importing this package registers the experiments in `official.core.exp_factory`.
"""

from official.xlnet.garden.bert_checkpoint import bert_config, load_bert, restore_bert
from official.xlnet.garden.bert_style_encoder import bert_style_encoder
from official.xlnet.garden.classification import ClassificationConfig, ClassificationTask
from official.xlnet.garden.pretraining import PretrainingConfig, PretrainingTask

__all__ = [
    "ClassificationConfig",
    "ClassificationTask",
    "PretrainingConfig",
    "PretrainingTask",
    "bert_config",
    "bert_style_encoder",
    "load_bert",
    "restore_bert",
]
