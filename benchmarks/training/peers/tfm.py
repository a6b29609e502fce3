"""tf-models-official's legacy XLNet: the step in one `tf.function`, with or without XLA."""

from __future__ import annotations

import types

import tensorflow as tf
import tf_keras
from official.legacy.xlnet import xlnet_modeling

from benchmarks.harness.worker import Work
from benchmarks.harness.workload import DROPOUT, LEARNING_RATE, Shape, masked_batch


def build(kind: str, shape: dict, jit_compile: bool = False) -> Work:
    """Builds the workload of one pre-training step; `kind` must be `pretrain`."""
    assert kind == "pretrain", kind
    model, _, train, features = trainer(Shape(**shape))
    step = tf.function(lambda: train(features), jit_compile=jit_compile)
    step.get_concrete_function()  # The first call creates the variables.
    return Work(lambda: float(step()), model.count_params())


def trainer(sizes: Shape) -> tuple:
    """Returns the model, its optimizer, a function that trains on a batch, and a batch."""
    model_config = types.SimpleNamespace(
        n_token=sizes.vocab_size,
        n_layer=sizes.num_layers,
        d_model=sizes.d_model,
        n_head=sizes.num_heads,
        d_head=sizes.d_model // sizes.num_heads,
        d_inner=sizes.d_inner,
        untie_r=True,
        ff_activation="gelu",
    )
    run_config = types.SimpleNamespace(
        dropout=DROPOUT,
        dropout_att=DROPOUT,
        mem_len=sizes.mem_len,
        reuse_len=sizes.reuse_len,
        bi_data=sizes.batch_size % 2 == 0,
        clamp_len=-1,
        use_cls_mask=False,
        init_method="normal",
        init_std=0.02,
        init_range=0.1,
        use_tpu=False,
        is_training=True,
        same_length=False,
    )
    model = xlnet_modeling.PretrainingXLNetModel(
        use_proj=True, xlnet_config=model_config, run_config=run_config
    )
    optimizer = tf_keras.optimizers.legacy.Adam(LEARNING_RATE)
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
