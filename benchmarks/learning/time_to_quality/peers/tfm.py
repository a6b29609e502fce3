"""The XLNet of tf-models-official on the batches, targets and orders of our recipe.

    python -m benchmarks.learning.time_to_quality.peers.tfm --config=… (see `runs`)

No memory, no dropout; AdamW with the momentum and clipping of our recipe; the step is one
`tf.function`. Its weights have no place for ours, so the process evaluates its own checkpoints at
its end.
"""

from __future__ import annotations

import dataclasses
import os

import tensorflow as tf
from official.legacy.xlnet import xlnet_modeling
from official.legacy.xlnet.xlnet_modeling import tf_keras as keras

from benchmarks.learning.time_to_quality.peers.common import WEIGHT_DECAY, arguments, steps
from benchmarks.learning.time_to_quality.runs import EVALUATION
from benchmarks.training.peers.tfm import create_model
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.pretraining_dataset import Records, pretraining_dataset
from official.xlnet.files.json_files import write_json
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.tokenization.tokenizer import num_pieces
from official.xlnet.training.run_health import unigram_distribution


def main() -> None:
    flags = arguments()
    keras.utils.set_random_seed(flags.seed)
    config = XLNetConfig.load(flags.config)
    config.model.fit_vocabulary(num_pieces(flags.vocab), flags.vocab)
    config.model = dataclasses.replace(config.model, mem_len=0)
    config.training = dataclasses.replace(config.training, seed=flags.seed)
    training = config.training
    model = create_model(config, bi_data=config.data.bidirectional)
    optimizer = keras.optimizers.AdamW(
        flags.rate,
        weight_decay=WEIGHT_DECAY,
        beta_1=training.adam_beta_1,
        beta_2=training.adam_beta_2,
        epsilon=training.adam_epsilon,
        global_clipnorm=training.clip_norm,
    )
    objective = create_objective(ObjectiveSections.of(config))
    batches = iter(pretraining_dataset(flags.data, training.batch_size, "train", config))

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = loss_of(model, features(objective, next(batches)))
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        pairs = zip(gradients, variables, strict=True)
        optimizer.apply_gradients([(g, v) for g, v in pairs if g is not None])

    loss_of(model, features(objective, next(batches)))  # Creates the variables.
    optimizer.build(model.trainable_variables)
    saved = {}

    def save(number: int) -> None:
        saved[number] = model.get_weights()

    for rate, _ in steps(flags, save):
        optimizer.learning_rate.assign(rate)
        step()

    metrics = evaluator(model, config, flags.data)
    for number, weights in saved.items():
        model.set_weights(weights)
        write_json(os.path.join(flags.output, f"step-{number}"), metrics())


def features(objective, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """The inputs of tf-models-official for a batch, with forward rows first.

    A token is hidden from those that come before it in the factorization order; a target also from
    itself.
    """
    rows = tf.argsort(tf.cast(batch["is_reversed"], tf.int32), stable=True)
    task = objective({name: tf.gather(value, rows) for name, value in batch.items()})
    length = task.inputs["token_ids"].shape[1]
    one_hot_BPT = tf.one_hot(task.inputs["target_positions"], length) * task.mask_BP[..., None]
    is_target_BT = tf.reduce_sum(one_hot_BPT, axis=1)
    order_BT = task.inputs["order"]
    later_BTT = tf.cast(order_BT[:, None] > order_BT[:, :, None], tf.float32)
    return {
        "input_ids": task.inputs["token_ids"],
        "seg_id": task.inputs["segment_ids"],
        "perm_mask": later_BTT + tf.linalg.diag(is_target_BT),
        "target_mapping": one_hot_BPT,
        "input_q": is_target_BT,
        "target": task.labels_BP,
        "target_mask": task.mask_BP,
        "mems": None,
    }


def loss_of(model: xlnet_modeling.PretrainingXLNetModel, inputs: dict[str, tf.Tensor]):
    """Mean loss of the targets of a batch."""
    model(inputs)
    return tf.add_n(model.losses)


def evaluator(model: xlnet_modeling.PretrainingXLNetModel, config: XLNetConfig, data_dir: str):
    """A function that returns `loss` and `unigram_loss` on the benchmark's held-out targets."""
    config = dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, **EVALUATION),
        training=dataclasses.replace(config.training, seed=0),
    )
    objective = create_objective(ObjectiveSections.of(config))
    records = Records(data_dir, config)
    rows = records.largest_batch("heldout", config.training.batch_size)
    data = records.batches(rows, "heldout")
    nats_V = -tf.math.log(
        tf.constant(
            unigram_distribution(records.first_windows(200_000), config.model.vocab_size),
            tf.float32,
        )
    )

    @tf.function
    def sums(batch):
        inputs = features(objective, batch)
        mask_BP = inputs["target_mask"]
        unigram = tf.reduce_sum(tf.gather(nats_V, inputs["target"]) * mask_BP)
        count = tf.reduce_sum(mask_BP)
        return tf.stack([loss_of(model, inputs) * count, unigram, count])

    def metrics() -> dict[str, float]:
        loss, unigram, count = sum(sums(batch) for batch in data).numpy().tolist()
        return {"loss": loss / count, "unigram_loss": unigram / count}

    return metrics


if __name__ == "__main__":
    main()
