"""Saving a Keras model as a model directory."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.checkpoint_files import recorded_steps
from official.xlnet.checkpoints.classifier_directory import sigmoid_head, task_configuration
from official.xlnet.checkpoints.model_directory import PARTS, create_model_dir, merged_weights
from official.xlnet.checkpoints.plain_folder import plain_folder
from official.xlnet.configs.data import TEXT_SETTINGS
from official.xlnet.configs.validation import require
from official.xlnet.errors import require_config
from official.xlnet.files.arguments import AnyPath, OutputDirectory
from official.xlnet.files.new_folder import files_together
from official.xlnet.files.public import public
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.networks import Encoder
from official.xlnet.tokenization.tokenizer import Tokenizer

_STATE = "checkpoint"  # Names the checkpoint of a directory, which has none without it.


@public()
def save_pretrained(
    model: Encoder | XLNetPretrainer | XLNetTaskModel | XLNetClassifier,
    model_dir: OutputDirectory,
    tokenizer: Tokenizer | AnyPath | None = None,
    labels: Sequence[str] = (),
    text_columns: Sequence[str] = (),
    task: str = "",
) -> None:
    """Writes a model as a model directory: configuration, vocabulary and weights.

    `load_encoder`, `load_pretrainer` and the commands read it. It holds no optimizer: a run
    starts from it with `--init_from`. Saving to the same directory again replaces the model, which
    an error while writing leaves as it was.

    Args:
      model: an encoder, a pre-training model, a model of a task or an `XLNetClassifier`.
      model_dir: the directory or its URL; made if it is not there.
      tokenizer: the model's tokenizer, or its vocabulary file. None: its preprocessor's.
      labels: of an `XLNetClassifier`, the names of its classes in the order of the logits; default:
        the labels of its head, or "0", "1", … With one logit, the names of its classes
        no and yes.
      text_columns: of an `XLNetClassifier`, the names of its texts: one, or two for pairs; default:
        the columns of its head, or `text`.
      task: of an `XLNetClassifier`, `classification`, `multi_label` or `regression`; default: the
        task of its head, or `regression` with one logit and no labels, else `classification`.

    Raises:
      ConfigError: the tokenizer or the labels do not fit the model, or the directory belongs to a
        run.

    Example:
      >>> model.fit(data)
      >>> save_pretrained(model, "my_model", "data/spiece.model")
      >>> encoder = load_encoder("my_model")
    """
    if isinstance(model, XLNetClassifier):
        config = task_configuration(model, labels, text_columns, task)
    else:
        config = copy.deepcopy(model.config)
        options = {"labels": labels, "text_columns": text_columns, "task": task}
        for name, value in options.items():
            require_config(not value, name, "an XLNetClassifier", type(model).__name__)
    if tokenizer is None:
        preprocessor: Any = getattr(model, "preprocessor", None)
        expected = "the model's tokenizer, as the model has no preprocessor"
        require(preprocessor is not None, "tokenizer", expected, None)
        tokenizer = preprocessor.tokenizer.plain
    if isinstance(tokenizer, str):
        tokenizer = Tokenizer(tokenizer, config.data.lowercase, config.data.keep_accents)
    config.model.fit_vocabulary(tokenizer.vocab_size, tokenizer.model_file)
    for key in TEXT_SETTINGS:
        expected, got = getattr(config.data, key), getattr(tokenizer, key)
        require_config(
            got == expected, "tokenizer", f"{key} {expected}, as data.{key} of the model", got
        )
    require_config(
        not recorded_steps(model_dir),
        model_dir,
        "a directory for this model alone",
        "the directory of a run, whose checkpoints would be lost; choose another one",
    )
    names = [name for name in PARTS if getattr(model, name, None) is not None]
    parts = {name: getattr(model, name) for name in names} or {"encoder": model}
    if "auxiliary" in parts:
        parts |= model.auxiliary.apart
    if isinstance(model, XLNetClassifier) and model.num_classes < len(config.task.labels):
        parts["head"] = sigmoid_head(model)
    checkpoint = tf.train.Checkpoint(model=tf.train.Checkpoint(**parts))
    with files_together(model_dir, last=_STATE) as new:
        create_model_dir(new, config, tokenizer.model_file)
        with plain_folder(new) as folder, merged_weights(model):
            checkpoint.save(os.path.join(folder, "ckpt"))
