"""Draws every picture of the documentation from what is on file: `make figures`.

    python -m benchmarks.reports.figures           # Those that are older than what they show.
    python -m benchmarks.reports.figures --all

A picture shows a table of a page or part of a JSON file in docs, and holds the checksum of what it
shows. A test says which are older.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import pathlib
import re
from collections.abc import Callable, Iterable
from typing import Any

from PIL import Image, PngImagePlugin

from benchmarks.accelerators.rows import TABLES, key_of
from benchmarks.harness.command_line import flag, parse
from benchmarks.learning import any_order
from benchmarks.learning.time_to_quality import report as time_to_quality
from benchmarks.reports import concept_figures, report, result_figures

DOCS = pathlib.Path("docs")
_CHECKSUM = "Shown"  # Keyword of the checksum in a PNG.


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture.

    Attributes:
      read: what it shows, a JSON tree, from the folder of the documentation.
      draw: the PNG of what it shows.
    """

    read: Callable[[pathlib.Path], Any]
    draw: Callable[[Any], bytes]


def table(page: str, *markers: str) -> Callable[[pathlib.Path], list[list[str]]]:
    """Reads the first table behind each comment of a page: cells by row, the first head first."""

    def read(docs: pathlib.Path) -> list[list[str]]:
        text = (docs / page).read_text(encoding="utf-8")
        behind = (text.partition(f"<!-- {marker} -->")[2] for marker in markers)
        tables = [re.findall(r"(?:^\|.*\n)+", x, re.MULTILINE)[0].splitlines() for x in behind]
        lines = [tables[0][0], *(line for found in tables for line in found[2:])]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    return read


def tree(file: str, keep: Callable[[Any], Any] = lambda x: x) -> Callable[[pathlib.Path], Any]:
    """Reads a JSON file, and keeps a part of it."""

    def read(docs: pathlib.Path) -> Any:
        return keep(json.loads((docs / file).read_text(encoding="utf-8")))

    return read


def _measured(keep: Callable[[dict[str, Any]], Any]) -> Callable[[pathlib.Path], Any]:
    return tree("performance.json", lambda results: keep(report.measured(results)))


def _pretraining(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Steps of pre-training in the tables of TPUs and GPUs."""
    keys = [key for table in ("tpu", "gpu") for key in TABLES[table]]
    return [
        row
        for row in rows
        if key_of(row) in keys and row["step"] in ("base", "large") and row["fits"]
    ]


def _windows(concepts: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in concepts.items() if key != "attention"}


_WINDOWS = tree("concepts.json", _windows)
PICTURES = {
    "ablation": Picture(table("ablation.md", "table: rows"), result_figures.ablation),
    "accelerators": Picture(tree("accelerators.json", _pretraining), result_figures.accelerators),
    "attention": Picture(
        tree("concepts.json", concept_figures.with_patterns), concept_figures.attention
    ),
    "attention_length": Picture(
        table("experiments.md", "table: attention_length"), result_figures.attention_length
    ),
    "coverage": Picture(_WINDOWS, concept_figures.coverage),
    "generation_cost": Picture(tree("generation_cost.json"), result_figures.generation_cost),
    "growth": Picture(_measured(report.growth_lines), result_figures.growth),
    "largest_batch": Picture(
        table("performance.md", "table: release"), result_figures.largest_batch
    ),
    "masks": Picture(_WINDOWS, concept_figures.masks),
    "agreement": Picture(
        tree("agreement.json", lambda found: found["orders"]), result_figures.minimal_pairs
    ),
    "orders": Picture(_WINDOWS, concept_figures.orders),
    "passes": Picture(
        tree("experiments.json", lambda found: any_order.passes(found["readings"])),
        result_figures.passes,
    ),
    "records": Picture(table("data_preparation.md", "table: throughput"), result_figures.records),
    "report": Picture(
        lambda docs: (docs / "report.html").read_text(encoding="utf-8"), result_figures.page
    ),
    "serving": Picture(table("serving.md", "table: serving"), result_figures.serving),
    "steps": Picture(tree("token_steps.json"), result_figures.token_steps),
    "streams": Picture(_WINDOWS, concept_figures.streams),
    "surprisal": Picture(
        tree("agreement.json", lambda found: found["words"]), result_figures.surprisal
    ),
    "time_to_quality": Picture(
        tree("time_to_quality.json", time_to_quality.shown), result_figures.time_to_quality
    ),
    "train_step": Picture(_measured(report.relative_times), result_figures.train_step),
}


def main() -> None:
    """Draws the pictures."""
    flags = parse(__doc__, all=flag(False, "also those that are not older"))
    names = list(PICTURES) if flags.all else older(DOCS)
    draw(names, DOCS)
    print(json.dumps({"drawn": names}))


def draw(names: Iterable[str], docs: pathlib.Path) -> None:
    """Draws pictures into `images` of the folder of the documentation."""
    (docs / "images").mkdir(exist_ok=True)
    for name in names:
        shown = PICTURES[name].read(docs)
        information = PngImagePlugin.PngInfo()
        information.add_text(_CHECKSUM, checksum(shown))
        with Image.open(io.BytesIO(PICTURES[name].draw(shown))) as image:
            image.save(docs / f"images/{name}.png", pnginfo=information, optimize=True)


def older(docs: pathlib.Path) -> list[str]:
    """Names of the pictures that are missing, or older than what they show."""
    return [
        name
        for name, picture in PICTURES.items()
        if _checksum_in(docs / f"images/{name}.png") != checksum(picture.read(docs))
    ]


def checksum(shown: Any) -> str:
    """Checksum of what a picture shows."""
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def _checksum_in(path: pathlib.Path) -> str | None:
    if not path.exists():
        return None
    with Image.open(path) as image:
        return image.info.get(_CHECKSUM)


if __name__ == "__main__":
    main()
