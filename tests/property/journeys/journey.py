"""One journey from its description to its counts, and what of it is a violation."""

import collections
import dataclasses
import gc
import pathlib
import re
import tempfile
import traceback

import tensorflow as tf
import tf_keras

from tests.property.journeys import language, task_reading, tasks
from tests.property.journeys.known import KNOWN
from tests.property.journeys.promises import Violation, promise
from tests.property.journeys.refusals import is_allowed
from tests.property.journeys.verbs import Refused, World


@dataclasses.dataclass
class Travelled:
    """How a journey ended.

    Attributes:
      journey: its description.
      violation: what was not kept, in a line; empty if nothing was.
      counts: verbs, refusals and interruptions, by their number.
    """

    journey: dict
    violation: str
    counts: collections.Counter


def travel(journey: dict) -> Travelled:
    """Runs a journey in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(journey, pathlib.Path(folder))
        tf.config.run_functions_eagerly(journey["is_eager"])
        violation = ""
        try:
            _travel(world)
        except Refused as error:
            violation = _judged(world, error)
        except Violation as error:
            violation = str(error)
        except Exception as error:  # Of this code, or of an API that promises none.
            lines = traceback.format_exc().splitlines()[-6:]
            violation = f"{type(error).__name__}: {error} | {' | '.join(lines)}"[:2000]
        finally:
            tf.config.run_functions_eagerly(False)
            tf_keras.backend.clear_session()
            tf_keras.mixed_precision.set_global_policy("float32")
            gc.collect()
    return Travelled(journey, violation.replace(folder, "…"), world.counts)


def _travel(world: World) -> None:
    journey = world.journey
    route = journey["route"]
    world.counts[f"route {route}"] += 1
    if route == "files":
        task_reading.read_files(journey["task"], world.folder, world.counts)
        return
    if journey["source"] == "version_0_1" and route != "data":
        model, records = language.old_model(world)
        if route == "language":
            language.read_model(world, model, records)
            return
        vocab, config = model, f"{model}/config.yaml"
    else:
        vocab = language.make_vocabulary(world)
        config = language.write_config(world, vocab)
        model = language.make_source(world, vocab, config) if route != "data" else None
        if route != "task":
            records = language.make_records(world, vocab, config)
            if route == "data":
                return
            if model is not None:  # Read as it is, before it is trained further.
                language.read_model(world, model, None)
            model = language.make_model(world, records, config, model)
            language.read_model(world, model, records)
            if route == "language":
                return
    tasks.travel(world, model, vocab, config)


def known(violation: str) -> str:
    """The issue that a violation belongs to; empty if it is new."""
    return next((issue for words, issue in KNOWN if re.search(words, violation, re.DOTALL)), "")


def _judged(world: World, error: Refused) -> str:
    """The violation in a refusal; empty if it is one that may be."""
    try:
        world.refused(error, None)
    except Violation as violation:
        return str(violation)
    return ""


def refused(world: World, error: Refused, config) -> None:
    """Counts a refusal.

    Raises:
      Violation: the combination was known to an earlier verb, or is one that has to be accepted.
    """
    world.counts[f"refused {error.verb}: {_kind(error.sentence)}"] += 1
    promise(
        is_allowed(world.journey, error, config),
        f"{error.verb} refuses what it should take, or too late",
        error.sentence,
    )


def _kind(sentence: str) -> str:
    """A sentence without what differs from case to case."""
    sentence = re.sub(r"\S*/\S+", "…", sentence)
    return re.sub(r"[\d.,]+", "N", sentence)[:90]


World.refused = refused  # type: ignore[attr-defined]
