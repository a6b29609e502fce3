"""Rows of texts to embed, score or continue, with all columns; pairs, and SyntaxGym's suites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from data_prep.corpus.text_formats import is_fasta
from data_prep.tasks.table import plain
from data_prep.tasks.table_files import TABLE_FORMATS, read_file
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, did_you_mean, require_data
from official.xlnet.files.compression import ending
from official.xlnet.files.json_files import read_json
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text

_OF_JSON = str | int | float | list | dict | None  # Others, such as dates, are read as text.
_NAMES = (
    {"sentence_good": "good", "sentence_bad": "bad"},  # BLiMP's columns.
    {"frame": "context", "completion": "text"},  # Columns of cloze norms.
)


def read_text_rows(
    texts: Sequence[str],
    path: str | None,
    needed: Sequence[str] = ("text",),
    format: str | None = None,
) -> list[dict[str, Any]]:
    """Collects texts from the command line and a file, as rows.

    Args:
      texts: texts from the command line, each a row of `text` alone.
      path: optional table with a header (CSV, TSV, JSON lines, Parquet), or FASTA; or a file with
        one text per line, where a blank line is an empty text.
      needed: columns that must be there, with a string in each row; of pairs, `good` and `bad`,
        which are BLiMP's `sentence_good` and `sentence_bad`; of cloze norms, `context` and `text`,
        which may be `frame` and `completion`.
      format: `kaldi` or `nbest`, see `score_file`; None: by the name of the file.

    Returns:
      {column: value} for each row.

    Raises:
      DataError: the file cannot be read, there is no row, or a needed value is not there.
    """
    rows: list[dict[str, Any]] = [{"text": text} for text in texts]
    if path is None:
        pass
    elif format:
        rows += _kaldi(path) if format == "kaldi" else _nbest(path)
    elif ending(path) in TABLE_FORMATS or is_fasta(path):
        rows += [
            {n: v if isinstance(v, _OF_JSON) else str(v) for n, v in plain(row).items()}
            for row in read_file(Reading(path, TaskConfig(), strict=True, with_labels=False))
        ]
    else:
        with open_text(path) as file:
            rows += [{"text": line.rstrip("\n")} for line in file]
    require_data(bool(rows), path or "--text, --input", "at least one text", "none")
    others = next((names for names in _NAMES if {*names.values()} <= {*needed}), {})
    for number, row in enumerate(rows, start=1):
        row |= {ours: row[name] for name, ours in others.items() if name in row}
        for name in (name for name in needed if not isinstance(row.get(name), str)):
            columns = f"the columns {', '.join(row)}{did_you_mean(name, row)}"
            got = shown(row[name]) if name in row else columns
            raise DataError(f"{path}, row {number}: expected a string {name!r}, got {got}")
    return rows


def _kaldi(path: str) -> Iterator[dict[str, Any]]:
    """Rows of lines of an id and its words."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            name, *text = line.split(maxsplit=1)[:2] or [""]
            require_data(name != "", f"{path}, line {number}", "an id and words", "a blank line")
            yield {"id": name, "text": "".join(text).rstrip()}


def _nbest(path: str) -> Iterator[dict[str, Any]]:
    """A row for each hypothesis in the lists `hyps` of JSON lines."""
    reading = Reading(path, TaskConfig(), strict=True, with_labels=False)
    for number, row in enumerate(TABLE_FORMATS[".jsonl"](reading), start=1):
        hyps = row.pop("hyps", None)
        objects = [x for x in hyps if isinstance(x, dict)] if isinstance(hyps, list) else []
        has_texts = bool(objects) and all(isinstance(x.get("text"), str) for x in objects)
        expected = "a list 'hyps' of objects with a string 'text'"
        is_right = has_texts and len(objects) == len(hyps)
        require_data(is_right, f"{path}, row {number}", expected, shown(hyps))
        yield from ({"utterance": number, **row, **hyp} for hyp in hyps)


def read_suite(path: str) -> tuple[list[dict[str, Any]], list[str]] | None:
    """Reads a SyntaxGym suite.

    Args:
      path: a table; a `.json` file may be a suite.

    Returns:
      A row for each condition of each item: `item`, `condition`, `text`, and `regions`, {region:
      span of characters}; and the formulas of the predictions. None for another file, or an empty
      suite.
    """
    if not path.endswith(".json"):
        return None
    try:
        suite = read_json(path)
        formulas = [each["formula"] for each in suite["predictions"]]
        conditions = [(item, each) for item in suite["items"] for each in item["conditions"]]
    except (DataError, KeyError, TypeError):
        return None
    rows = []
    for item, condition in conditions:
        text, regions = "", {}
        for region in condition["regions"]:
            text += " " * bool(text and region["content"]) + region["content"]
            regions[str(region["region_number"])] = len(text) - len(region["content"]), len(text)
        of_item = {"item": item["item_number"], "condition": condition["condition_name"]}
        rows.append({**of_item, "text": text, "regions": regions})
    return (rows, formulas) if rows and formulas else None
