"""The parts of a task's model, encoder and head, and how they read a unit, without training."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads import Head, create_head
from official.xlnet.modeling.networks.encoder import Encoder
from official.xlnet.modeling.ops.initializers import build_layers
from official.xlnet.modeling.ops.shapes import sizes

TOKEN_INPUTS = ("token_ids", "segment_ids", "is_padding")

# From inputs [U, T] of a sequence, with `memory` and `memory_length` where there is one, and its
# number, to vectors [U, T or 1, D] and the memory of the next sequence.
Read = Callable[[dict[str, tf.Tensor], int], tuple[tf.Tensor, tf.Tensor | None]]


class TaskParts:
    """An encoder and a head.

    Attributes:
      config: the configuration; `config.task` describes the head.
      encoder: the encoder.
      head: the head.
    """

    config: XLNetConfig
    encoder: Encoder
    head: Head

    @property
    def with_memory(self) -> bool:
        """Whether the sequences of a unit are one long text, read with memory."""
        return self.head.config.task.long_texts == "memory"

    def build_parts(self) -> None:
        """Creates the variables of encoder and head, unless they are there."""
        layers = [layer for layer in (self.encoder, self.head) if not layer.built]
        build_layers(*layers, input_shape=[None, None, None, self.encoder.model.d_model])


class TaskModule(TaskParts, tf.Module):
    """Encoder and head of a fine-tuned model, for inference, in float32.

    Args:
      config: the configuration of the model.
    """

    def __init__(self, config: XLNetConfig):
        config.check()
        super().__init__(name="xlnet_task")
        self.config = config
        self.encoder = task_encoder(config, "float32")
        self.head = create_head(HeadSections(config.model, config.task), dtype="float32")
        self.build_parts()


def task_encoder(config: XLNetConfig, dtype=None) -> Encoder:
    """Creates the encoder of a task, with memory only if the task reads long texts with it."""
    mem_len = config.model.mem_len if config.task.long_texts == "memory" else 0
    network = config.model.network
    return NETWORKS[network](
        config, reuse_len=0, mem_len=mem_len, dtype=dtype, name=f"{network}_encoder"
    )


def read_sequences(
    read: Read, inputs: dict[str, tf.Tensor], with_memory: bool, pooled_segments: str
) -> tf.Tensor:
    """Returns vectors [U, S, T, D] of sequences of units; T is 1 if `read` returns the last row.

    Args:
      read: reads a sequence.
      inputs: `TOKEN_INPUTS`, [U, S, T].
      with_memory: whether a sequence sees the earlier ones through memory; else they do not see
        each other, and are read as rows of one batch. Gradients do not flow into memory.
      pooled_segments: with memory, `all`, or `last`: S is 1 then.
    """
    if not with_memory:
        _, sequences, tokens = sizes(inputs["token_ids"])
        rows = {name: tf.reshape(inputs[name], [-1, tokens]) for name in TOKEN_INPUTS}
        vectors_XTD, _ = read(rows, 0)
        return tf.reshape(vectors_XTD, [-1, sequences, *sizes(vectors_XTD)[1:]])
    num_real_US = tf.reduce_sum(tf.cast(~inputs["is_padding"], tf.int32), axis=2)
    memory_length_US = tf.cumsum(num_real_US, axis=1, exclusive=True)
    memory, vectors_UTD = None, []
    for sequence in range(inputs["token_ids"].shape[1]):
        window = {name: inputs[name][:, sequence] for name in TOKEN_INPUTS}
        if memory is not None:
            window |= {"memory": memory, "memory_length": memory_length_US[:, sequence]}
        vectors, memory = read(window, sequence)
        vectors_UTD.append(vectors)
    return tf.stack(vectors_UTD[None if pooled_segments == "all" else -1 :], axis=1)
