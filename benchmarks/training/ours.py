"""Workloads of this implementation: training steps and encoder passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from benchmarks.harness.worker import Work
from benchmarks.harness.workload import Shape, config_of, tokens_and_segments, windows
from official.xlnet.configs.task import TaskConfig
from official.xlnet.inference.network.inference_encoder import InferenceEncoder
from official.xlnet.modeling.models.lora import add_lora
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.runtime.distribution import limit_threads, release_memory
from official.xlnet.training.optimization import create_optimizer


def build(kind: str, shape: dict, recompute: str = "none", **training: Any) -> Work:
    """Builds the workload of one step.

    Args:
      kind: `pretrain`, `finetune`, `encode` (forward pass of the encoder) or `serve` (the same as
        exported).
      shape: fields of `Shape`.
      recompute: value of `model.recompute`.
      **training: further settings of `training`.
    """
    sizes = Shape(**shape)
    config = config_of(sizes, training, recompute=recompute)
    limit_threads(config.training)
    release_memory(config.training)
    if kind in ("pretrain", "finetune"):
        model, batch = (pretrainer if kind == "pretrain" else finetuner)(sizes, config)
        model.make_train_function()  # As `fit` runs it.
        step: Any = model.train_function
        batches = iter(tf.data.Dataset.from_tensors(batch).repeat())
        return Work(lambda: float(step(batches)["loss"]), _count(model))
    encoder = XLNetEncoder(config)
    encoder.build()

    def encode(token_ids, segment_ids):
        return encoder({"token_ids": token_ids, "segment_ids": segment_ids})["content"]

    function = tf.function(
        server(encoder, sizes) if kind == "serve" else encode,
        jit_compile=config.training.jit_compile,
    )
    tokens = [tf.constant(value) for value in tokens_and_segments(sizes)]
    return Work(lambda: float(function(*tokens)[0, 0, 0]), _count(encoder))


def pretrainer(shape: Shape, config) -> tuple[XLNetPretrainer, dict[str, tf.Tensor]]:
    """Creates a compiled pre-training model with a built optimizer, and a batch."""
    keras.utils.set_random_seed(0)
    model = XLNetPretrainer(config)
    optimizer = create_optimizer(config.training, config.model.num_layers)
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, jit_compile=config.training.jit_compile)
    return model, {name: tf.constant(value) for name, value in windows(shape).items()}


def finetuner(
    shape: Shape, config, kind: str = "classify", num_buckets: int = 1
) -> tuple[XLNetTaskModel, dict[str, tf.Tensor]]:
    """A compiled model of a task (`classify` or `answer`) with its optimizer, and a batch."""
    names = {"classify": "classification", "answer": "question_answering"}
    config.task = TaskConfig.create(
        name=names[kind], labels=("no", "yes"), max_length=shape.seq_len, num_buckets=num_buckets
    )
    model = XLNetTaskModel(config)
    if config.training.lora_rank:
        add_lora(model, config.training.lora_rank)
    optimizer = create_optimizer(config.training, shape.num_layers)
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, jit_compile=config.training.jit_compile)
    token_ids, segment_ids = (tf.constant(x)[:, None] for x in tokens_and_segments(shape))
    batch = {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "is_padding": tf.zeros_like(token_ids, tf.bool),
        "weight": tf.ones([shape.batch_size]),
    }
    label = tf.range(shape.batch_size) % 2
    if kind == "classify":
        return model, batch | {"label": label}
    is_paragraph = tf.ones_like(token_ids, tf.bool)
    return model, batch | {
        "can_answer": is_paragraph,
        "may_start": is_paragraph,
        "start": label + 7,
        "end": label + 5,
        "is_impossible": tf.cast(label, tf.float32),
    }


def server(encoder: XLNetEncoder, shape: Shape) -> Callable:
    """The encoder as it is exported: a function of tokens and segments."""
    network = InferenceEncoder(encoder, shape.seq_len)

    def encode(token_ids, segment_ids):
        is_padding = tf.zeros_like(token_ids, tf.bool)
        return network(token_ids, is_padding, segment_ids)[0]

    return encode


def _count(layer) -> int:
    return sum(variable.shape.num_elements() for variable in layer.trainable_variables)
