"""The parts of a task's model, encoder and head, without what trains them."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads import Head, create_head
from official.xlnet.modeling.networks.encoder import Encoder
from official.xlnet.modeling.ops.initializers import build_layers


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
