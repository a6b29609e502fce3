"""Networks of tasks for inference: the encoder for inference, and the head."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.inference.network.inference_encoder import InferenceEncoder
from official.xlnet.inference.network.length_buckets import Tensors, in_buckets
from official.xlnet.modeling.models.task_parts import TaskParts, read_sequences
from official.xlnet.modeling.ops.keras import tf_variables


class TaskNetwork(tf.Module):
    """Units of S sequences of T tokens to the head's outputs.

    Args:
      model: the model of a task; its head is shared, its encoder becomes an `InferenceEncoder`.
      lengths: the lengths that inputs are padded to, ascending. Long texts that are read with
        memory have full segments: the last length alone.
      storage: how the encoder's matrices are stored; one of `WEIGHT_STORAGE`.
      per_token: outputs of the head that have a token axis.
    """

    def __init__(
        self,
        model: TaskParts,
        lengths: tuple[int, ...],
        storage: str = "float32",
        per_token: tuple[str, ...] = (),
    ):
        super().__init__(name="network")
        # A Keras layer would be saved with all its training; the graph needs the variables.
        self._head = lambda content_USTD, inputs: model.head(content_USTD, inputs)
        self._head_variables = tf_variables(model.head)
        self._encoder = InferenceEncoder(model.encoder, lengths[-1], storage, model.with_memory)
        self._with_memory = model.with_memory
        self._pooled_segments = model.config.task.pooled_segments
        self._last_only = model.head.reads_summary and model.config.task.summary == "last"
        lengths = lengths[-1:] if model.with_memory else lengths
        self._run = in_buckets(self.forward, lengths, per_token)

    def __call__(self, inputs: Tensors) -> Tensors:
        """The head's outputs for inputs [U, S, T], T the longest length; see `in_buckets`."""
        return self._run(inputs)

    def forward(self, inputs: Tensors) -> Tensors:
        """The head's outputs for inputs [U, S, T], T any length: all tokens are computed.

        Args:
          inputs: `token_ids`, `segment_ids`, `is_padding` and what the head needs besides.
        """
        vectors_USTD = read_sequences(
            lambda window, _: self._encoder(**window, last_only=self._last_only),
            inputs,
            self._with_memory,
            self._pooled_segments,
        )
        return self._head(vectors_USTD, inputs)
