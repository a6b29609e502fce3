"""A folder as a Keras model that takes texts."""

from __future__ import annotations

from typing import Annotated

from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
from official.xlnet.checkpoints.restoring import restore
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import Range, require
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.inference.task_prediction import load_task
from official.xlnet.modeling.models.task_parts import task_encoder
from official.xlnet.modeling.models.xlnet_classifier import TASKS, XLNetClassifier
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.tasks.preprocessor import Preprocessor


@public()
def load_model(
    model_dir: AnyPath,
    num_classes: int | None = None,
    max_length: Annotated[int, Range(1)] | None = None,
) -> XLNetClassifier | XLNetTaskModel:
    """Loads a model with its head, or with a new one, as a plain Keras model that takes texts.

    Args:
      model_dir: a model directory or its URL, an HF folder or a TF1 release.
      num_classes: number of logits of a new head. None: the head of the fine-tuned model.
      max_length: number of tokens that texts are packed into. None: `task.max_length` of the model,
        or 128 with a new head.

    Returns:
      The classifier of a model of classification, multi-label classification or regression, or with
      a new head. Its logits are in the order of `config.task.labels`; the output of a regression
      is in the units of its labels. The model of any other task is an `XLNetTaskModel`, which takes
      features.

    Raises:
      ConfigError: the model has no head and `num_classes` is None, or a number is out of range.
      DataError: the checkpoint is missing or damaged.

    Example:
      >>> model = load_model("xlnet-base-cased", num_classes=2)
      >>> loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
      >>> model.compile(keras.optimizers.Adam(3e-5), loss)
      >>> model.fit(["A fine film.", "Dull."], tf.constant([1, 0]))
      >>> save_pretrained(model, "runs/film", labels=["bad", "good"])
    """
    config = load_config(model_dir)
    task, expected = config.task, f"the number of a new head's logits, as {model_dir} has no head"
    require(bool(task.name or num_classes), "num_classes", expected, num_classes)
    if num_classes is not None:
        task = config.task = TaskConfig(summary=task.summary)
    elif task.name not in TASKS:
        return load_task(model_dir)[0]
    task.max_length = max_length or task.max_length
    config.check()
    preprocessor = Preprocessor(load_tokenizer(model_dir), task)
    model = XLNetClassifier(task_encoder(config), num_classes, preprocessor)
    restore(model_dir, encoder=model.encoder, **({} if num_classes else {"head": model.head}))
    return model
