"""Plan of a pre-training run: what it will do, and what is unlikely to be right in its recipe."""

from __future__ import annotations

import math

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.schema import SplitManifest

_MOST_PASSES = 100  # Passes over the data, after which a model mostly memorizes.
_FAR = 10.0  # Ratio of a learning rate to `usual_learning_rate` that is reported.


def usual_learning_rate(num_weights: int) -> float:
    """Learning rate of a language model of a size; a rule of thumb.

        0.003239 − 0.0001395 · ln(N)

    Kaplan et al. (2020), "Scaling Laws for Neural Language Models", equation D.1, for Adam.

    Args:
      num_weights: number of parameters without the embedding, N.

    Example:
      >>> round(usual_learning_rate(85_000_000), 5)
      0.00069
    """
    return max(0.003239 - 0.0001395 * math.log(num_weights), 1e-5)


def plan(config: XLNetConfig, data: SplitManifest, steps: int) -> str:
    """Describes a run in one line: parameters, steps, tokens, passes over the data.

    Args:
      config: the experiment configuration.
      data: manifest entry of the training split.
      steps: number of steps from the start of the run.

    Example:
      >>> plan(config, Manifest.load("records").splits["train"], 1300)
      '0.9 M parameters, 1,300 steps of 16 x 128 tokens (2.7 M tokens), 1.6 passes over 13,312
      windows'
    """
    seq_len, batch_size = config.data.seq_len, config.training.batch_size
    return (
        f"{config.model.num_parameters / 1e6:,.1f} M parameters, "
        f"{steps:,} steps of {batch_size} x {seq_len} tokens "
        f"({steps * batch_size * seq_len / 1e6:,.1f} M tokens), "
        f"{_passes(config, data, steps):,.1f} passes over {data.windows:,} windows"
    )


def warnings(
    config: XLNetConfig, data: SplitManifest, steps: int, is_continued: bool = False
) -> list[str]:
    """Lists what is unlikely to be right in a recipe, a sentence each.

    Args:
      config: the experiment configuration.
      data: manifest entry of the training split.
      steps: number of steps from the start of the run.
      is_continued: whether the weights come from another model, which a low learning rate suits.
    """
    sentences = []
    passes = _passes(config, data, steps)
    if passes > _MOST_PASSES:
        fewer = _MOST_PASSES * data.windows // config.training.batch_size
        sentences.append(
            f"training.num_steps: each window is read {passes:,.0f} times, expected at most "
            f"{_MOST_PASSES}; prepare more text, or train for {fewer:,} steps"
        )
    rate = config.training.learning_rate
    model = config.model
    usual = usual_learning_rate(model.num_parameters - model.num_embeddings * model.d_model)
    is_low = rate < usual / _FAR and not is_continued
    if config.training.optimizer == "adamw" and (is_low or rate > usual * _FAR):
        sentences.append(
            f"training.learning_rate: {rate:g} is far from {usual:.1g}, the usual one for a model "
            "of this size"
        )
    return sentences


def _passes(config: XLNetConfig, data: SplitManifest, steps: int) -> float:
    return steps * config.training.batch_size / data.windows
