"""Generates the tables of docs/performance.md from saved results.

The text of the document is written by hand. Each table between the markers
`<!-- table: NAME -->` and `<!-- end -->` is replaced. Tables without results say so. `make figures`
draws the charts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness.tables import fill_table, markdown_table
from benchmarks.harness.workload import SHAPES
from benchmarks.reports.phases import ENCODER_BATCHES, ENCODER_LENGTHS, GROWTH_SEQ_LEN

DOCUMENT = "docs/performance.md"
TRAINING = {
    shape: [f"train_{shape}{mode}" for mode in ("", "_xla", "_compile")] for shape in SHAPES
}
_GROWTH = {
    kind: [f"growth_{kind}_{part}" for part in ("short", "long")] for kind in ("tokens", "memory")
}
_STATE_BYTES = 12  # Bytes per parameter: the weight and two moments, in float32.
_BOTH = ("ours", "ours, XLA", "HF", "HF, torch.compile")
_ENCODERS = (*_BOTH[:2], "ours, served", "ours, served, XLA", *_BOTH[2:])
_RATIOS = ("best peer / best of ours", "of ceiling", "best peer / ceiling")

Phases = dict[str, Any]  # {name: what was measured}.
Rows = list[Sequence[object]]


def write(results: dict[str, Any]) -> None:
    """Writes all tables.

    Args:
      results: content of docs/performance.json.
    """
    on_file = measured(results)
    fill_table(DOCUMENT, "setting", _setting(results))
    for name, (rows_of, phases) in _TABLES.items():
        found = {phase: on_file[phase] for phase in phases if phase in on_file}
        table = markdown_table(rows_of(found)) if found else "Not measured yet: `make bench`."
        fill_table(DOCUMENT, name, table)


def summary(results: dict[str, Any]) -> dict[str, float]:
    """Returns the speedup over the fastest peer for each measured shape.

    Args:
      results: content of docs/performance.json.

    Returns:
      {"ratio_<shape>": time of the fastest peer / our best time}.
    """
    ratios = {}
    for shape, relative in relative_times(measured(results)).items():
        peers = [ratio for name, ratio in relative.items() if not name.startswith("ours")]
        if peers:
            ratios[f"ratio_{shape}"] = round(min(peers) / min(_ours(relative)), 3)
    return ratios


def relative_times(phases: Phases) -> dict[str, dict[str, float]]:
    """{shape: {implementation: time of a training step relative to `ours` in the same run}}."""
    ratios: dict[str, dict[str, float]] = {}
    for shape, names in TRAINING.items():
        for timed in (phases[name]["results"] for name in names if name in phases):
            for name, metrics in timed.items():
                ratio = metrics["seconds"] / timed["ours"]["seconds"]
                ratios.setdefault(shape, {}).setdefault(name, ratio)
    return ratios


def growth_lines(phases: Phases) -> dict[str, dict[str, dict[int, float]]]:
    """Microseconds per token by T and M, and by the formula scaled to our first point.

    Returns:
      {label of the axis: {implementation: {length: microseconds}}}.
    """
    labels = {"tokens": "row length T", "memory": f"memory length M (T = {GROWTH_SEQ_LEN})"}
    lines: dict[str, dict[str, dict[int, float]]] = {}
    for kind, label in labels.items():
        points = _points({name: phases.get(name, {}) for name in _GROWTH[kind]})
        shown: dict[str, dict[int, float]] = {}
        for length, point in points.items():
            for name, metrics in point["results"].items():
                shown.setdefault(name, {})[length] = 1e6 * metrics["seconds"] / point["tokens"]
        if points:
            first = next(iter(points))
            scale = shown["ours"][first] / points[first]["flops_per_token"]
            formula = {length: scale * p["flops_per_token"] for length, p in points.items()}
            lines[label] = shown | {"ours, by formula": formula}
    return lines


def measured(results: dict[str, Any]) -> Phases:
    """Returns what was measured in each phase on file."""
    return {name: phase["measured"] for name, phase in results["phases"].items()}


def _ours(times: dict[str, float]) -> list[float]:
    return [value for name, value in times.items() if name.startswith("ours")]


def _setting(results: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    dates = sorted(phase["date"] for phase in results["phases"].values())
    return f"{results['cores']} CPU cores, {dates[0]} to {dates[-1]}; {versions}."


def _training(phases: Phases) -> Rows:
    """Rows of each run, and in each our own, which its ratios are of."""
    rows: list[Sequence[object]] = [
        (
            "run",
            "implementation",
            "seconds",
            "relative to ours",
            "of ceiling",
            "peak GB",
            "working GB",
        )
    ]
    for number, measured in enumerate(phases.values(), start=1):
        ours = measured["results"]["ours"]["seconds"]
        for name, metrics in measured["results"].items():
            share = measured["necessary_flops"] / metrics["seconds"] / measured["ceiling"]
            cells = (
                f"{metrics['seconds']:.3f}",
                f"{metrics['seconds'] / ours:.2f}",
                f"{share:.0%}",
                f"{metrics['peak_bytes'] / 1e9:.2f}",
                f"{_working_bytes(metrics) / 1e9:.2f}",
            )
            rows.append((number, name, *cells))
    return rows


def _working_bytes(metrics: dict[str, Any]) -> float:
    state = _STATE_BYTES * metrics["num_parameters"]
    return metrics["peak_bytes"] - metrics["imported_bytes"] - state


def _recompute(phases: Phases) -> Rows:
    (measured,) = phases.values()
    base = measured["recompute: none"]
    return [
        ("", "median s", "relative to none", "peak GB", "of none", "working GB", "of none"),
        *(
            (
                f"`{name}`",
                f"{metrics['seconds']:.3f}",
                f"{metrics['seconds'] / base['seconds']:.2f}",
                f"{metrics['peak_bytes'] / 1e9:.2f}",
                f"{metrics['peak_bytes'] / base['peak_bytes']:.0%}",
                f"{_working_bytes(metrics) / 1e9:.2f}",
                f"{_working_bytes(metrics) / _working_bytes(base):.0%}",
            )
            for name, metrics in measured.items()
        ),
    ]


def _best_of_both(measured: dict[str, Any], names: Sequence[str]) -> list[str]:
    """Returns the milliseconds of `names`, and ratios of fastest peer, our fastest and ceiling."""
    seconds = {name: metrics["seconds"] for name, metrics in measured["results"].items()}
    milliseconds = [f"{1e3 * seconds[name]:.1f}" if name in seconds else "-" for name in names]
    ours = min(_ours(seconds))
    at_ceiling = measured["necessary_flops"] / measured["ceiling"]
    peers = [value for name, value in seconds.items() if not name.startswith("ours")]
    ratios = [f"{min(peers) / value:.2f}" if peers else "-" for value in (ours, at_ceiling)]
    return [*milliseconds, ratios[0], f"{at_ceiling / ours:.0%}", ratios[1]]


def _finetune(phases: Phases) -> Rows:
    head = (*(f"{name}, ms" for name in _BOTH), *_RATIOS)
    return [head, *(_best_of_both(measured, _BOTH) for measured in phases.values())]


def _encoder(phases: Phases) -> Rows:
    rows = [
        (batch, phase.removeprefix("encoder_"), *_best_of_both(measured[str(batch)], _ENCODERS))
        for batch in ENCODER_BATCHES
        for phase, measured in phases.items()
    ]
    return [("batch", "length", *_ENCODERS, *_RATIOS), *rows]


def _points(phases: Phases) -> dict[int, dict[str, Any]]:
    """{length: what was measured} of all phases together."""
    points = {int(n): point for part in phases.values() for n, point in part.items()}
    return dict(sorted(points.items()))


# {table: its rows, and the phases that they are of}.
_TABLES: dict[str, tuple[Callable[[Phases], Rows], Sequence[str]]] = {
    **{f"train_{shape}": (_training, TRAINING[shape]) for shape in ("base3", "small")},
    "recompute_base_8": (_recompute, ["recompute_base_8"]),
    "finetune": (_finetune, ["finetune"]),
    "encoder": (_encoder, [f"encoder_{length}" for length in ENCODER_LENGTHS]),
}
