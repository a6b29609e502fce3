"""tf-models-official's legacy XLNet: the step in one `tf.function`, with or without XLA."""

from __future__ import annotations

import types

import tensorflow as tf
from official.legacy.xlnet import xlnet_modeling
from official.legacy.xlnet.xlnet_modeling import tf_keras as keras

from benchmarks.harness.worker import Work
from benchmarks.harness.workload import LEARNING_RATE, Shape, config_of, masked_batch


def build(kind: str, shape: dict, jit_compile: bool = False) -> Work:
    """Builds the workload of one pre-training step; `kind` must be `pretrain`."""
    assert kind == "pretrain", kind
    model, _, train, features = trainer(Shape(**shape))
    step = tf.function(lambda: train(features), jit_compile=jit_compile)
    step.get_concrete_function()  # The first call creates the variables.
    return Work(lambda: float(step()), model.count_params())


def create_model(
    config, bi_data: bool, use_proj: bool = False
) -> xlnet_modeling.PretrainingXLNetModel:
    """The model of tf-models-official in the shape and initial scale of a configuration of ours.

    Args:
      config: the configuration.
      bi_data: whether half of the rows are reversed.
      use_proj: whether it has a projection before the logits.
    """
    model = config.model
    shape = types.SimpleNamespace(
        n_token=model.vocab_size,
        n_layer=model.num_layers,
        d_model=model.d_model,
        n_head=model.num_heads,
        d_head=model.d_head,
        d_inner=model.d_inner,
        untie_r=model.untie_r,
        ff_activation="gelu",
    )
    run = types.SimpleNamespace(
        dropout=model.dropout,
        dropout_att=model.dropatt,
        mem_len=model.mem_len,
        reuse_len=config.data.reuse_len,
        bi_data=bi_data,
        clamp_len=-1,
        use_cls_mask=False,
        init_method="normal",
        init_std=model.init_std,
        init_range=0.1,
        use_tpu=False,
        is_training=True,
        same_length=False,
    )
    return xlnet_modeling.PretrainingXLNetModel(
        use_proj=use_proj, xlnet_config=shape, run_config=run
    )


def trainer(sizes: Shape) -> tuple:
    """Returns the model, its optimizer, a function that trains on a batch, and a batch."""
    model = create_model(config_of(sizes), bi_data=sizes.batch_size % 2 == 0, use_proj=True)
    optimizer = keras.optimizers.legacy.Adam(LEARNING_RATE)
    batch = {name: tf.constant(value) for name, value in masked_batch(sizes).items()}
    features = {
        "input_ids": batch["token_ids"],
        "seg_id": batch["segment_ids"],
        "perm_mask": batch["is_hidden"],
        "target_mapping": batch["target_one_hot"],
        "input_q": batch["is_target"],
        "target": batch["labels"],
        "target_mask": tf.ones(batch["labels"].shape),
        "mems": list(batch["memory"]) if sizes.mem_len else None,
    }

    def train(features):
        with tf.GradientTape() as tape:
            model(features, training=True)
            loss = tf.add_n(model.losses)
        variables = model.trainable_variables
        pairs = zip(tape.gradient(loss, variables), variables, strict=True)
        optimizer.apply_gradients([(g, v) for g, v in pairs if g is not None])
        return loss

    return model, optimizer, train, features
