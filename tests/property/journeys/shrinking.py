"""A smaller journey with the same violation."""

import copy
import re
import time
from collections.abc import Iterator

from tests.property.journeys.draws.configuration import BASE
from tests.property.journeys.journey import travel

_PLAIN = {
    "is_eager": True,
    "strategy": "one_device",
    "source": "scratch",
    "corpus": {"script": "english", "format": "txt", "files": 1, "line_end": "\n"},
    "vocabulary": {"kind": "ours", "size": 150, "model_has_more": 0},
    "task": {"script": "english", "properties": [], "labels": "few", "target_scale": 1.0},
    "interrupted": {"verb": "none"},
}


def shrink(journey: dict, violation: str, seconds: float) -> dict:
    """Changes to a journey that keep its violation; as many as are found in some seconds."""
    change: dict = {}
    deadline = time.monotonic() + seconds
    for candidate in _changes(journey):
        if time.monotonic() > deadline:
            break
        tried = _joined(change, candidate)
        if _kind(travel(merged(journey, tried)).violation) == _kind(violation):
            change = tried
    return change


def _joined(change: dict, more: dict) -> dict:
    """Both changes, those of the configuration among them."""
    config = change.get("config", {}) | more.get("config", {})
    return {**change, **more} | ({"config": config} if config else {})


def _changes(journey: dict) -> Iterator[dict]:
    extra = [key for key, value in journey["config"].items() if BASE.get(key) != value]
    size = len(extra)
    while size:
        for start in range(0, len(extra), size):
            yield {"config": {key: BASE.get(key) for key in extra[start : start + size]}}
        size //= 2
    for key, value in _PLAIN.items():
        yield {key: value}
    for verb in journey["reading"]:
        yield {"reading": [verb]}


def merged(journey: dict, change: dict) -> dict:
    """A journey with changes; None removes a key."""
    result = copy.deepcopy(journey)
    for key, value in change.items():
        if isinstance(value, dict):
            result[key] = merged(result.get(key, {}), value)
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


def _kind(violation: str) -> str:
    return re.sub(r"\d+", "N", violation.partition(": ")[0])
