"""Encoder and head of a task, as they are served."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.inference.network.length_buckets import Buckets, Tensors
from official.xlnet.inference.network.packed_encoder import ServedEncoder
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel


class TaskNetwork(tf.Module):
    """Units of S sequences of T tokens to the head's outputs.

    Args:
      model: the model; its head is used as it is, its encoder in the form of `ServedEncoder`,
        but where long texts are read with memory.
      lengths: the lengths that inputs are padded to, ascending.
      storage: how matrices are stored; one of `STORAGE`.
      num_segments: see `ServedEncoder`.
      per_token: outputs of the head that have a token axis.
    """

    def __init__(
        self,
        model: XLNetTaskModel,
        lengths: tuple[int, ...],
        storage: str,
        num_segments: int,
        per_token: tuple[str, ...] = (),
    ):
        super().__init__(name="network")
        # Keras layers would be saved with all their training; the graph needs the variables.
        self._head_variables = list(model.head.variables)
        if model.with_memory:
            if storage != "float32":
                raise ConfigError(
                    f"weights: expected float32 for task.long_texts=memory, got {storage}"
                )
            self._encoder_variables = list(model.encoder.variables)
            lengths = lengths[-1:]

            def function(inputs: Tensors) -> Tensors:
                return model(inputs, training=False)

        else:
            encoder = ServedEncoder(model.encoder, lengths[-1], num_segments, storage)
            self._encoder = encoder
            last_only = model.head.reads_summary and model.config.task.summary == "last"

            def function(inputs: Tensors) -> Tensors:
                content_USTD = _read(encoder, inputs, last_only)
                return model.head(content_USTD, inputs)

        self._run = Buckets(function, lengths, per_token)

    def __call__(self, inputs: Tensors) -> Tensors:
        """The head's outputs for inputs [U, S, T], T the longest length."""
        return self._run(inputs)


def _read(encoder, inputs, last_only):
    """Vectors [U, S, T, D], or [U, S, 1, D] of the last tokens."""
    sequences, tokens = inputs["token_ids"].shape[1:]
    rows = [
        tf.reshape(inputs[name], [-1, tokens])
        for name in ("token_ids", "segment_ids", "is_padding")
    ]
    content_XTD = encoder(*rows, last_only=last_only)
    return tf.reshape(content_XTD, [-1, sequences, *content_XTD.shape[1:]])
