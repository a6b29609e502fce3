"""Configurations of a journey: any key within the range that the tables of `configs` give it.

Sizes stay tiny. `repair` states which values go together, in its own words: it is what a reader of
the documentation knows, and so the oracle for "this must be accepted".
"""

import dataclasses
import functools
import itertools
import random

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import Registry
from official.xlnet.configs.validation import Range
from official.xlnet.errors import ConfigError

BASE = {
    "model.num_layers": 1,
    "model.d_model": 8,
    "model.num_heads": 2,
    "model.d_inner": 11,
    "model.mem_len": 7,
    "model.max_positions": 64,
    "data.seq_len": 29,
    "data.reuse_len": 11,
    "data.num_predict": 5,
    "data.num_lanes": 4,
    "data.heldout_fraction": 0.3,
    "training.batch_size": 4,
    "training.num_steps": 3,
    "training.warmup_steps": 1,
    "training.learning_rate": 0.003,
    "training.checkpoint_steps": 2,
    "task.max_length": 19,
    "task.num_buckets": 2,
}
# Values that cost little, instead of those of the tables.
_TINY = {
    "model.num_layers": (1, 2, 3),
    "model.d_model": (8, 12, 16),
    "model.num_heads": (1, 2, 4),
    "model.d_inner": (3, 11, 16),
    "model.clamp_len": (0, 3, 100),
    "model.mem_len": (0, 1, 7, 40),
    "model.init_std": (0.0, 0.02, 0.3),
    "model.attention_init": ("normal", "neighbors"),
    "model.halting_threshold": (0.0, 0.1, 0.5),
    "model.max_positions": (29, 64, 100),
    "model.num_segments": (1, 2, 3, 5),
    "model.ponder_weight": (0.0, 0.01, 1.0),
    "data.seq_len": (13, 29, 37),
    "data.reuse_len": (1, 5, 11, 20),
    "data.num_predict": (1, 5, 20),
    "data.target_ratio": (1.0, 2.0, 6.0, 100.0),
    "data.max_span": (1, 2, 5, 40),
    "data.num_lanes": (1, 2, 4, 6, 8),
    "data.heldout_fraction": (0.05, 0.3, 0.5),
    "data.max_unknown": (0.2, 0.5, 0.99),
    "data.seed": (0, -5, 2**63 - 1),
    "data.phrases": (["of the", "New York"], ["the water"]),
    "objective.kind": ("permutation", "denoising", "causal"),
    "objective.target_draws": (0, 1, 10),
    "objective.input_format": ("pairs", "full_sentences", "doc_sentences"),
    "objective.auxiliary": ([], ["capitalization"], ["token_document", "capitalization"]),
    "training.batch_size": (1, 2, 4, 6),
    "training.num_steps": (2, 3, 5),
    "training.warmup_steps": (0, 1, 2),
    "training.learning_rate": (1e-5, 0.003, 0.03),
    "training.end_learning_rate": (0.0, 1e-6),
    "training.decay_power": (0.0, 1.0, 2.0),
    "training.weight_decay": (0.0, 0.01, 1.0),
    "training.adam_beta_1": (0.0, 0.9),
    "training.adam_beta_2": (0.5, 0.999),
    "training.adam_epsilon": (1e-8, 1e-6, 1e-3),
    "training.muon_scale": (0.2, 1.0),
    "training.clip_norm": (0.0, 0.1, 1.0),
    "training.layer_decay": (0.5, 1.0),
    "training.accumulate_steps": (1, 2),
    "training.parallel_slices": (0, 1, 2),
    "training.steps_per_execution": (1, 2, 3),
    "training.checkpoint_steps": (1, 2, 3),
    "training.keep_checkpoints": (1, 2),
    "training.evaluation_steps": (0, 1, 2),
    "training.seed": (0, 1, 2**32 - 1),
    "task.max_length": (8, 19, 40),
    "task.num_buckets": (1, 2, 5),
    "task.patience": (0, 1),
    "task.epochs": (0.0, 0.5, 1.0),
    "task.window_stride": (1, 5, 64),
    "task.max_windows": (1, 2, 4),
    "task.query_length": (3, 64),
    "task.answer_length": (1, 5, 64),
    "task.start_n_top": (1, 3, 5),
    "task.end_n_top": (1, 3, 5),
    "task.n_best": (1, 3, 20),
    "task.null_threshold": (-1.0, 0.0, 1.0),
    "task.answer_steps": (1, 3),
    "task.lm_weight": (0.0, 0.5),
    "task.num_candidates": (2, 3),
    "task.cutoff": (1, 20),
    "task.highest_grade": (0, 3),
    "task.rerank_depth": (0, 2),
    "task.scope": ("", "mnli"),
}
# Drawn by the part of a journey that they belong to; keys without a table are, too.
_DRAWN_ELSEWHERE = ("model.vocab_size", "model.embedding_rows", "task.num_choices")
_OF_PAIRS = ("auxiliary", "next_sentence")  # Objectives that RoBERTa's inputs do not have.
# Each pair of values of these is forced on a journey, by turns.
IMPORTANT = {
    "model.network": ("xlnet", "bert", "gpt", "gpt2"),
    "objective.kind": ("permutation", "denoising", "causal"),
    "model.mem_len": (0, 7),
    "model.depth": ("stacked", "shared", "adaptive"),
    "model.attention_type": ("bi", "uni"),
    "model.recompute": ("none", "attention", "block"),
    "model.clamp_len": (0, 3),
    "model.untie_r": (True, False),
    "data.bidirectional": (True, False),
    "data.target_unit": ("word", "token"),
    "data.lowercase": (True, False),
    "data.keep_accents": (True, False),
    "objective.next_sentence": (True, False),
    "training.optimizer": ("adamw", "lamb", "muon"),
    "training.accumulate_steps": (1, 2),
    "training.parallel_slices": (0, 1, 2),
    "training.precision": ("float32", "mixed_bfloat16", "mixed_float16"),
    "training.steps_per_execution": (1, 2),
    "task.long_texts": ("truncate", "windows", "memory"),
    "task.summary": ("last", "first", "mean", "attn"),
    "task.freeze_encoder": (True, False),
}
_SHARE = 0.07  # Of the other keys, that a journey changes.


_defaults = functools.cache(XLNetConfig)


@functools.cache
def keys() -> list[str]:
    """Names of all keys, `section.key`."""
    config = _defaults()
    sections = [field.name for field in dataclasses.fields(config)]
    return [f"{name}.{key}" for name in sections for key in getattr(config, name).known_keys()]


@functools.cache
def values_of(key: str) -> tuple:
    """Values of a key that a journey may have; none if it is not drawn by itself."""
    if key in _DRAWN_ELSEWHERE:
        return ()
    for table in (_TINY, IMPORTANT):
        if key in table:
            return table[key]
    name, key = key.split(".")
    section = getattr(_defaults(), name)
    default = getattr(section, key)
    field = type(section).__dataclass_fields__.get(key)
    if isinstance(default, bool) or (field and "bool" in str(field.type)):
        return (True, False)
    owner = section.settings_with(key) if name == "task" else None
    allowed = (owner or type(section)).allowed.get(key, ())
    if name == "task" and isinstance(allowed, Registry):
        allowed = tuple(allowed.names())
    if not isinstance(allowed, Range):
        return allowed
    share = (0.0, 0.1, 0.5) if isinstance(default, float) or default is None else (1, 2)
    return tuple(value for value in share if allowed.holds(value))


def draw_configuration(rng: random.Random, number: int) -> dict:
    """{key: value} beyond the defaults; the pair of important values goes by the number."""
    config = dict(BASE)
    for key in keys():
        if values_of(key) and rng.random() < _SHARE:
            config[key] = rng.choice(values_of(key))
    pairs = important_pairs()
    for key, value in pairs[number % len(pairs)]:
        config[key] = value
    names = config.get("objective.auxiliary")
    if names and rng.random() < 0.5:
        config["objective.auxiliary_steps"] = [str(2 * n) for n in range(len(names))]
        config["objective.auxiliary_weights"] = ["0.5"] * len(names)
    return config


@functools.cache
def important_pairs() -> list:
    """((key, value), (key, value)) of different important keys, in a random order."""
    pairs = [
        tuple(zip((a, b), values, strict=True))
        for a, b in itertools.combinations(IMPORTANT, 2)
        for values in itertools.product(IMPORTANT[a], IMPORTANT[b])
    ]
    random.Random(0).shuffle(pairs)
    return pairs


def repair(config: dict, strategy: str, replicas: int) -> None:
    """Makes the values go together, by what the documentation says of each."""

    def of(key):
        section, name = key.split(".")
        return config.get(key, getattr(getattr(_defaults(), section), name))

    if of("model.network") != "xlnet":
        config |= {"model.mem_len": 0, "model.clamp_len": 0, "model.recompute": "none"}
        config |= {"model.depth": "stacked", "data.bidirectional": False}
        config["model.attention_type"] = "bi" if of("model.network") == "bert" else "uni"
        config["model.max_positions"] = max(config["model.max_positions"], of("data.seq_len"))
        config["model.max_positions"] = max(config["model.max_positions"], of("task.max_length"))
        if of("task.long_texts") == "memory":
            config["task.long_texts"] = "windows"
        if of("objective.kind") == "permutation":
            config["objective.kind"] = "denoising" if of("model.network") == "bert" else "causal"
    if of("task.long_texts") == "memory" and of("model.mem_len") == 0:
        config["model.mem_len"] = 7
    config["data.reuse_len"] = min(of("data.reuse_len"), of("data.seq_len") - 6)
    config["data.num_predict"] = min(of("data.num_predict"), of("data.seq_len") - 3)
    if of("data.phrases"):
        config["data.target_unit"] = "word"
    if of("objective.mask_share") + of("objective.random_share") > 1:
        config["objective.random_share"] = 0.0
    has_labels = {
        "next_sentence": of("objective.kind") != "causal",
        "capitalization": of("objective.kind") != "causal" and not of("data.lowercase"),
        "token_document": of("objective.kind") != "denoising" or of("model.mem_len") > 0,
    }
    config["objective.next_sentence"] = (
        of("objective.next_sentence") and has_labels["next_sentence"]
    )
    if not all(has_labels[name] for name in of("objective.auxiliary")):
        for key in ("auxiliary", "auxiliary_steps", "auxiliary_weights"):
            config[f"objective.{key}"] = []
    if of("objective.kind") != "denoising" or any(of(f"objective.{key}") for key in _OF_PAIRS):
        config["objective.input_format"] = "pairs"
    if of("objective.input_format") == "doc_sentences" and of("model.mem_len"):
        config["objective.input_format"] = "full_sentences"
    steps = of("training.num_steps")
    config["training.warmup_steps"] = min(of("training.warmup_steps"), steps)
    # Rows: halves of reversed text, micro-batches, replicas.
    directions = 2 if of("data.bidirectional") else 1
    shares = of("training.accumulate_steps") * max(1, of("training.parallel_slices"))
    multiple = directions * shares * (replicas if strategy == "mirrored" else 1)
    config["training.batch_size"] = -(-of("training.batch_size") // multiple) * multiple
    config["data.num_lanes"] = max(of("data.num_lanes"), config["training.batch_size"])
    config["data.num_lanes"] += config["data.num_lanes"] % directions
    for key in [key for key in config if not is_read(key, config)]:
        del config[key]


def is_read(key: str, config: dict, **more) -> bool:
    """Whether anything reads a key of a configuration, with more keys of its section."""
    section, name = key.split(".")
    own = {k.split(".")[1]: v for k, v in config.items() if k.startswith(f"{section}.")}
    try:
        type(getattr(_defaults(), section)).of(own | more).require_read([name])
    except ConfigError:
        return False
    return True
