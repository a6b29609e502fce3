"""The rows on file, and the tables of docs/performance.md."""

from __future__ import annotations

from typing import Any

from benchmarks.accelerators.chips import CHIPS
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
    slices = [row for row in rows if CHIPS[row["chip"]].replicas > 1 and row["fits"]]
    rows = [row for row in rows if CHIPS[row["chip"]].replicas == 1]
    tpu = [row for row in rows if CHIPS[row["chip"]].kind == "TPU"]
    gpu = [row for row in rows if CHIPS[row["chip"]].kind == "GPU" and row["fits"]]
    gpu = [row for row in gpu if row["chip"] != CARD or row["step"] not in OF_RELEASE]
    fill_table(document, "tpu", _table(_TPU, tpu, _step))
    fill_table(document, "gpu", _table(_GPU, gpu, _kernels))
    fill_table(document, "slices", _table(_SLICES, slices, _slice))
    fill_table(document, "release", _table(_RELEASE, _beside_release(rows), list))


_NAME = ["step", "chip", "rows"]
_SIZES = ["arguments, GB", "temporaries, GB"]
_TPU = [*_NAME, *_SIZES, "TFLOP", "GB moved", "roofline, ms", "estimate, ms", "tokens/s"]
_GPU = [
    *_NAME,
    "type",
    *_SIZES,
    "moving, ms",
    "arithmetic, ms",
    "tokens/s",
]
_SLICES = [
    "step",
    "chips",
    "rows of a chip",
    "summing, ms",
    "roofline, ms",
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


def _table(head: list[str], rows: list, cells) -> str:
    return markdown_table([head, *map(cells, rows)]) if rows else _NOT_MEASURED


def _name(row: dict[str, Any]) -> str:
    settings = [setting.partition(".")[2] for setting in row["set"]]
    return ", ".join([row["step"], *settings])


def _sizes(row: dict[str, Any]) -> list[str]:
    return [f"{row['arguments'] / 1e9:.2f}", f"{row['temporaries'] / 1e9:.2f}"]


def _step(row: dict[str, Any]) -> list[str]:
    name = [_name(row), row["chip"], row["batch_size"]]
    if not row["fits"]:
        return [*name, "does not fit", *[""] * (len(_TPU) - len(name) - 1)]
    chip = CHIPS[row["chip"]]
    roofline = max(row["flops"] / chip.flops, row["bytes"] / chip.bandwidth)
    return [
        *name,
        *_sizes(row),
        f"{row['flops'] / 1e12:.2f}",
        f"{row['bytes'] / 1e9:.0f}",
        f"{1e3 * roofline:.0f}",
        "?" if row["cycles"] is None else f"{1e3 * row['cycles'] / chip.clock:.0f}",
        f"{row['tokens'] * chip.devices / roofline:,.0f}",
    ]


_STEPS_OF_PAPER, _CHIPS_OF_HOST = 500_000, 4


def _slice(row: dict[str, Any]) -> list[str]:
    chip = CHIPS[row["chip"]]
    roofline = max(row["flops"] / chip.flops, row["bytes"] / chip.bandwidth)
    estimate = None if row["cycles"] is None else row["cycles"] / chip.clock
    seconds = max(roofline, estimate or 0)
    # The gradients are in float32, and all are summed; the module has them too, where it is read.
    summed = 4 * row["parameters"] if row["all_reduced"] is None else row["all_reduced"]
    return [
        _name(row),
        row["chip"],
        row["batch_size"],
        f"{2e3 * summed / chip.links:.1f}",
        f"{1e3 * roofline:.0f}",
        "?" if estimate is None else f"{1e3 * estimate:.0f}",
        f"{row['tokens'] * chip.replicas / seconds:,.0f}",
        f"{_STEPS_OF_PAPER * seconds / 86400:.1f}",
        f"{row['batch_size'] * _CHIPS_OF_HOST / seconds:.0f}",
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
        row["batch_size"],
        row["precision"].removeprefix("mixed_"),
        *_sizes(row),
        shown,
        f"{1e3 * arithmetic:.1f}",
        f"{row['tokens'] / max(moving, arithmetic):,.0f}",
    ]


def _beside_release(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The largest batches of the release and ours; `?` where none was compiled."""
    ours: dict[tuple, int] = {}
    for row in rows:
        if row["chip"] == CARD and row["fits"]:
            key = row["step"], tuple(row["set"])
            ours[key] = max(ours.get(key, 0), row["batch_size"])
    found = []
    for step, theirs in OF_RELEASE.items():
        model, _, tokens = step.split("-")
        sizes = [str(ours.get((step, settings), "?")) for settings in OF_CARD.values()]
        if set(sizes) != {"?"}:
            found.append([f"{model}, {tokens} tokens", str(theirs), *sizes])
    return found
