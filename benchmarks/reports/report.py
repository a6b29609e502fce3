"""Generates the tables of docs/performance.md from saved results.

The text of the document is written by hand. Each table between the markers
`<!-- table: NAME -->` and `<!-- end -->` is replaced. Tables without results say so. `make figures`
draws the charts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.costs import flops
from benchmarks.costs.cost_model import ACCELERATORS, BASE, LARGE, predict
from benchmarks.harness.document import fill_table
from benchmarks.harness.workload import SHAPES
from benchmarks.reports.phases import ENCODER_BATCHES, ENCODER_LENGTHS, GROWTH_SEQ_LEN

DOCUMENT = "docs/performance.md"
TRAINING = {
    shape: [f"train_{shape}{mode}" for mode in ("", "_xla", "_compile")] for shape in SHAPES
}
_NOT_MEASURED = "Not measured yet: `make bench`."
_STATE_BYTES = 12  # Bytes per parameter: the weight and two moments, in float32.


def write(results: dict[str, Any]) -> None:
    """Writes all tables.

    Args:
      results: content of docs/performance.json.
    """
    phases = {name: phase["measured"] for name, phase in results["phases"].items()}
    for name, table in _TABLES.items():
        rows = table(results) if table is _setting else table(phases)
        fill_table(DOCUMENT, name, rows or _NOT_MEASURED)


def summary(results: dict[str, Any]) -> dict[str, float]:
    """Returns the speedup over the fastest peer for each measured shape.

    Args:
      results: content of docs/performance.json.

    Returns:
      {"ratio_<shape>": time of the fastest peer / our best time}.
    """
    phases = {name: phase["measured"] for name, phase in results["phases"].items()}
    ratios = {}
    for shape in SHAPES:
        relative = _relative(phases, shape)
        peers = [ratio for name, ratio in relative.items() if not name.startswith("ours")]
        if peers:
            ratios[f"ratio_{shape}"] = round(min(peers) / min(_ours(relative)), 3)
    return ratios


def _ours(times: dict[str, float]) -> list[float]:
    return [value for name, value in times.items() if name.startswith("ours")]


def _relative(phases: dict[str, Any], shape: str) -> dict[str, float]:
    """Returns the time of each implementation relative to `ours` in the same run."""
    ratios: dict[str, float] = {}
    for phase in TRAINING[shape]:
        timed = phases.get(phase, {"results": {}})["results"]
        for name, metrics in timed.items():
            ratios.setdefault(name, metrics["seconds"] / timed["ours"]["seconds"])
    return ratios


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _setting(results: dict[str, Any]) -> str:
    if "versions" not in results:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    dates = sorted(phase["date"] for phase in results["phases"].values())
    return f"{results['cores']} CPU cores, {dates[0]} to {dates[-1]}; {versions}."


def _training_table(shape: str) -> Callable[[dict[str, Any]], str]:
    def table(phases: dict[str, Any]) -> str:
        rows, seen = [], set()
        for phase in TRAINING[shape]:
            if phase not in phases:
                continue
            measured = phases[phase]
            ours = measured["results"]["ours"]["seconds"]
            for name, metrics in measured["results"].items():
                if name in seen:
                    continue
                seen.add(name)
                share = measured["necessary_flops"] / metrics["seconds"] / measured["ceiling"]
                rows.append(
                    [
                        name,
                        f"{metrics['seconds']:.3f}",
                        f"{metrics['fastest_seconds']:.3f}",
                        f"{metrics['seconds'] / ours:.2f}",
                        f"{share:.0%}",
                        f"{metrics['peak_bytes'] / 1e9:.2f}",
                        f"{_working_bytes(metrics) / 1e9:.2f}",
                    ]
                )
        header = ["", "median s", "fastest s", "relative to ours", "of ceiling"]
        header += ["peak GB", "working GB"]
        return _table(header, rows) if rows else ""

    return table


def _working_bytes(metrics: dict[str, Any]) -> float:
    state = _STATE_BYTES * metrics["num_parameters"]
    return metrics["peak_bytes"] - metrics["imported_bytes"] - state


def _recompute(phase: str) -> Callable[[dict[str, Any]], str]:
    def table(phases: dict[str, Any]) -> str:
        if phase not in phases:
            return ""
        measured = phases[phase]
        base = measured["recompute: none"]
        return _table(
            ["", "median s", "relative to none", "peak GB", "of none", "working GB", "of none"],
            [
                [
                    f"`{name}`",
                    f"{metrics['seconds']:.3f}",
                    f"{metrics['seconds'] / base['seconds']:.2f}",
                    f"{metrics['peak_bytes'] / 1e9:.2f}",
                    f"{metrics['peak_bytes'] / base['peak_bytes']:.0%}",
                    f"{_working_bytes(metrics) / 1e9:.2f}",
                    f"{_working_bytes(metrics) / _working_bytes(base):.0%}",
                ]
                for name, metrics in measured.items()
            ],
        )

    return table


_BOTH = ["ours", "ours, XLA", "HF", "HF, torch.compile"]
_ENCODERS = ["ours", "ours, XLA", "ours, served", "ours, served, XLA", "HF", "HF, torch.compile"]
_BOTH_RATIOS = ["best peer / best of ours", "of ceiling", "best peer / ceiling"]


def _best_of_both(measured: dict[str, Any], names: list[str]) -> list[str]:
    """Returns the milliseconds of `names`, and ratios of fastest peer, our fastest and ceiling."""
    seconds = {name: metrics["seconds"] for name, metrics in measured["results"].items()}
    milliseconds = [f"{1e3 * seconds[name]:.1f}" if name in seconds else "-" for name in names]
    ours = min(_ours(seconds))
    at_ceiling = measured["necessary_flops"] / measured["ceiling"]
    peers = [value for name, value in seconds.items() if not name.startswith("ours")]
    ratios = [f"{min(peers) / value:.2f}" if peers else "-" for value in (ours, at_ceiling)]
    return [*milliseconds, ratios[0], f"{at_ceiling / ours:.0%}", ratios[1]]


def _finetune(phases: dict[str, Any]) -> str:
    if "finetune" not in phases:
        return ""
    return _table(
        [*(f"{name}, ms" for name in _BOTH), *_BOTH_RATIOS],
        [_best_of_both(phases["finetune"], _BOTH)],
    )


def _encoder(phases: dict[str, Any]) -> str:
    rows = [
        [str(batch), str(length), *_best_of_both(measured[str(batch)], _ENCODERS)]
        for batch in ENCODER_BATCHES
        for length in ENCODER_LENGTHS
        if (measured := phases.get(f"encoder_{length}"))
    ]
    return _table(["batch", "length", *_ENCODERS, *_BOTH_RATIOS], rows) if rows else ""


def _growth_points(phases: dict[str, Any], kind: str) -> dict[int, dict[str, Any]]:
    points = {}
    for part in ("short", "long"):
        measured = phases.get(f"growth_{kind}_{part}", {})
        points.update({int(length): point for length, point in measured.items()})
    return dict(sorted(points.items()))


def _growth(kind: str, label: str) -> Callable[[dict[str, Any]], str]:
    def table(phases: dict[str, Any]) -> str:
        points = _growth_points(phases, kind)
        if not points:
            return ""
        names = list(dict.fromkeys(name for p in points.values() for name in p["results"]))
        first = next(iter(points.values()))
        rows = []
        for length, point in points.items():
            row = [str(length), f"{point['flops_per_token'] / 1e6:.1f}"]
            for name in names:
                metrics = point["results"].get(name)
                row.append(f"{1e6 * metrics['seconds'] / point['tokens']:.0f}" if metrics else "-")
            ours = point["results"]["ours"]["seconds"] / first["results"]["ours"]["seconds"]
            row.append(f"{point['flops_per_token'] / first['flops_per_token']:.2f}")
            rows.append([*row, f"{ours:.2f}"])
        header = [label, "MFLOP per token", *(f"{name}, µs per token" for name in names)]
        return _table([*header, "relative, formula", "relative, ours"], rows)

    return table


def _parts(phases: dict[str, Any]) -> str:
    del phases
    by_shape = {name: flops.by_part(flops.necessary(shape)) for name, shape in SHAPES.items()}
    rows = [
        [part, *(f"{parts.get(part, 0) / 1e9:.1f}" for parts in by_shape.values())]
        for part in by_shape["base3"]
    ]
    rows.append(["necessary", *(f"{sum(parts.values()) / 1e9:.1f}" for parts in by_shape.values())])
    computed = [flops.total(flops.computed(shape)) for shape in SHAPES.values()]
    rows.append(["computed", *(f"{value / 1e9:.1f}" for value in computed)])
    moved = [sum(flops.step_bytes(shape).values()) for shape in SHAPES.values()]
    rows.append(["memory traffic, GB in float32", *(f"{value / 1e9:.1f}" for value in moved)])
    return _table(["GFLOP per step", *by_shape], rows)


def _xla_check(phases: dict[str, Any]) -> str:
    if "xla_check" not in phases:
        return ""
    m = phases["xla_check"]
    return _table(
        ["", "formula", "traced graph", "XLA"],
        [
            [
                "GFLOP of products",
                *(f"{m[f'{source}_flops'] / 1e9:.3f}" for source in ("formula", "graph", "xla")),
            ],
            [
                "million elements of products",
                f"{m['formula_elements'] / 1e6:.1f}",
                "-",
                f"{m['xla_elements'] / 1e6:.1f}",
            ],
            [
                "memory traffic, GB",
                f"{m['formula_bytes'] / 1e9:.2f}",
                "-",
                f"{m['xla_bytes'] / 1e9:.2f}",
            ],
        ],
    )


def _predictions(phases: dict[str, Any]) -> str:
    del phases
    rows = []
    for name, shape in (("base", BASE), ("large", LARGE)):
        per_token = flops.total(flops.necessary(shape)) / shape.tokens
        for chip in ACCELERATORS:
            predicted = predict(shape, chip)
            rows.append(
                [
                    name,
                    chip.name,
                    f"{per_token / 1e9:.2f}",
                    f"{predicted['expected']:,.0f}",
                    f"{predicted['bound']:,.0f}",
                ]
            )
    header = ["model", "chip", "GFLOP per token", "tokens/s, expected", "tokens/s, bound"]
    return _table(header, rows)


_TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "setting": _setting,
    "train_base3": _training_table("base3"),
    "train_small": _training_table("small"),
    "train_tiny": _training_table("tiny"),
    "recompute_base3": _recompute("recompute_base3"),
    "recompute_base": _recompute("recompute_base"),
    "recompute_base_8": _recompute("recompute_base_8"),
    "finetune": _finetune,
    "encoder": _encoder,
    "growth_tokens": _growth("tokens", "T"),
    "growth_memory": _growth("memory", "M"),
    "parts": _parts,
    "xla_check": _xla_check,
    "predictions": _predictions,
}


def relative_times(phases: dict[str, Any]) -> dict[str, dict[str, float]]:
    """{shape: {implementation: time of a training step relative to `ours` in the same run}}."""
    return {shape: times for shape in SHAPES if (times := _relative(phases, shape))}


def growth_lines(phases: dict[str, Any]) -> dict[str, dict[str, dict[int, float]]]:
    """Microseconds per token by T and M, and by the formula scaled to our first point.

    Returns:
      {label of the axis: {implementation: {length: microseconds}}}.
    """
    labels = {"tokens": "row length T", "memory": f"memory length M (T = {GROWTH_SEQ_LEN})"}
    lines: dict[str, dict[str, dict[int, float]]] = {}
    for kind, label in labels.items():
        points = _growth_points(phases, kind)
        if not points:
            continue
        shown: dict[str, dict[int, float]] = {}
        for length, point in points.items():
            for name, metrics in point["results"].items():
                shown.setdefault(name, {})[length] = 1e6 * metrics["seconds"] / point["tokens"]
        first = next(iter(points))
        scale = shown["ours"][first] / points[first]["flops_per_token"]
        shown["ours, by formula"] = {n: scale * p["flops_per_token"] for n, p in points.items()}
        lines[label] = shown
    return lines
