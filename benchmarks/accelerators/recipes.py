"""What each recipe needs at the start of a run, in a step, at a save and at a resume.

    python -m benchmarks.accelerators.recipes                    # Writes the table.
    python -m benchmarks.accelerators.recipes --measure=tiny     # Measures steps on this CPU, too.

Sizes follow from the recipe: weights and two moments in float32, the recurrent memory of the rows,
the checkpoints that are kept. The memory of a step is that of the compiler, where the recipe's
comment names a TPU or GPU (`docs/accelerators.json`), or the peak of a measured run of three steps,
where it names CPU cores (`docs/recipes.json`). A test compares all with the device.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import sys
import tempfile
from typing import Any

from benchmarks.accelerators import report
from benchmarks.accelerators.chips import CHIPS
from benchmarks.accelerators.rows import Key, key_of
from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.tables import add_row, fill_table, markdown_table, read_rows
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.training import LARGEST_SAVED_MEMORY
from official.xlnet.runtime.cores import OTHER_FILES

MEASURED = "docs/recipes.json"
FOLDER = pathlib.Path("configs")
_CPU, _CPU_MEMORY = "two CPU cores", 8e9
_DEVICES = re.compile(r"TPU (v\d\w)|\b(V100|v5e)\b|\b(?:two|one) CPU cores?\b|CPU-minutes")
_TAKES = re.compile(r"\btakes? ([\d.]+) GB")
_CHIPS_OF_HOST = 4
_OPEN_FILES = 1024  # The usual limit of a process.
_GIB = 1 << 30  # The memory of devices is in GiB, and sold as GB.
_FLOAT32, _MOMENTS = 4, 2
# Steps on file of recipes whose comments name a chip.
COMPILED: dict[str, list[Key]] = {
    "base": [
        Key("base", "v5e", 16),
        Key("base", "v5e", 32),
        Key("base", "v5e", 64, ("model.recompute=block",)),
    ],
    "large": [
        Key("large", "v5p", 16),
        Key("large", "v5e", 8),
        Key("large", "v5e", 64, ("model.recompute=block",)),
    ],
    "squad1": [Key("large-squad-512", "v100", 48, ("training.accumulate_steps=6",))],
    "squad2": [Key("large-squad-512", "v100", 48, ("training.accumulate_steps=6",))],
    "race": [Key("large-classify-512", "v100", 128, ("training.accumulate_steps=16",))],
}


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a run of a recipe needs; sizes are in bytes.

    Attributes:
      device: the device that the comment of the recipe names; empty if it names none.
      num_devices: devices that share a batch.
      start: memory of a device before the first step: weights, moments and the rows' memory.
      step: memory of a device in a step; None if neither compiled nor measured.
      capacity: memory of the device; 0 without one.
      save: a checkpoint; a resumed run reads one.
      disk: checkpoints of the output directory while one is written.
      left_out: recurrent memory that checkpoints do not hold.
      open_files: files of a host, with four devices at most.
    """

    device: str
    num_devices: int
    start: float
    step: float | None
    capacity: float
    save: float
    disk: float
    left_out: float
    open_files: int


def _comment(recipe: str) -> str:
    """The comment at the head of a recipe, as one line."""
    lines = (FOLDER / f"{recipe}.yaml").read_text(encoding="utf-8").splitlines()
    return " ".join(" ".join(line[1:] for line in lines if line.startswith("#")).split())


def devices_named(recipe: str) -> set[str]:
    """The devices in the comment of a recipe: names of `CHIPS`, or CPU cores."""
    named = _DEVICES.finditer(_comment(recipe))
    return {(match[1] or match[2] or _CPU).lower().replace("cpu", "CPU") for match in named}


def all_recipes() -> list[str]:
    """Names of the recipes in `configs`."""
    paths = FOLDER.glob("**/*.yaml")
    return sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in paths)


def needs(recipe: str) -> list[Needs]:
    """What a recipe needs on each device that its comment names; on no device if it names none."""
    rows = read_rows(report.RESULTS)
    found = []
    for key in COMPILED.get(recipe, ()):
        config = _load(recipe, key.settings)
        (row,) = (row for row in rows if key_of(row) == key)
        if not row["fits"]:
            raise ValueError(f"{recipe}: {key} does not fit")
        used = row["arguments"] + row["temporaries"]
        memory = CHIPS[key.chip].memory
        found.append(_needs(recipe, config, key.chip, key.batch_size, used, memory))
    if _CPU in devices_named(recipe):
        measured = {row["recipe"]: row["peak"] for row in read_rows(MEASURED)}
        config, peak = _load(recipe), measured.get(recipe)
        found.append(_needs(recipe, config, _CPU, config.training.batch_size, peak, _CPU_MEMORY))
    if not found:
        config = _load(recipe)
        found.append(_needs(recipe, config, "", config.training.batch_size, None, 0))
    return found


def _load(recipe: str, settings: tuple[str, ...] = ()) -> XLNetConfig:
    """The configuration of a recipe; one of fine-tuning has the model of `configs/large.yaml`."""
    config = XLNetConfig.load(str(FOLDER / f"{recipe}.yaml"))
    if not _pretrains(recipe):
        config.model = XLNetConfig.load(str(FOLDER / "large.yaml")).model
        config.model.mem_len = 0
    if not config.model.vocab_size:
        (config.model.vocab_size,) = map(int, re.findall(r"--size=(\d+)", _comment(recipe)))
    for setting in settings:
        config.set(setting)
    return config


def _pretrains(recipe: str) -> bool:
    return "xlnet pretrain" in _comment(recipe)


def _needs(
    recipe: str,
    config: XLNetConfig,
    device: str,
    num_rows: int,
    step: float | None,
    capacity: float,
) -> Needs:
    """What a recipe needs on one kind of device, with a number of rows on each."""
    model, training = config.model, config.training
    weights = _FLOAT32 * model.num_parameters
    state = weights * (1 + _MOMENTS)
    row = model.num_layers * model.mem_len * model.d_model
    size = _FLOAT32 if training.precision == "float32" else 2
    memory = _FLOAT32 * row * training.batch_size
    is_saved = training.saves_memory(memory)
    save = state + memory * is_saved
    if _pretrains(recipe):
        # Those kept, the best if there are evaluations, and the new one until it is complete.
        disk = save * (training.keep_checkpoints + bool(training.evaluation_steps) + 1)
        num_devices = max(1, training.batch_size // num_rows)
        files = min(num_devices, _CHIPS_OF_HOST) * num_rows
    else:
        # The state of the run and the best model, each until the new one is complete.
        disk, num_devices, files = 2 * save + 2 * weights, 1, 0
    return Needs(
        device=device,
        num_devices=num_devices,
        start=state + size * row * num_rows,
        step=step,
        capacity=capacity,
        save=save,
        disk=disk,
        left_out=memory * (not is_saved),
        open_files=files + OTHER_FILES,
    )


def broken_promises(recipe: str) -> list[str]:
    """Sentences about what a recipe needs, and the device that its comment names does not have."""
    found, sizes = [], needs(recipe)
    named, known = devices_named(recipe), {one.device for one in sizes} - {""}
    if named != known:
        found.append(f"the comment names {named}, sizes are known of {known}")
    for one in sizes:
        on = f" on {one.device}" if one.device else ""
        if one.device and one.step is None:
            found.append(f"the memory of a step{on} is not on file")
        elif one.step and max(one.start, one.step) > _GIB / 1e9 * one.capacity:
            found.append(f"a step{on} takes {one.step} bytes of {one.capacity}")
        if one.open_files > _OPEN_FILES:
            found.append(f"{one.open_files} open files{on}, the usual limit is {_OPEN_FILES}")
        if one.save > one.start + LARGEST_SAVED_MEMORY:
            found.append(f"a checkpoint has {one.save} bytes")
    steps = {one.step for one in sizes if one.step}
    for size in _TAKES.findall(_comment(recipe)):
        digits = len(size.partition(".")[2])
        if size not in {f"{step / 1e9:.{digits}f}" for step in steps}:
            found.append(f"the comment says {size} GB, on file are {steps}")
    return [f"{recipe}: {sentence}" for sentence in found]


_HEAD = [
    "recipe",
    "device",
    "devices",
    "start, GB",
    "step, GB",
    "of, GB",
    "save, GB",
    "not saved, GB",
    "disk, GB",
    "open files",
]


def table() -> str:
    """The table of recipes that name a device, below the days when their steps were compiled.

    Recipes with the same sizes share a row; small ones of the ablation are left out.
    """
    names: dict[tuple[str, ...], list[str]] = {}
    for recipe in all_recipes():
        if recipe.startswith("ablation/"):
            continue
        for one in needs(recipe):
            if one.device:
                names.setdefault(_cells(one), []).append(recipe)
    rows = [[", ".join(dict.fromkeys(recipes)), *cells] for cells, recipes in names.items()]
    keys = {key for keys in COMPILED.values() for key in keys}
    compiled = [row for row in read_rows(report.RESULTS) if key_of(row) in keys]
    return f"Steps compiled {report.days(compiled)}:\n\n{markdown_table([_HEAD, *rows])}"


def _cells(one: Needs) -> tuple[str, ...]:
    return (
        one.device,
        str(one.num_devices),
        _gigabytes(one.start),
        "" if one.step is None else f"{one.step / 1e9:.1f}",
        f"{one.capacity / 1e9:.0f}" if one.capacity else "",
        _gigabytes(one.save),
        _gigabytes(one.left_out) if one.left_out else "",
        _gigabytes(one.disk),
        f"{one.open_files:,}",
    )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.2f}" if size < 1e10 else f"{size / 1e9:.0f}"


def measure(recipe: str) -> dict[str, Any]:
    """Runs three steps of a recipe on random records; returns the peak of its memory."""
    from benchmarks.data.prepare_memory import peak_megabytes
    from benchmarks.data.random_records import write_data_set

    config = _load(recipe)
    data, lanes = config.data, config.training.batch_size
    with tempfile.TemporaryDirectory() as folder:
        write_data_set(
            f"{folder}/data",
            data.seq_len,
            data.reuse_len,
            lanes,
            windows_per_lane=4,
            bidirectional=data.bidirectional,
        )
        arguments = [f"--config={FOLDER}/{recipe}.yaml", f"--data={folder}/data", "--steps=3"]
        arguments += [f"--output={folder}/model", f"--set=vocab_size={config.model.vocab_size}"]
        command = [sys.executable, "-m", "official.xlnet.cli", "pretrain", *arguments]
        peak = peak_megabytes(command)
    return {"recipe": recipe, "peak": round(peak) * 1e6}


def main() -> None:
    flags = parse(__doc__, measure=flag([], "recipes to run on this CPU"))
    for recipe in flags.measure:
        row = measure(recipe)
        print(json.dumps(row), file=sys.stderr)
        add_row(MEASURED, row, ("recipe",))
    fill_table(report.DOCUMENT, "recipes", table())
    print(json.dumps({"document": report.DOCUMENT}))


if __name__ == "__main__":
    main()
