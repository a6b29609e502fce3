"""Base class of services, with the three signatures of every exported model.

* `serving_default` takes raw text;
* `examples` takes the same as serialized `tf.Example`s;
* `token_ids` takes the ids of another tokenizer.

The first axis of every input and output is the batch, as required by TF Serving's batching and
REST API.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tensorflow as tf

from official.xlnet.configs.registry import SERVICES
from official.xlnet.errors import require_config
from official.xlnet.inference.network.length_buckets import Tensors
from official.xlnet.inference.network.task_network import TaskNetwork
from official.xlnet.modeling.models.task_parts import TaskParts
from official.xlnet.serving.services.input_checks import checked_rows, checked_text, checked_tokens
from official.xlnet.tokenization.graph.packing import PADDING, Features, padded, segments_of
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.special_tokens import SEGMENT_A, SEGMENT_PAD, SEP_ID

_WORD = "the"


@dataclasses.dataclass(frozen=True)
class ExportSettings:
    """Settings of an exported model.

    Attributes:
      lengths: bucket lengths that inputs are padded to, in tokens, ascending. The last one is the
        maximum input length.
      weights: storage dtype of matrices, one of `WEIGHT_STORAGE`. Computation is in float32.
      text_columns: names of the text inputs; for several tasks, of all of them.
      columns: the columns of the data that the text inputs stand for; empty: the same names.
      texts_of_subtasks: for several tasks, names of the text inputs of each; empty: all of them.
      max_characters: maximum length of a text; longer ones are rejected.
      max_windows: maximum number of windows of a text; longer ones are rejected.
    """

    lengths: tuple[int, ...]
    weights: str = "float32"
    text_columns: tuple[str, ...] = ("text",)
    columns: tuple[str, ...] = ()
    texts_of_subtasks: tuple[tuple[str, ...], ...] = ()
    max_characters: int = 200_000
    max_windows: int = 512

    def check(self, shortest: int) -> None:
        """Validates the settings.

        Args:
          shortest: minimum length of an input, in tokens.

        Raises:
          ConfigError: a setting is invalid.
        """
        is_ascending = list(self.lengths) == sorted(set(self.lengths))
        require_config(
            is_ascending and self.lengths[0] >= shortest,
            "buckets",
            f"ascending lengths from {shortest} on",
            ", ".join(map(str, self.lengths)),
        )

    @property
    def num_texts(self) -> int:
        """Largest number of texts in one sequence."""
        return max(map(len, self.texts_of_subtasks or (self.text_columns,)))

    @property
    def max_length(self) -> int:
        """Maximum input length in tokens, T."""
        return self.lengths[-1]


class Service(tf.Module):
    """Base class of services: an exportable model with text and token signatures.

    Subclasses override `from_texts` and `from_tokens`.

    Args:
      tokenizer: in-graph tokenizer.
      vocab_size: V.
      settings: export settings.

    Attributes:
      sequences: number of sequences of a unit, S, in token inputs [B, S, T]; None for [B, T].
      num_texts: number of texts that are packed into one sequence.
      with_list: name of the text input that is a list per row, string [B, S]; None if none is.
      token_types: dtypes of the token inputs, by name.
    """

    sequences: int | None = None
    num_texts = 1
    with_list: str | None = None
    token_types = {"token_ids": tf.int32, "segment_ids": tf.int32}

    def __init__(self, tokenizer: GraphTokenizer, vocab_size: int, settings: ExportSettings):
        super().__init__(name="service")
        self.tokenizer, self.vocab_size, self.settings = tokenizer, vocab_size, settings

    @property
    def text_names(self) -> tuple[str, ...]:
        """Names of the text inputs."""
        return self.settings.text_columns

    @property
    def columns(self) -> dict[str, str]:
        """{text input: column of the data}; empty if the task gives the inputs their names."""
        names, columns = self.settings.text_columns, self.settings.columns
        if self.text_names != names:
            return {}
        return dict(zip(names, columns or names, strict=True))

    @property
    def texts_of_signatures(self) -> dict[str, tuple[str, ...]]:
        """{signature: its text inputs}."""
        return {"serving_default": self.text_names}

    def from_texts(self, texts: Tensors) -> Tensors:
        """Computes the outputs for validated text inputs, string [B]."""
        raise NotImplementedError

    def from_tokens(self, inputs: Tensors) -> Tensors:
        """Computes the outputs for validated token inputs [B, (S,) T] of maximum length T."""
        raise NotImplementedError

    def signatures(self) -> dict[str, Any]:
        """Returns the concrete function of each signature, by name."""
        function = functools.partial(tf.function, autograph=False)
        texts = function(self.serve_texts).get_concrete_function(**self.text_specs())
        tokens = function(self.serve_tokens).get_concrete_function(**self.token_specs())
        examples = function(lambda examples: texts(**self.texts_of(examples)))
        spec = tf.TensorSpec([None], tf.string, name="examples")
        return {
            "serving_default": texts,
            "token_ids": tokens,
            "examples": examples.get_concrete_function(examples=spec),
        }

    def text_specs(self, names: Sequence[str] | None = None) -> dict[str, tf.TensorSpec]:
        """Returns the specs of the text inputs, or of some of them, by name."""
        specs = {}
        for name in self.text_names if names is None else names:
            shape = [None, None] if name == self.with_list else [None]
            specs[name] = tf.TensorSpec(shape, tf.string, name)
        return specs

    def token_specs(self) -> dict[str, tf.TensorSpec]:
        """Returns the specs of the token inputs, by name; `segment_ids` is 4 at padding."""
        shape = [None, None] if self.sequences is None else [None, self.sequences, None]
        return {name: tf.TensorSpec(shape, dtype, name) for name, dtype in self.token_types.items()}

    def sample_texts(
        self, num_words: int, signature: str = "serving_default"
    ) -> dict[str, list[Any]]:
        """Returns example text inputs with one row of about `num_words` tokens."""
        text = " ".join([_WORD] * num_words)
        inputs: dict[str, list[Any]] = {}
        for name in self.texts_of_signatures[signature]:
            inputs[name] = [[_WORD, text]] if name == self.with_list else [text]
        return inputs

    def sample_tokens(self, length: int) -> dict[str, Any]:
        """Returns example token inputs with one row of `length` tokens."""
        values = {"token_ids": SEP_ID, "segment_ids": SEGMENT_A, "may_start": True}
        shape = [1, length] if self.sequences is None else [1, self.sequences, length]
        return {name: tf.fill(shape, values[name]) for name in self.token_types}

    def serve_texts(self, **texts: tf.Tensor) -> Tensors:
        """Validates the text inputs of a request and computes the outputs."""
        return self.from_texts(self.checked(texts))

    def checked(self, texts: Tensors) -> Tensors:
        """Validates the text inputs of a request."""
        tensors = dict(zip(texts, checked_rows(**texts), strict=True))
        limit = self.settings.max_characters
        return {name: checked_text(name, x, limit) for name, x in tensors.items()}

    def texts_of(self, examples: tf.Tensor) -> Tensors:
        """Reads the text inputs of serialized `tf.Example`s, string [B]."""
        features = dict[str, Any]()
        for name in self.text_names:
            if name == self.with_list:
                features[name] = tf.io.RaggedFeature(tf.string)
            else:
                features[name] = tf.io.FixedLenFeature([], tf.string)
        parsed = tf.io.parse_example(examples, features)
        if self.with_list:
            parsed[self.with_list] = parsed[self.with_list].to_tensor("")
        return parsed

    def serve_tokens(self, **inputs: tf.Tensor) -> Tensors:
        """Validates the token inputs of a request (`token_specs`) and computes the outputs."""
        max_length = self.settings.max_length
        num_segments = max(segments_of(self.num_texts)) + 1
        inputs = checked_tokens(inputs, self.vocab_size, num_segments, max_length)
        padded_inputs = {}
        for name, x in inputs.items():
            left = [max_length - tf.shape(x)[-1], 0]
            paddings = [[0, 0]] * (x.shape.rank - 1) + [left]
            padded_inputs[name] = tf.pad(x, paddings, constant_values=PADDING.get(name, 0))
            padded_inputs[name].set_shape([*x.shape[:-1], max_length])
        padded_inputs["is_padding"] = padded_inputs["segment_ids"] == SEGMENT_PAD
        return self.from_tokens(padded_inputs)


class TaskService(Service):
    """Base class of services of fine-tuned models.

    Args:
      model: the fine-tuned model.
      tokenizer: in-graph tokenizer.
      settings: export settings.

    Attributes:
      per_token: outputs of the head that have a token axis.
    """

    per_token: tuple[str, ...] = ()

    def __init__(self, model: TaskParts, tokenizer: GraphTokenizer, settings: ExportSettings):
        super().__init__(tokenizer, model.config.model.vocab_size, settings)
        self._task = model.config.task
        self._network = TaskNetwork(model, settings.lengths, settings.weights, self.per_token)

    def from_tokens(self, inputs):
        return self._answer(with_sequence_axis(inputs) if self.sequences is None else inputs)

    def units(self, features: Features) -> Tensors:
        """Pads the sequences of all units, ragged [U·S, (number of tokens)], to [U, S, T]."""
        longest = self.settings.max_length
        shape = [-1, self.sequences or 1, longest]
        return {name: tf.reshape(x, shape) for name, x in padded(features, longest).items()}

    def _answer(self, inputs: Tensors) -> Tensors:
        """Computes the outputs for inputs of the network [U, S, T]."""
        raise NotImplementedError


TaskServiceClass = TypeVar("TaskServiceClass", bound=type[TaskService])


def register_service(name: str) -> Callable[[TaskServiceClass], TaskServiceClass]:
    """Decorator that registers a subclass of `TaskService`, the outputs of an exported task.

    Args:
      name: value of `task.name`.

    Raises:
      ConfigError: a service is already registered for the task.
    """
    return SERVICES.register(name)


def with_sequence_axis(inputs: Tensors) -> Tensors:
    """Adds a sequence axis to token inputs: [U, T] → [U, 1, T]."""
    return {name: x[:, None] for name, x in inputs.items()}


def repeated(labels: tuple[str, ...], rows: tf.Tensor) -> tf.Tensor:
    """Repeats label names for each row, string [B, C]."""
    return tf.tile(tf.constant([labels]), [rows, 1])
