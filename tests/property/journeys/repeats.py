"""The verb that a journey interrupts: what is left has to be what one unbroken run leaves."""

import hashlib
import pathlib
import shutil
from collections.abc import Callable

from tests.property.journeys.promises import promise
from tests.property.journeys.verbs import Killed, Preempted, World, interrupted

_DIFFERENT = {"fingerprint.pb", "sha256sums"}  # A random number, and its checksum.


def repeated(
    world: World,
    verb: str,
    arguments: Callable[[pathlib.Path], list[str]],
    output: pathlib.Path,
    essence: Callable[[pathlib.Path], object],
) -> dict:
    """Runs a verb; if the journey interrupts it, runs it again, and compares.

    Args:
      world: the journey.
      verb: the verb.
      arguments: its arguments for an output path.
      output: the output path.
      essence: what has to be equal, of an output path.

    Returns:
      The result of the unbroken run.
    """
    result = world(verb, *arguments(output))
    plan = world.journey["interrupted"]
    if plan["verb"] != verb:
        return result
    again = output.with_name(f"again_{output.name}")
    kind = plan["kind"]
    if kind != "twice" and (kind == "rename" or verb in ("pretrain", "finetune")):
        try:
            with interrupted(kind, plan["at"]):
                world(verb, *arguments(again))
        except (Killed, Preempted):
            world.counts[f"interrupted {verb} by {kind}"] += 1
    second = world(verb, *arguments(again))
    name = "resumed equals unbroken" if kind != "twice" else "twice is equal"
    promise(
        essence(again) == essence(output), f"{verb}: {name}", _difference(essence, again, output)
    )
    for key in result.keys() & second.keys():
        if not key.endswith("_per_second") and not key.startswith("resumed"):
            promise(result[key] == second[key], f"{verb}: {name}", (key, result, second))
    shutil.rmtree(again) if again.is_dir() else again.unlink()
    return result


def _difference(essence, a, b) -> str:
    x, y = essence(a), essence(b)
    if isinstance(x, dict):
        return str([key for key in x.keys() | y.keys() if x.get(key) != y.get(key)])
    return str((x[0], y[0]))


def files_of(folder: pathlib.Path) -> dict[str, str]:
    """Checksums of the files of a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _DIFFERENT and not path.name.startswith(".lock")
    }
