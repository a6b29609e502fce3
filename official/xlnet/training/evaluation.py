"""Held-out loss and perplexity of a pre-trained model, with a unigram baseline."""

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

_COUNTED_WINDOWS = 200_000  # Enough to estimate unigram frequencies of any corpus.
_COUNTING_ROWS = 64  # Batch size for counting.


def evaluate(
    model_dir: str, data_dir: str, split: str = "heldout", mem_len: int | None = None
) -> dict[str, float]:
    """Evaluates a pre-trained model on every window of a split.

    Each lane is read in order, so the recurrent memory carries over between windows.

    Args:
      model_dir: model directory of a pre-training run.
      data_dir: data set with the same vocabulary and sequence lengths.
      split: `heldout` or `train`.
      mem_len: memory length M in tokens, which may exceed that of training. None: the
        `model.mem_len` of training.

    Returns:
      A dictionary with
        loss: mean cross entropy, in nats per target.
        unigram_loss: cross entropy of the same targets under the token frequencies of the
          training split (`unigram_distribution`).
        perplexity: exp(loss).
        targets: number of targets.

    Raises:
      ConfigError: the configuration of the model is invalid or does not match the data set.
      DataError: the model directory or the data set cannot be read.
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
    """Unigram distribution of the training split, with add-one (Laplace) smoothing.

        p(v) = (count(v) + 1) / (Σ counts + V)

    Special tokens are not counted. In a large data set, only the first windows of every lane are.

    Args:
      data_dir: data set directory.
      vocab_size: V.

    Returns:
      Probabilities, float64 [V].

    Raises:
      DataError: the data set cannot be read.
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
    """Returns the largest batch size, up to `most`, that reads every window of a split once.

    Args:
      data_dir: data set directory.
      split: name of the split.
      most: upper limit of the batch size, in rows.
    """
    manifest = Manifest.load(data_dir)
    lanes = manifest.splits[split].num_lanes if split in manifest.splits else most
    return evaluation_batch_size(lanes, most, manifest.bidirectional)


def _unigram_loss(
    data: tf.data.Dataset, probability_V: np.ndarray, config: XLNetConfig
) -> tuple[int, float]:
    """Returns the number of targets and their mean cross entropy under a unigram distribution."""
    objective = create_objective(config)
    nats_V = tf.constant(-np.log(probability_V), tf.float64)

    def add(total, batch):
        task = objective(batch)
        mask_BP = tf.cast(task.mask_BP, tf.float64)
        nats_BP = tf.gather(nats_V, task.labels_BP)
        return total[0] + tf.reduce_sum(mask_BP), total[1] + tf.reduce_sum(nats_BP * mask_BP)

    zero = tf.constant(0.0, tf.float64)
    count, nats = data.reduce((zero, zero), add)
    return int(count), float(nats / count)
