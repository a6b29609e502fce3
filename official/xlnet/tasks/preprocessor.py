"""Text to features of a model as a Keras layer."""

from __future__ import annotations

import base64
import os
import tempfile
from typing import Any

import tensorflow as tf
import tf_keras

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.task import TaskConfig
from official.xlnet.modeling.ops.legacy_keras import LegacyLayer
from official.xlnet.tasks import long_texts
from official.xlnet.tokenization.graph.packing import padded
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer, write_vocabulary


@tf_keras.utils.register_keras_serializable(package="xlnet")
class Preprocessor(LegacyLayer):
    """Converts texts to model features with TensorFlow operations, as `predict` does.

    Args:
      tokenizer: tokenizer of the model.
      task: settings of the task; uses `text_columns`, `max_length`, `truncation_side`, and keys for
        long texts.

    Call arguments:
      texts: strings [B]; of pairs a tuple of them, or a dictionary by `task.text_columns`.

    Returns:
      `token_ids` int32, `segment_ids` int32 and `is_padding` bool, each [B, T] with T =
      `task.max_length`; [B, S, T] for long texts in S parts.

    Example:
      >>> model = load_model("runs/film")
      >>> model.preprocessor(["A fine film.", "Dull."])["token_ids"].shape
      TensorShape([2, 128])
    """

    def __init__(self, tokenizer: Tokenizer, task: TaskConfig, **kwargs):
        super().__init__(**{"name": "preprocessor", "trainable": False, **kwargs})
        self.tokenizer, self.task = GraphTokenizer(tokenizer), task

    def call(self, texts: Any) -> dict[str, tf.Tensor]:
        task, length = self.task, self.task.max_length
        if isinstance(texts, dict):
            texts = tuple(texts[name] for name in task.text_columns)
        columns = texts if isinstance(texts, tuple) else (texts,)
        rows = [self.tokenizer(tf.reshape(column, [-1])) for column in columns]
        features = padded(long_texts.read(rows, task, length)[0], length)
        number = long_texts.num_sequences(task, len(columns))
        axes = [number] if number > 1 else []
        return {name: tf.reshape(x, [-1, *axes, length]) for name, x in features.items()}

    def get_config(self) -> dict[str, Any]:
        plain = self.tokenizer.plain
        return {
            "name": self.name,
            "task": self.task.as_dict(),
            "vocabulary": base64.b64encode(plain.model_proto).decode(),
            "text": [plain.lowercase, plain.keep_accents],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Preprocessor:
        folder = tempfile.TemporaryDirectory()
        write_vocabulary(base64.b64decode(config["vocabulary"]), folder.name)
        tokenizer = Tokenizer(os.path.join(folder.name, VOCAB_FILE), *config["text"])
        task = XLNetConfig.from_dict({"task": config["task"]}).task
        layer = cls(tokenizer, task, name=config["name"])
        layer._folder = folder  # Removed with the layer.
        return layer
