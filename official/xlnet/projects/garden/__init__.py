"""XLNet in the TensorFlow Model Garden: experiments, and an encoder for its BERT models.

Importing this package registers the experiments in `official.core.exp_factory`.
"""

import tf_keras  # noqa: F401  The Keras of this process, if no other was chosen before.

from official.xlnet.projects.garden.bert_style_encoder import bert_style_encoder
from official.xlnet.projects.garden.classification import ClassificationConfig, ClassificationTask
from official.xlnet.projects.garden.pretraining import PretrainingConfig, PretrainingTask

__all__ = [
    "ClassificationConfig",
    "ClassificationTask",
    "PretrainingConfig",
    "PretrainingTask",
    "bert_style_encoder",
]
