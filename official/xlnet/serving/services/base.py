"""What every served model has in common: three signatures.

* `serving_default` takes raw text;
* `examples` takes the same as serialized `tf.Example`s;
* `token_ids` takes what another tokenizer has cut.

The first axis of every input and output is the batch, as TF Serving's batching and REST want it.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official.xlnet.inference.network.length_buckets import Tensors
from official.xlnet.serving.graph.settings import Settings
from official.xlnet.serving.services.input_checks import checked_rows, checked_text, checked_tokens
from official.xlnet.tokenization.packing import PADDING_TOKEN_ID
from official.xlnet.tokenization.special_tokens import SEGMENT_CLS, SEGMENT_PAD, SEP_ID
from official.xlnet.tokenization.tf_tokenizer import GraphTokenizer

_WORD = "the"


class Service(tf.Module):
    """A model behind signatures. Subclasses have `texts`, and say what is in the comments.

    Args:
      tokenizer: in-graph tokenizer.
      vocab_size: V.
      settings: of the export.
    """

    sequences: int | None = None  # Sequences S of a unit in `token_ids`, None for [B, T].
    num_texts = 1
    with_list: str | None = None  # The text input that is a list [B, number].
    takes_may_start = False
    truncation_side = "right"  # The end that texts lose which are too long.

    def __init__(self, tokenizer: GraphTokenizer, vocab_size: int, settings: Settings):
        super().__init__(name="service")
        self.tokenizer, self.vocab_size, self.settings = tokenizer, vocab_size, settings

    @property
    def text_names(self) -> tuple[str, ...]:
        """Names of the text inputs."""
        return self.settings.text_columns

    def from_texts(self, texts: Tensors) -> Tensors:
        """Outputs for checked text inputs, string [B]."""
        raise NotImplementedError

    def from_tokens(self, inputs: Tensors) -> Tensors:
        """Outputs for checked token inputs [B, (S,) T], T the longest length."""
        raise NotImplementedError

    @property
    def num_segments(self) -> int:
        """Segment ids are 0 … num_segments - 1, or that of padding."""
        return max(SEGMENT_CLS, self.num_texts) + 1

    def signatures(self) -> dict[str, Any]:
        """Concrete functions by the names of signatures."""
        texts = self.text_specs()
        example_spec = tf.TensorSpec([None], tf.string, name="examples")
        return {
            "serving_default": self._function(self.serve_texts).get_concrete_function(**texts),
            "token_ids": self._function(self.serve_tokens).get_concrete_function(
                **self.token_specs()
            ),
            "examples": self._function(self.serve_examples).get_concrete_function(
                examples=example_spec
            ),
        }

    def text_specs(self) -> dict[str, tf.TensorSpec]:
        """Text inputs."""
        shapes = {n: [None, None] if n == self.with_list else [None] for n in self.text_names}
        return {name: tf.TensorSpec(shape, tf.string, name) for name, shape in shapes.items()}

    def token_specs(self) -> dict[str, tf.TensorSpec]:
        """Token inputs; padding is where `segment_ids` is 4."""
        shape = [None, None] if self.sequences is None else [None, self.sequences, None]
        specs = {
            name: tf.TensorSpec(shape, tf.int32, name) for name in ("token_ids", "segment_ids")
        }
        if self.takes_may_start:
            specs["may_start"] = tf.TensorSpec(shape, tf.bool, "may_start")
        return specs

    def pack(self, columns: list[tf.RaggedTensor], length: int | None = None) -> Tensors:
        """Token inputs [B, T] of columns of ids."""
        length = length or self.settings.max_length
        return self.tokenizer.pack(columns, length, self.truncation_side)

    def sample_texts(self, num_words: int) -> dict[str, list]:
        """Text inputs of one row with about as many tokens, for warm-up and examples."""
        text = " ".join([_WORD] * num_words)
        return {
            name: [[_WORD, text]] if name == self.with_list else [text] for name in self.text_names
        }

    def sample_tokens(self, length: int) -> dict[str, Any]:
        """Token inputs of one row of some length."""
        shape = [1, length] if self.sequences is None else [1, self.sequences, length]
        inputs = {"token_ids": tf.fill(shape, SEP_ID), "segment_ids": tf.zeros(shape, tf.int32)}
        if self.takes_may_start:
            inputs["may_start"] = tf.ones(shape, tf.bool)
        return inputs

    def _function(self, function):
        return tf.function(function, autograph=False)

    def serve_texts(self, **texts: tf.Tensor) -> Tensors:
        """Outputs for text inputs of a request."""
        tensors = dict(zip(texts, checked_rows(**texts), strict=True))
        limit = self.settings.max_characters
        return self.from_texts({n: checked_text(n, x, limit) for n, x in tensors.items()})

    def serve_examples(self, examples: tf.Tensor) -> Tensors:
        """Outputs for serialized `tf.Example`s, string [B]."""
        features: dict[str, Any] = {
            name: tf.io.RaggedFeature(tf.string)
            if name == self.with_list
            else tf.io.FixedLenFeature([], tf.string)
            for name in self.text_names
        }
        parsed = tf.io.parse_example(examples, features)
        if self.with_list:
            parsed[self.with_list] = parsed[self.with_list].to_tensor("")
        return self.serve_texts(**parsed)

    def serve_tokens(self, **inputs: tf.Tensor) -> Tensors:
        """Outputs for token inputs of a request; see `token_specs`."""
        longest = self.settings.max_length
        inputs = checked_tokens(inputs, self.vocab_size, self.num_segments, longest)
        padding = {"token_ids": PADDING_TOKEN_ID, "segment_ids": SEGMENT_PAD, "may_start": False}
        filled = {}
        for name, x in inputs.items():
            missing = longest - tf.shape(x)[-1]
            paddings = [[0, 0]] * (x.shape.rank - 1) + [[missing, 0]]
            filled[name] = tf.pad(x, paddings, constant_values=padding[name])
            filled[name].set_shape([*x.shape[:-1], longest])
        filled["is_padding"] = filled["segment_ids"] == SEGMENT_PAD
        return self.from_tokens(filled)


def with_sequence_axis(inputs: Tensors) -> Tensors:
    """[U, T] → [U, 1, T]."""
    return {name: x[:, None] for name, x in inputs.items()}


def repeated(labels: tuple[str, ...], rows: tf.Tensor) -> tf.Tensor:
    """Label names string [B, C], the same in every row."""
    return tf.tile(tf.constant([labels]), [rows, 1])
