"""Held-out loss and perplexity of a pre-trained model, with a unigram baseline."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.any_format import foreign_source, load_config
from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import BREAKDOWNS
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.pretraining_dataset import Records, reading_errors
from official.xlnet.data.schema import Manifest
from official.xlnet.errors import require_data
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.runtime.perplexity import LARGEST_EXPONENT, perplexity
from official.xlnet.tokenization.special_tokens import VOCAB_FILE, WORD_START
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.unspaced_scripts import begins_unspaced_word
from official.xlnet.training.run_health import unigram_distribution

_MOST_WINDOWS = 200_000  # Enough to estimate unigram frequencies of any corpus.


def evaluate(
    model_dir: str,
    data_dir: str,
    split: str = "heldout",
    mem_len: int | None = None,
    by: str | None = None,
    output: str | None = None,
) -> dict[str, Any]:
    """Evaluates a pre-trained model on every window of a split.

    Each lane is read in order, so the recurrent memory carries over between windows.

    Args:
      model_dir: model directory of a pre-training run.
      data_dir: data set with the same vocabulary and sequence lengths; a folder of HF or TF1 reads
        windows of any length.
      split: `heldout` or `train`.
      mem_len: memory length M in tokens, which may be longer than in training. None: the
        `model.mem_len` of training.
      by: property of the targets to also break the loss down by, a name in `BREAKDOWNS`.
      output: directory of a file and a picture of this breakdown; default: none.

    Returns:
      A dictionary with
        loss: mean cross entropy, in nats per target.
        loss_NAME: loss of each auxiliary objective that has labels, in nats per label.
        unigram_loss: cross entropy of the same targets under the token frequencies of the
          training split (`unigram_distribution`).
        perplexity: exp(loss).
        targets: number of targets.
        by_NAME: the loss by the property `by`.
      and for a causal model, which predicts every token once, also
        words, characters: number of words (separated by spaces; in scripts without them, pieces
          that begin with a letter) and of characters in the targets, spaces between words included.
        word_perplexity: perplexity per word, exp(loss · targets / words), if there are words.
        bits_per_character: loss · targets / (characters · ln 2).

    Raises:
      ConfigError: the configuration of the model is invalid or does not match the data set.
      DataError: the model directory or the data set cannot be read, or the split has no targets.
    """
    config = load_config(model_dir)
    if foreign_source(model_dir) is not None:  # Its format does not record the training windows.
        manifest = Manifest.load(data_dir)
        for name in ("seq_len", "reuse_len", "bidirectional"):
            setattr(config.data, name, getattr(manifest, name))
        config.data.num_predict = max(1, manifest.seq_len // 6)  # 85 of 512, as in the paper.
    if mem_len is not None:
        config.model.mem_len = mem_len
        config.check()
    vocab = os.path.join(model_dir, VOCAB_FILE)
    records = Records(data_dir, config, vocab)
    batch_size = records.largest_batch(split, config.training.batch_size)
    data = records.batches(batch_size, split, epochs=1)
    model = load_pretrainer(model_dir, config, batch_size=batch_size, dtype="float32")
    model.compile(jit_compile=config.training.jit_compile)
    with reading_errors(data_dir, "train"):
        windows = records.first_windows(_MOST_WINDOWS)
        nats_V = -np.log(unigram_distribution(windows, config.model.vocab_size))
    with reading_errors(data_dir, split):
        losses = model.evaluate(data, verbose=0, return_dict=True)
        words_V, characters_V = _text_units(Tokenizer(vocab))
        values_VK = np.stack([np.ones_like(nats_V), nats_V, words_V, characters_V], axis=1)
        targets, nats, words, characters = _sum_over_targets(data, values_VK, config)
    require_data(bool(targets), f"{data_dir}, split {split}", "windows with targets", "no target")
    loss = float(losses["loss"])
    metrics: dict[str, Any] = {}
    for name, value in losses.items():
        if not math.isnan(float(value)):
            metrics[name] = float(value)
    metrics["unigram_loss"] = nats / targets
    metrics["perplexity"] = perplexity(loss)
    metrics["targets"] = round(targets)
    if by:
        metrics[f"by_{by}"] = BREAKDOWNS[by](model, data, output)
    if config.objective.kind == "causal":
        metrics |= text_metrics(loss * targets, int(words), int(characters))
    return metrics


def text_metrics(nats: float, words: int, characters: int) -> dict[str, float]:
    """Metrics of a language model that do not depend on its vocabulary.

    Args:
      nats: total negative log-likelihood of a text.
      words: number of words of the text.
      characters: number of characters of the text.

    Returns:
      `words`, `characters`, `bits_per_character`, and `word_perplexity` if the text has words.

    Example:
      >>> text_metrics(nats=6 * math.log(2), words=3, characters=12)
      {'words': 3, 'characters': 12, 'bits_per_character': 0.5, 'word_perplexity': 4.0}
    """
    metrics: dict[str, float] = {
        "words": words,
        "characters": characters,
        "bits_per_character": nats / (characters * math.log(2)),
    }
    if words and nats / words < LARGEST_EXPONENT:  # Text may be one long word.
        metrics["word_perplexity"] = perplexity(nats / words)
    return metrics


def _text_units(tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """Returns the number of words that start at each word piece, and of its characters.

    Both are float64 [V].
    """
    pieces = [tokenizer.id_to_piece(i) for i in range(tokenizer.vocab_size)]
    words_V = np.array(
        [piece.startswith(WORD_START) or begins_unspaced_word(piece) for piece in pieces],
        np.float64,
    )
    return words_V, tokenizer.num_characters.astype(np.float64)


def _sum_over_targets(
    data: tf.data.Dataset, values_VK: np.ndarray, config: XLNetConfig
) -> list[float]:
    """Sums K values of the word pieces, float64 [V, K], over all targets of a data set."""
    objective = create_objective(ObjectiveSections.of(config))
    table_VK = tf.constant(values_VK, tf.float64)

    def add(total_K, batch):
        task = objective(batch)
        mask_BP = tf.cast(task.mask_BP, tf.float64)
        values_BPK = tf.gather(table_VK, task.labels_BP)
        return total_K + tf.einsum("bpk,bp->k", values_BPK, mask_BP)

    zeros_K = tf.zeros([values_VK.shape[1]], tf.float64)
    return [float(total) for total in data.reduce(zeros_K, add)]
