"""The README of a converted model: for HF a model card, with the metrics of its task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from official.xlnet.configs.experiment import XLNetConfig

# What HF's hub reads; whoever publishes the model chooses the license.
_FRONT_MATTER = "---\nlibrary_name: transformers\nlicense:\ntags:\n- xlnet\n---\n\n"


def readme(to: str, config: XLNetConfig, metrics: Mapping[str, Any], found: Sequence[str]) -> str:
    """Returns the text of a README; empty if there is nothing to say.

    Args:
      to: output format, one of `CHECKPOINT_FORMS`.
      config: configuration of the model.
      metrics: of the task, on the data that its checkpoint was chosen by.
      found: a sentence for each difference from its source.
    """
    text = ""
    if found:
        lines = "\n".join(f"- {sentence}." for sentence in found)
        text = f"This model differs from its source:\n\n{lines}\n"
    if to != "hf":
        return text and f"Converted by `xlnet convert`. {text}"
    model, task = config.model, config.task
    kind = f"fine-tuned for {task.name.replace('_', ' ')}" if task.name else "pre-trained"
    card = (
        f"{_FRONT_MATTER}# XLNet, {kind}\n\n{model.num_layers} layers of width {model.d_model}, "
        f"{model.num_parameters / 1e6:.1f} million parameters. Converted by `xlnet convert`.\n"
    )
    numbers = {name: x for name, x in metrics.items() if isinstance(x, float)}
    if numbers:
        rows = "\n".join(f"| {name} | {value:.4g} |" for name, value in numbers.items())
        card += f"\n| metric on the dev set | |\n|---|---|\n{rows}\n"
    return card + (text and f"\n{text}")
