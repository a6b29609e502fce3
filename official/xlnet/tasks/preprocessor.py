"""Text to features of a model as a Keras layer."""

from __future__ import annotations

import base64
import os
import tempfile
from typing import Any

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import require_one_of
from official.xlnet.errors import require_config, require_data
from official.xlnet.modeling.kernels.tensorflow_internals import is_compiled
from official.xlnet.modeling.ops.keras import GuardedLayer, keras
from official.xlnet.tasks import long_texts
from official.xlnet.tokenization.graph.packing import padded
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.vocabulary_file import write_vocabulary


@keras.utils.register_keras_serializable(package="xlnet")
class Preprocessor(GuardedLayer):
    """Converts texts to model features with TensorFlow operations, as `predict` does.

    Args:
      tokenizer: tokenizer of the model.
      task: settings of the task; uses `text_columns`, `max_length`, `truncation_side`, and keys for
        long texts.
      padding: length that texts are padded to: `max_length`, always `task.max_length`; or
        `longest`, the length of the longest text of the batch, which takes less time, but a graph
        for each length where shapes are static, as with XLA.

    Call arguments:
      texts: strings [B]; of pairs a tuple of them, or a dictionary by `task.text_columns`.

    Returns:
      `token_ids` int32, `segment_ids` int32 and `is_padding` bool, each [B, T] with T =
      `task.max_length`, or shorter with `padding="longest"`; [B, S, T] for long texts in S parts.

    Raises:
      ConfigError: texts would be compiled with XLA, which has no strings.
      DataError: a dictionary lacks a column of texts.

    Example:
      >>> model = load_model("runs/film")
      >>> model.preprocessor(["A fine film.", "Dull."])["token_ids"].shape
      TensorShape([2, 128])
    """

    def __init__(
        self, tokenizer: Tokenizer, task: TaskConfig, padding: str = "max_length", **kwargs
    ):
        super().__init__(**{"name": "preprocessor", "trainable": False, **kwargs})
        require_one_of("padding", padding, ("max_length", "longest"))
        self.tokenizer, self.task, self.padding = GraphTokenizer(tokenizer), task, padding

    def __repr__(self) -> str:
        task, pieces = self.task, self.tokenizer.plain.vocab_size
        columns = ", ".join(task.text_columns)
        return f"Preprocessor({columns}: {pieces:,} pieces, {task.max_length} tokens)"

    def __reduce__(self) -> tuple:
        return type(self).from_config, (self.get_config(),)

    def call(self, texts: Any) -> dict[str, tf.Tensor]:
        require_config(
            not is_compiled(),
            "jit_compile",
            "token ids, as XLA has no strings",
            "texts; call the preprocessor in the `map` of a data set: "
            "data.map(lambda texts, labels: (classifier.preprocessor(texts), labels))",
        )
        task, length = self.task, self.task.max_length
        if isinstance(texts, dict):
            texts = _columns(texts, task)
        columns = texts if isinstance(texts, tuple) else (texts,)
        rows = [self.tokenizer(tf.reshape(column, [-1])) for column in columns]
        packed, _ = long_texts.read(rows, task, length)
        if self.padding == "longest":
            length = tf.cast(packed["token_ids"].bounding_shape(axis=1), tf.int32)
        features = padded(packed, length)
        num_sequences = long_texts.num_sequences(task, len(columns))
        axes = [num_sequences] if num_sequences > 1 else []
        return {name: tf.reshape(x, [-1, *axes, length]) for name, x in features.items()}

    def get_config(self) -> dict[str, Any]:
        plain = self.tokenizer.plain
        return {
            "name": self.name,
            "padding": self.padding,
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
        padding = config.get("padding", "max_length")  # Older files lack it.
        layer = cls(tokenizer, task, padding, name=config["name"])
        layer._folder = folder  # Removed with the layer.
        return layer


def _columns(texts: dict[str, Any], task: TaskConfig) -> tuple[Any, ...]:
    """The columns of a dictionary that are texts; without `task.text_columns`, the only one."""
    names, expected = task.text_columns, f"the columns {list(task.text_columns)}"
    if not names:
        names = tuple(texts) if len(texts) == 1 else ("",)
        expected = "one column, as task.text_columns names none, or a tuple of columns"
    require_data(set(names) <= texts.keys(), "inputs", expected, f"the columns {list(texts)}")
    return tuple(texts[name] for name in names)
