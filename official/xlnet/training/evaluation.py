"""Held-out loss of a pre-trained model, next to that of a model that knows only word counts."""

from __future__ import annotations

import dataclasses
import math
import os

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.model_directory import load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.pretraining_dataset import (
    evaluation_batch_size,
    pretraining_dataset,
    reading_errors,
)
from official.xlnet.data.schema import Manifest
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.tokenization.special_tokens import VOCAB_FILE

_COUNTED_WINDOWS = 200_000  # Enough for word counts of any corpus.
_COUNTING_ROWS = 64


def evaluate(
    model_dir: str, data_dir: str, split: str = "heldout", mem_len: int | None = None
) -> dict[str, float]:
    """Evaluates on every window of a split, each lane read in order with its memory.

    Args:
      model_dir: a model directory.
      data_dir: a data set of the same vocabulary and lengths.
      split: `heldout` or `train`.
      mem_len: length of the memory, by default that of training; it may be longer.

    Returns:
      loss: mean over all targets, in nats per target.
      unigram_loss: cross entropy of the same targets under the training split's word-piece
        frequencies (`unigram_distribution`).
      perplexity: exp(loss).
      targets: number of targets.

    Raises:
      ConfigError, DataError: model and data cannot be used, or not together.
    """
    config = XLNetConfig.load(model_dir)
    batch_size = split_batch_size(data_dir, split, config.training.batch_size)
    config.training = config.training.in_one_piece(batch_size)
    if mem_len is not None:
        config.model = dataclasses.replace(config.model, mem_len=mem_len)
        config.check()
    vocab = os.path.join(model_dir, VOCAB_FILE)
    data = pretraining_dataset(data_dir, batch_size, split, config, epochs=1, vocab=vocab)
    model = load_pretrainer(model_dir, config)
    model.compile(jit_compile=config.training.jit_compile)
    with reading_errors(data_dir, split):
        loss = float(model.evaluate(data, verbose=0, return_dict=True)["loss"])
        num_targets, unigram_loss = _unigram_loss(
            data, unigram_distribution(data_dir, config.model.vocab_size), config
        )
    return {
        "loss": loss,
        "unigram_loss": unigram_loss,
        "perplexity": math.exp(loss),
        "targets": num_targets,
    }


def unigram_distribution(data_dir: str, vocab_size: int) -> np.ndarray:
    """Frequencies of word pieces in the training split, each counted once more than it occurs.

        p(v) = (count(v) + 1) / (sum of all counts + V)

    Special tokens are not counted. Of a large data set the first windows of every lane are.

    Returns:
      float64 [V], with sum 1.
    """
    batch_size = split_batch_size(data_dir, "train", _COUNTING_ROWS)
    data = pretraining_dataset(data_dir, batch_size, "train", epochs=1)
    counts_V = np.ones(vocab_size)
    with reading_errors(data_dir, "train"):
        for batch in data.take(_COUNTED_WINDOWS // batch_size):
            tokens = batch["token_ids"].numpy()[batch["can_be_target"].numpy()]
            counts_V += np.bincount(tokens, minlength=vocab_size)
    return counts_V / counts_V.sum()


def split_batch_size(data_dir: str, split: str, most: int) -> int:
    """The largest batch of up to `most` rows that reads every window of a split once."""
    manifest = Manifest.load(data_dir)
    lanes = manifest.splits[split].num_lanes if split in manifest.splits else most
    return evaluation_batch_size(lanes, most, manifest.bidirectional)


def _unigram_loss(
    data: tf.data.Dataset, probability_V: np.ndarray, config: XLNetConfig
) -> tuple[int, float]:
    """Number of targets and the mean of -log p over them."""
    objective = create_objective(config)
    surprise_V = tf.constant(-np.log(probability_V), tf.float64)

    def add(total, batch):
        task = objective(batch)
        mask_BP = tf.cast(task.mask_BP, tf.float64)
        surprise_BP = tf.gather(surprise_V, task.labels_BP)
        return total[0] + tf.reduce_sum(mask_BP), total[1] + tf.reduce_sum(surprise_BP * mask_BP)

    zero = tf.constant(0.0, tf.float64)
    count, surprise = data.reduce((zero, zero), add)
    return int(count), float(surprise / count)
