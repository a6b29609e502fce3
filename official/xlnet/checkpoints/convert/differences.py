"""Settings that other formats do not have: refused, or described, also in a model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from official.xlnet.checkpoints.convert.variable_map import rows_of
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import HEAD_FORMATS
from official.xlnet.configs.validation import require

_NAMES = {"hf": "HF", "tf1": "the TF1 release"}


# Read by HF's hub; the license is left to the publisher.
_FRONT_MATTER = "---\nlibrary_name: transformers\nlicense:\ntags:\n- xlnet\n---\n\n"


def check_convertible(config: XLNetConfig) -> None:
    """Raises `ConfigError` if no other format has the network or the head of a model."""
    answer_module = config.task.as_dict().get("answer_module", "summary")
    for holds, key, expected, got in (
        (
            config.model.network == "xlnet",
            "model.network",
            "xlnet to convert between formats of XLNet models",
            config.model.network,
        ),
        (
            config.model.depth == "stacked",
            "model.depth",
            "stacked, as in every other format",
            config.model.depth,
        ),
        (
            config.task.summary != "attn",
            "task.summary",
            "last, first or mean, as in every other format",
            config.task.summary,
        ),
        (
            config.task.name not in HEAD_FORMATS.names() or answer_module == "summary",
            "task.answer_module",
            "summary, as in every other format",
            answer_module,
        ),
    ):
        require(holds, key, expected, got)


def differences(config: XLNetConfig, to: str, added_tokens: tuple[str, ...] = ()) -> list[str]:
    """Returns a sentence for each setting with which a converted model computes something else.

    Args:
      config: configuration of the model.
      to: output format, one of `CHECKPOINT_FORMS`.
      added_tokens: texts of the tokens that were added to the vocabulary.

    Example:
      >>> task = {"name": "regression", "summary": "mean"}
      >>> len(differences(XLNetConfig.from_dict({"task": task}), "hf"))
      1
    """
    if to == "xlnet":
        return []
    name, is_tf1 = _NAMES[to], to == "tf1"
    sentences = {
        f"objective.kind=causal: {name} has no such objective; read logits of the next token from "
        "the content stream, and do not generate with it, which reads the query stream": (
            config.objective.kind == "causal" and not config.task.name
        ),
        f"added tokens: {name} has none, and splits {' '.join(added_tokens)} into pieces": (
            is_tf1 and bool(added_tokens)
        ),
    }
    for key, is_set, flag in (
        ("data.lowercase", config.data.lowercase, "--uncased"),
        ("data.keep_accents", config.data.keep_accents, "keep_accents in its code"),
        ("model.clamp_len", config.model.clamp_len, "--clamp_len"),
        ("model.segments", not config.model.segments, "all segment_ids to 0"),
        ("model.attention_type", config.reads_left_to_right, "attn_type=uni in its code"),
    ):
        sentences[f"{key}: {name} does not store it; set {flag}"] = is_tf1 and bool(is_set)
    of_task = _of_task(config, to) if config.task.name else []
    return [*of_task, *(sentence for sentence, holds in sentences.items() if holds)]


def _of_task(config: XLNetConfig, to: str) -> list[str]:
    name, task, is_tf1 = _NAMES[to], config.task, to == "tf1"
    variables = [row.xlnet.name for row in rows_of(config, to)]
    if not any(variable.startswith("head/") for variable in variables):
        return [f"task.name: {name} has no head for {task.name}; only the encoder is converted"]
    head = HEAD_FORMATS[task.name]
    has_summary = any("summary" in variable for variable in variables)
    what = {"mean": "the mean of all tokens", "first": "the first token"}.get(task.summary)
    how = {
        "hf": "pass texts one at a time, or batches of texts of equal length",
        "tf1": f"it pads every text; set --summary_type={task.summary}",
    }[to]
    num_texts = len(task.text_columns)
    threshold = task.as_dict().get("null_threshold", 0)
    sentences = {
        f"task.summary={task.summary}: {what} includes padding in {name}, and not here, so logits "
        f"of padded texts differ; {how}": has_summary and what is not None,
        f"task.long_texts={task.long_texts}: {name} reads a text as one sequence; texts of more "
        f"than {task.max_length} tokens have other logits": (
            has_summary and task.long_texts != "truncate"
        ),
        f"task.text_columns: {name} reads texts in one order, this model in both": (
            len(task.text_orders(num_texts)) > 1
        ),
        f"task.text_columns: {name} takes at most two texts, this model {num_texts}": num_texts > 2,
        f"task.null_threshold: {name} does not store it; there is no answer if the log odds exceed "
        f"{threshold:g}": bool(threshold),
        f"task.truncation_side: {name} truncates texts on the right": (
            is_tf1 and task.truncation_side == "left"
        ),
        f"task.labels: {name} numbers the classes: {', '.join(task.labels)}": (
            is_tf1 and "C" in head.logits().xlnet.shape
        ),
    }
    return [sentence for sentence, holds in sentences.items() if holds]


def readme(
    to: str, config: XLNetConfig, metrics: Mapping[str, Any], sentences: Sequence[str]
) -> str:
    """Returns the text of a README; empty if there is nothing to say.

    Args:
      to: output format, one of `CHECKPOINT_FORMS`.
      config: configuration of the model.
      metrics: of the task, on the data that its checkpoint was chosen by.
      sentences: one for each difference from its source.
    """
    text = ""
    if sentences:
        lines = "\n".join(f"- {sentence}." for sentence in sentences)
        text = f"This model differs from its source:\n\n{lines}\n"
    if to != "hf":
        return text and f"Converted by `xlnet convert`. {text}"
    model, task = config.model, config.task
    stage = f"fine-tuned for {task.name.replace('_', ' ')}" if task.name else "pre-trained"
    card = (
        f"{_FRONT_MATTER}# XLNet, {stage}\n\n{model.num_layers} layers of width {model.d_model}, "
        f"{model.num_parameters / 1e6:.1f} million parameters. Converted by `xlnet convert`.\n"
    )
    numbers = {name: x for name, x in metrics.items() if isinstance(x, float)}
    if numbers:
        rows = "\n".join(f"| {name} | {value:.4g} |" for name, value in numbers.items())
        card += f"\n| metric on the dev set | value |\n|---|---|\n{rows}\n"
    return card + (text and f"\n{text}")
