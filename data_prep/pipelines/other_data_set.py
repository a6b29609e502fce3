"""What differs between a job of data preparation and a data set that is already there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from data_prep.record_settings import RECORDED_ONLY, Settings
from official.xlnet.data.schema import Manifest


def difference(
    manifest: Manifest, inputs: Sequence[str], settings_now: Settings, vocab_sha256: str
) -> str:
    """Returns what differs between a data set and that of a job, for a message.

    Args:
      manifest: the manifest of the data set.
      inputs: file patterns of the job.
      settings_now: settings of the job.
      vocab_sha256: SHA-256 of its vocabulary.
    """
    recorded = manifest.source.get("settings")
    settings = recorded if isinstance(recorded, dict) else {}
    differences = []
    for name, value in dataclasses.asdict(settings_now).items():
        former = settings.get(name, value)
        if name not in RECORDED_ONLY and former != value:
            differences.append(f"{name} was {former!r:.60}, is {value!r:.60}")
    if manifest.vocab_sha256 != vocab_sha256:
        differences.append("another vocabulary")
    former_inputs = manifest.source.get("inputs") or []
    if former_inputs != list(inputs):
        differences.append(f"of other text, {', '.join(map(str, former_inputs)):.200}")
    return "; ".join(differences) or "of other files of text"
