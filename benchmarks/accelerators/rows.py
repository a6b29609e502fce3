"""Rows of the tables of docs/performance.md: what `python -m benchmarks.accelerators` compiles."""

from __future__ import annotations

from typing import Any, NamedTuple


class Key(NamedTuple):
    """What a row is of.

    Attributes:
      step: name of a step.
      chip: name of a device.
      batch_size: rows on one device.
      settings: `key=value` settings of the recipe.
    """

    step: str
    chip: str
    batch_size: int
    settings: tuple[str, ...] = ()


TABLES: dict[str, tuple[Key, ...]] = {
    "tpu": (
        Key("base", "v5e", 8),
        Key("base", "v5e", 16),
        Key("base", "v5e", 32),
        Key("base", "v5e", 64, ("model.recompute=block",)),
        Key("base-serve-512", "v5e", 8),
        Key("large", "v5e", 8),
        Key("large", "v5e", 64, ("model.recompute=block",)),
        Key("large-serve-512", "v5e", 8),
    ),
    "gpu": (
        Key("base", "a100", 8),
        Key("base", "h100", 8),
        Key("base-classify-512", "h100", 8),
        Key("base-serve-512", "h100", 8),
        Key("large", "a100", 8),
        Key("large", "h100", 8),
        Key("large-classify-512", "h100", 8),
        Key("large-classify-512", "v100", 128, ("training.accumulate_steps=16",)),
        Key("large-serve-512", "h100", 8),
        Key("large-squad-512", "v100", 48, ("training.accumulate_steps=6",)),
        Key("tf-models-base", "h100", 8),
    ),
    "slices": (Key("base", "16 v5e", 16), Key("large", "512 v5p", 16)),
}


def key_of(row: dict[str, Any]) -> Key:
    """Returns what a row on file is of."""
    return Key(row["step"], row["chip"], row["batch_size"], tuple(row["set"]))


def row_of(key: Key) -> dict[str, Any]:
    """Returns the part of a row on file that says what it is of."""
    return {
        "step": key.step,
        "batch_size": key.batch_size,
        "chip": key.chip,
        "set": list(key.settings),
    }
