"""The inference network of a task: the encoder for inference and the task's head."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.inference.network.inference_encoder import InferenceEncoder
from official.xlnet.inference.network.length_buckets import Buckets, Tensors
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel


class TaskNetwork(tf.Module):
    """Units of S sequences of T tokens to the head's outputs.

    Args:
      model: the model; its head is shared, its encoder becomes an `InferenceEncoder`.
      lengths: the lengths that inputs are padded to, ascending. Long texts that are read with
        memory have full segments: the last length alone.
      storage: how the encoder's matrices are stored; one of `WEIGHT_STORAGE`.
      per_token: outputs of the head that have a token axis.
    """

    def __init__(
        self,
        model: XLNetTaskModel,
        lengths: tuple[int, ...],
        storage: str = "float32",
        per_token: tuple[str, ...] = (),
    ):
        super().__init__(name="network")
        # A Keras layer would be saved with all its training; the graph needs the variables.
        self._head = lambda content_USTD, inputs: model.head(content_USTD, inputs)
        self._head_variables = list(model.head.variables)
        self._encoder = InferenceEncoder(model.encoder, lengths[-1], storage, model.with_memory)
        self._read = self._read_with_memory if model.with_memory else self._read_each
        pools_all = model.config.task.pooled_segments == "all"
        self._is_pooled = slice(None if pools_all else -1, None)  # Of segments with memory.
        self._last_only = model.head.reads_summary and model.config.task.summary == "last"
        self._run = Buckets(self.forward, lengths[-1:] if model.with_memory else lengths, per_token)

    def __call__(self, inputs: Tensors) -> Tensors:
        """The head's outputs for inputs [U, S, T], T the longest length; see `Buckets`."""
        return self._run(inputs)

    def forward(self, inputs: Tensors) -> Tensors:
        """The head's outputs for inputs [U, S, T], T any length: all tokens are computed.

        Args:
          inputs: `token_ids`, `segment_ids`, `is_padding` and what the head needs besides.
        """
        return self._head(self._read(inputs), inputs)

    def _read_each(self, inputs):
        """Vectors [U, S, T, D] of sequences that are read separately; T is 1 for the last."""
        sequences, tokens = inputs["token_ids"].shape[1:]
        token_ids, segment_ids, is_padding = (
            tf.reshape(inputs[name], [-1, tokens])
            for name in ("token_ids", "segment_ids", "is_padding")
        )
        vectors_XTD = self._encoder(
            token_ids, is_padding, segment_ids, last_only=self._last_only
        ).vectors
        return tf.reshape(vectors_XTD, [-1, sequences, *vectors_XTD.shape[1:]])

    def _read_with_memory(self, inputs):
        """Vectors [U, S, T, D] of segments that attend to the earlier ones through memory.

        S is 1 if only the last segment is pooled; T is 1 for the last token.
        """
        num_real_US = tf.reduce_sum(tf.cast(~inputs["is_padding"], tf.int32), axis=2)
        memory_length_US = tf.cumsum(num_real_US, axis=1, exclusive=True)
        memory, segments_UTD = None, []
        for number in range(inputs["token_ids"].shape[1]):
            vectors_UTD, memory = self._encoder(
                inputs["token_ids"][:, number],
                inputs["is_padding"][:, number],
                inputs["segment_ids"][:, number],
                memory=memory,
                memory_length=memory_length_US[:, number],
                last_only=self._last_only,
            )
            segments_UTD.append(vectors_UTD)
        return tf.stack(segments_UTD[self._is_pooled], axis=1)
