"""`xlnet embed`: vectors of the texts of a file, to a file."""

from __future__ import annotations

import base64
import collections
import dataclasses
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from data_prep.tasks.text_rows import Row, text_chunks
from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.checkpoints.restoring import load_encoder
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import VECTORS, check_columns, check_ending, vector_file
from official.xlnet.data.text_counts import check_unknown, log_counts
from official.xlnet.data.text_files import Answers
from official.xlnet.errors import ConfigError, require_config
from official.xlnet.files.arguments import STANDARD
from official.xlnet.inference.embedding import TextEmbedder
from official.xlnet.jobs.identity import identity_of_call
from official.xlnet.modeling.kernels.product_type import matmul_precision
from official.xlnet.runtime.progress import Progress, per_second, waiting

_CHUNK_BATCHES = 16  # Batches whose texts are sorted by length, and lost in a kill, together.


@dataclasses.dataclass(frozen=True)
class EmbeddingCall:
    """The arguments of `official.xlnet.api.embed.embed_file`."""

    model: str
    input: str
    output: str
    pooling: str
    layer: int
    layers: Sequence[int]
    max_length: int | None
    window_stride: int
    batch_size: int
    products: str | None
    format: str | None

    @property
    def has_parts(self) -> bool:
        """Whether there is a vector for each word or token."""
        return self.pooling in ("words", "none")

    @property
    def is_lines(self) -> bool:
        """Whether the output is JSON lines, which are written row by row."""
        return self.output == STANDARD or self.output.endswith(".jsonl")

    def check(self) -> None:
        """Raises `ConfigError` if the output cannot hold what is asked for."""
        if self.has_parts and self.output.endswith(".npy"):
            expected = "expected .jsonl or .parquet for rows of words or tokens"
            raise ConfigError(f"{self.output}: {expected}")
        if self.output != STANDARD:
            check_ending(self.output, VECTORS)
        expected = "- or a file of JSON lines (.jsonl) for standard input"
        require_config(self.is_lines or self.input != STANDARD, "output", expected, self.output)

    def written_columns(self) -> set[str]:
        """The columns that are written in addition to the input columns."""
        return {"vector", *_part(1, {}, (0, 0))} if self.has_parts else {"vector"}


def embed_texts(call: EmbeddingCall) -> dict[str, Any]:
    """Embeds the texts of a file; see `official.xlnet.api.embed.embed_file`."""
    call.check()
    chunk_size = call.batch_size * _CHUNK_BATCHES
    chunks, num_rows = text_chunks(
        [], call.input, chunk_size, format=call.format, written=call.written_columns()
    )
    # All columns of a table are known before the first row is written.
    held = [] if call.is_lines else [*chunks]
    rows = [row for chunk in held for row in chunk]
    columns = [_part(1, row, (0, 0)) for row in rows] if call.has_parts else rows
    if call.output.endswith(".npy"):
        _log_other_columns(call, rows)
    elif held:
        check_columns(call.output, columns)
    with waiting("reading the model"):
        tokenizer, encoder = load_tokenizer(call.model), load_encoder(call.model)
    layers = call.layers or call.layer
    embedder = TextEmbedder(encoder, tokenizer, layers, call.max_length, call.window_stride)
    counts, start = tokenizer.counts, time.monotonic()
    answers = Answers(
        held or chunks,
        lambda chunk: _answer(embedder, counts, call, chunk),
        counts,
        total=num_rows,
        noun="texts" if num_rows else "",
        more=lambda: f", windows: {embedder.num_windows}",
    )
    resuming = answers.resuming(call.output, identity_of_call())
    with matmul_precision(call.products), resuming as answered:
        results = _results(answered, embedder.width)
        if call.is_lines:
            write_json_lines(call.output, _lines(results))
        else:
            with vector_file(call.output, columns, embedder.width) as write:
                for written_rows, vectors in results:
                    assert vectors is not None  # There are no wrong rows in a file.
                    write(written_rows, vectors)
    log_counts(call.input, {"texts": answers.done, **counts})
    summary: dict[str, Any] = {
        "texts": answers.done,
        "empty": counts["empty"],
        "truncated": counts["truncated"],
    }
    summary |= answers.counted()
    summary["width"] = embedder.width
    summary["texts_per_second"] = per_second(answers.done - answers.kept, start)
    return summary | check_unknown(counts, call.input)


def _log_other_columns(call: EmbeddingCall, rows: Sequence[Row]) -> None:
    """Logs which columns of a table an array does not have."""
    others = sorted({name for row in rows for name in row} - {"text"})
    if others:
        columns = ", ".join(others)
        line = f"{call.input}: texts are read from text; not in {call.output}: {columns}"
        Progress(sys.stderr).log_line(line)


def _answer(
    embedder: TextEmbedder, counts: collections.Counter, call: EmbeddingCall, rows: list[Row]
) -> list[Any]:
    """Spans of the parts of each text, None without parts; and all vectors, in base64."""
    texts, truncated, spans = [row["text"] for row in rows], embedder.num_truncated, None
    if call.has_parts:
        spans, parts = zip(*embedder.parts(texts, call.pooling, call.batch_size), strict=True)
        vectors = np.concatenate(parts)
    else:
        vectors = embedder(texts, call.pooling, call.batch_size)
    counts.update(truncated=embedder.num_truncated - truncated)
    counts.update(empty=sum(not text.strip() for text in texts))
    return [spans, base64.b64encode(vectors.astype("<f4").tobytes()).decode()]


def _results(answered: Iterable[Any], width: int) -> Iterator[tuple[list[Row], np.ndarray | None]]:
    """Rows to write, and their vectors; None for wrong rows, which have errors."""
    first = 1
    for rows, answer in answered:
        if answer is None:
            yield [row.answer() for row in rows], None
            first += len(rows)
            continue
        spans, vectors = answer
        if spans is not None:
            parts = []
            for text_number, (row, spans_of_row) in enumerate(
                zip(rows, spans, strict=False), first
            ):
                parts += [_part(text_number, row, span) for span in spans_of_row]
            first += len(rows)
            rows = parts
        yield rows, np.frombuffer(base64.b64decode(vectors), "<f4").reshape(len(rows), width)


def _lines(results: Iterable[tuple[list[Row], np.ndarray | None]]) -> Iterator[Row]:
    for rows, vectors in results:
        if vectors is None:
            yield from rows
            continue
        for row, vector in zip(rows, vectors, strict=True):
            # The shortest decimals that give the float32 back.
            yield {**row, "vector": [float(str(x)) for x in vector]}


def _part(text_number: int, row: dict[str, Any], span: tuple[int, int]) -> dict[str, Any]:
    """The row of a word or token without its vector: its characters, and the other columns."""
    start, end = span
    others = {name: row[name] for name in row if name != "text"}
    part = row.get("text", "")[start:end]
    return {"text_id": text_number, **others, "start": start, "end": end, "part": part}
