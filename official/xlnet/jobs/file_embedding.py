"""`xlnet embed`: vectors of the texts of a file, to a file."""

from __future__ import annotations

import base64
import collections
import contextlib
import functools
import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from data_prep.tasks.text_rows import Row, text_chunks
from official.xlnet.data.lost_rows import check_unknown, log_counts
from official.xlnet.data.result_files import VECTORS, check_ending, vector_file
from official.xlnet.data.text_files import Answers, write_json_lines
from official.xlnet.errors import ConfigError, require_config
from official.xlnet.files.arguments import STANDARD
from official.xlnet.jobs.identity import identity_of
from official.xlnet.runtime.progress import Progress, per_second, waiting

if TYPE_CHECKING:
    from official.xlnet.inference.embedding import TextEmbedder

_OF_PARTS = ("words", "none")
_CHUNK_BATCHES = 16  # Batches whose texts are sorted by length, and lost in a kill, together.


def embed_texts(
    model: str,
    input: str,
    output: str,
    *,
    pooling: str,
    layer: int,
    layers: Sequence[int],
    max_length: int | None,
    window_stride: int,
    batch_size: int,
    products: str | None,
) -> dict[str, Any]:
    """Embeds the texts of a file; see `official.xlnet.api.embed.embed_file`."""
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.checkpoints.model_directory import load_encoder
    from official.xlnet.inference.embedding import TextEmbedder
    from official.xlnet.modeling.kernels.product_type import matmul_precision

    has_parts, is_lines = pooling in _OF_PARTS, output == STANDARD or output.endswith(".jsonl")
    if has_parts and output.endswith(".npy"):
        raise ConfigError(f"{output}: expected .jsonl or .parquet for rows of words or tokens")
    if output != STANDARD:
        check_ending(output, VECTORS)
    expected = "- or a file of JSON lines (.jsonl) for standard input"
    require_config(is_lines or input != STANDARD, "output", expected, output)
    taken = {"vector", *(_part(1, {}, (0, 0)) if has_parts else {})}
    check = functools.partial(_check_columns, taken)
    chunks, total = text_chunks([], input, batch_size * _CHUNK_BATCHES, check=check)
    held = [] if is_lines else [*chunks]  # All columns are known before the first row is written.
    rows = [row for chunk in held for row in chunk]
    if output.endswith(".npy") and (others := sorted({n for row in rows for n in row} - {"text"})):
        line = f"{input}: texts are read from text; not in {output}: {', '.join(others)}"
        Progress(sys.stderr).log_line(line)
    with waiting("reading the model"):
        tokenizer, encoder = load_tokenizer(model), load_encoder(model)
    embedder = TextEmbedder(encoder, tokenizer, layers or layer, max_length, window_stride)
    counts, start = tokenizer.counts, time.monotonic()
    work = Answers(
        held or chunks,
        functools.partial(_answer, embedder, counts, pooling, batch_size),
        *(counts, total),
        *("texts" if total else "", lambda: f", windows: {embedder.num_windows}"),
    )
    settings = [pooling, layer, layers, max_length, window_stride, batch_size, products]
    identity = identity_of(output, input, [model], *settings)
    kinds = [_part(1, row, (0, 0)) for row in rows] if has_parts else rows
    vectors = contextlib.nullcontext() if is_lines else vector_file(output, kinds, embedder.width)
    with matmul_precision(products), work.to(output, identity) as answered, vectors as write:
        results = _results(answered, embedder.width)
        if write:
            collections.deque(itertools.starmap(write, results), maxlen=0)
        else:
            write_json_lines(output, _lines(results))
    log_counts(input, {"texts": work.done, **counts})
    return {
        "texts": work.done,
        "empty": counts["empty"],
        "truncated": counts["truncated"],
        **({"resumed_rows": work.kept} if work.kept else {}),
        "width": embedder.width,
        "texts_per_second": per_second(work.done - work.kept, start),
        **check_unknown(counts, input),
    }


def _check_columns(taken: set[str], row: Row, where: str) -> None:
    names = ", ".join(sorted(taken & row.keys()))
    expected = "a table without the columns that embed writes"
    require_config(not names, where, expected, f"{names}; rename them")


def _answer(
    embedder: TextEmbedder,
    counts: collections.Counter,
    pooling: str,
    batch_size: int,
    rows: list[Row],
) -> list[Any]:
    """Spans of the parts of each text, None without parts; and all vectors, in base64."""
    texts, truncated, spans = [row["text"] for row in rows], embedder.num_truncated, None
    if pooling in _OF_PARTS:
        spans, parts = zip(*embedder.parts(texts, pooling, batch_size), strict=True)
        vectors = np.concatenate(parts)
    else:
        vectors = embedder(texts, pooling, batch_size)
    counts.update(truncated=embedder.num_truncated - truncated)
    counts.update(empty=sum(not text.strip() for text in texts))
    return [spans, base64.b64encode(vectors.astype("<f4").tobytes()).decode()]


def _results(answered: Iterable[Any], width: int) -> Iterator[tuple[list[Row], np.ndarray]]:
    """Rows to write, and their vectors."""
    first = 1
    for rows, (spans, vectors) in answered:
        if spans is not None:
            texts = zip(itertools.count(first), rows, spans, strict=False)
            first += len(rows)
            rows = [_part(number, row, span) for number, row, some in texts for span in some]
        yield rows, np.frombuffer(base64.b64decode(vectors), "<f4").reshape(len(rows), width)


def _lines(results: Iterable[tuple[list[Row], np.ndarray]]) -> Iterator[Row]:
    for rows, vectors in results:
        for row, vector in zip(rows, vectors, strict=True):
            # The shortest decimals that give the float32 back.
            yield {**row, "vector": [float(str(x)) for x in vector]}


def _part(number: int, row: dict[str, Any], span: tuple[int, int]) -> dict[str, Any]:
    """The row of a word or token, but for its vector: where it stands, and the other columns."""
    start, end = span
    others = {name: row[name] for name in row if name != "text"}
    part = row.get("text", "")[start:end]
    return {"text_id": number, **others, "start": start, "end": end, "part": part}
