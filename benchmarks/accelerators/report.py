"""The rows on file, and the tables of docs/performance.md."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.accelerators.chips import CHIPS
from benchmarks.accelerators.rows import TABLES, key_of
from benchmarks.harness.tables import add_row, fill_table, markdown_table, read_rows

RESULTS, DOCUMENT = "docs/accelerators.json", "docs/performance.md"
_KEY = ("step", "chip", "layers", "set", "batch_size")
_NOT_MEASURED = "Not measured yet: `python -m benchmarks.accelerators`."


def add(path: str, row: dict[str, Any]) -> None:
    """Writes a row to the file, in the place of an older one of the same step, chip and so on."""
    add_row(path, row, _KEY)


def write(results: str, document: str) -> None:
    """Writes the tables of the document."""
    rows = read_rows(results)
    fill_table(document, "release", _table(_RELEASE, _of_release(rows), _beside_release(rows)))
    on_file = {key_of(row): row for row in rows}
    for name, (head, cells) in _CELLS.items():
        present = [on_file[key] for key in TABLES[name] if key in on_file]
        present = [row for row in present if row["fits"] or name == "tpu"]
        fill_table(document, name, _table(head, present, [cells(row) for row in present]))


def days(rows: list[dict[str, Any]]) -> str:
    """Returns when rows were compiled, e.g. `on 2026-11-30`."""
    first, last = min(row["compiled"] for row in rows), max(row["compiled"] for row in rows)
    return f"on {first}" if first == last else f"from {first} to {last}"


class Times(NamedTuple):
    """Seconds of a step, by what the compiler says; none is measured.

    Attributes:
      arithmetic: of its operations at the peak of the device.
      moving: of the bytes that its operations access, at the bandwidth of the device's memory.
      estimate: by the compiler of a TPU; None if unknown.
    """

    arithmetic: float
    moving: float
    estimate: float | None

    @property
    def longest(self) -> float:
        """The largest of the three."""
        return max(self.arithmetic, self.moving, self.estimate or 0.0)


def computed_times(row: dict[str, Any]) -> Times:
    """Returns the times of a row that fits."""
    chip = CHIPS[row["chip"]]
    estimate = None if row["cycles"] is None else row["cycles"] / chip.clock
    return Times(row["flops"] / chip.flops, row["bytes"] / chip.bandwidth, estimate)


_NAME = ["step", "chip", "rows"]
_SIZES = ["arguments, GB", "temporaries, GB"]
_TPU = [*_NAME, *_SIZES, "arithmetic, ms", "moving, ms", "estimate, ms", "tokens/s"]
_GPU = [*_NAME, "type", *_SIZES, "arithmetic, ms", "moving, ms", "tokens/s"]
_SLICES = [
    "step",
    "chips",
    "rows of a chip",
    "summing, ms",
    "arithmetic, ms",
    "moving, ms",
    "estimate, ms",
    "tokens/s",
    "days",
    "windows/s of a host",
]

_RECOMPUTE = "model.recompute=block"
_FLOAT32 = "training.precision=float32"
# Largest batches of the release's fine-tuning on one GPU, in its README.
OF_RELEASE = {
    "base-classify-64": 120,
    "base-classify-128": 56,
    "base-classify-256": 24,
    "base-classify-512": 8,
    "large-classify-64": 16,
    "large-classify-128": 8,
    "large-classify-256": 2,
    "large-classify-512": 1,
}
CARD = "v100"
# Our columns: settings by head.
OF_CARD: dict[str, tuple[str, ...]] = {
    "float32": (_FLOAT32,),
    "float32, recomputed": (_FLOAT32, _RECOMPUTE),
    "float16": (),
    "float16, recomputed": (_RECOMPUTE,),
}
_RELEASE = ["fine-tuning", "the release", *OF_CARD]


def _table(head: list[str], rows: list[dict[str, Any]], cells: list[list[str]]) -> str:
    """Returns a table of rows, below the days of their compilation."""
    if not rows:
        return _NOT_MEASURED
    return f"Compiled {days(rows)}:\n\n{markdown_table([head, *cells])}"


def _name(row: dict[str, Any]) -> str:
    settings = [setting.partition(".")[2] for setting in row["set"]]
    return ", ".join([row["step"], *settings])


def _sizes(row: dict[str, Any]) -> list[str]:
    return [f"{row['arguments'] / 1e9:.2f}", f"{row['temporaries'] / 1e9:.2f}"]


def _milliseconds(seconds: float | None) -> str:
    return "?" if seconds is None else f"{1e3 * seconds:.0f}"


def _step(row: dict[str, Any]) -> list[str]:
    chip = CHIPS[row["chip"]]
    device = row["chip"] if chip.devices == 1 else f"{row['chip']}, one of {chip.devices} cores"
    name = [_name(row), device, str(row["batch_size"])]
    if not row["fits"]:
        return [*name, "does not fit", *[""] * (len(_TPU) - len(name) - 1)]
    seconds = computed_times(row)
    tokens = f"{row['tokens'] / seconds.longest:,.0f}"
    return [*name, *_sizes(row), *map(_milliseconds, seconds), tokens]


_STEPS_OF_PAPER, _CHIPS_OF_HOST = 500_000, 4


def _slice(row: dict[str, Any]) -> list[str]:
    chip, seconds = CHIPS[row["chip"]], computed_times(row)
    # The gradients are in float32, and all are summed; the module has them too, where it is read.
    summed = 4 * row["parameters"] if row["all_reduced"] is None else row["all_reduced"]
    return [
        _name(row),
        row["chip"],
        str(row["batch_size"]),
        f"{2e3 * summed / chip.links:.1f}",
        *map(_milliseconds, seconds),
        f"{row['tokens'] * chip.replicas / seconds.longest:,.0f}",
        f"{_STEPS_OF_PAPER * seconds.longest / 86400:.1f}",
        f"{row['batch_size'] * _CHIPS_OF_HOST / seconds.longest:.0f}",
    ]


def _kernels(row: dict[str, Any]) -> list[str]:
    chip = CHIPS[row["chip"]]
    peak = chip.float32_flops if row["precision"] == "float32" else chip.flops
    moving, arithmetic = row["moved"] / chip.bandwidth, row["counted_flops"] / peak
    shown = f"{1e3 * moving:.1f}"
    if row["loops"]:  # The module does not say how often their kernels run.
        moving, shown = 0.0, "?"
    return [
        _name(row),
        row["chip"],
        str(row["batch_size"]),
        row["precision"].removeprefix("mixed_"),
        *_sizes(row),
        f"{1e3 * arithmetic:.1f}",
        shown,
        f"{row['tokens'] / max(moving, arithmetic):,.0f}",
    ]


_CELLS = {"tpu": (_TPU, _step), "gpu": (_GPU, _kernels), "slices": (_SLICES, _slice)}


def _of_release(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows on file of the release's fine-tuning that fit the card."""
    settings = OF_CARD.values()
    return [
        row
        for row in rows
        if row["chip"] == CARD
        and row["step"] in OF_RELEASE
        and tuple(row["set"]) in settings
        and row["fits"]
    ]


def _beside_release(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The largest batches of the release and ours; `?` where none was compiled."""
    ours: dict[tuple, int] = {}
    for row in _of_release(rows):
        key = row["step"], tuple(row["set"])
        ours[key] = max(ours.get(key, 0), row["batch_size"])
    found = []
    for step, theirs in OF_RELEASE.items():
        model, _, tokens = step.split("-")
        sizes = [str(ours.get((step, settings), "?")) for settings in OF_CARD.values()]
        if set(sizes) != {"?"}:
            found.append([f"{model}, {tokens} tokens", str(theirs), *sizes])
    return found
