"""Generates text from the texts of files: what `generate` and other such verbs have in common."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from data_prep.tasks.text_rows import Row, text_chunks
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.data.text_counts import check_unknown, log_counts
from official.xlnet.data.text_files import Answers
from official.xlnet.inference import generation
from official.xlnet.inference.decoding.sampling import Sampling
from official.xlnet.inference.decoding.target_rows import Decoder, OneByOne
from official.xlnet.inference.generation import TextWriter
from official.xlnet.inference.language_model import loaded
from official.xlnet.jobs.identity import identity_of_call
from official.xlnet.tokenization.blanks import has_blank


@dataclasses.dataclass(frozen=True)
class GenerationCall:
    """The arguments of `official.xlnet.api.generate.generate_file`.

    A verb with more arguments has a subclass.
    """

    model: str
    text: Sequence[str]
    input: str | None
    output: str | None
    num_tokens: int
    max_blank_length: int
    temperature: float
    top_k: int
    top_p: float
    seed: int


def generate_texts(call: GenerationCall, decoder: Decoder | None = None) -> dict[str, Any]:
    """Continues texts and fills blanks; see `official.xlnet.api.generate.generate_file`.

    Args:
      call: the arguments of the call.
      decoder: which targets are decoded together; default: one after the other.
    """
    require_json_lines(call.output)
    decoder = decoder or OneByOne()
    chunks, num_rows = text_chunks(call.text, call.input, generation.BATCH_SIZE, written={"output"})
    sampling = Sampling(call.temperature, call.top_k, call.top_p, call.seed)
    model, tokenizer = loaded(call.model, takes_masked=decoder.takes_masked)
    writer = TextWriter(model, tokenizer, sampling, decoder, call.num_tokens, call.max_blank_length)
    counts = tokenizer.counts

    def answer(rows: list[Row]) -> list[dict[str, Any]]:
        texts = [row["text"] for row in rows]
        outputs = writer.outputs(texts, first=counts["continued"] + counts["filled"])
        num_filled = sum(map(has_blank, texts))
        counts.update(continued=len(texts) - num_filled, filled=num_filled)
        counts.update(empty=sum(not text.strip() for text in texts))
        return [{"output": output} for output in outputs]

    written = write_answers(call.output, chunks, num_rows, answer, counts)
    log_counts(call.input or "text", {"texts": written["texts"], **counts})
    results = {name: counts[name] for name in ("continued", "filled", "empty")}
    results |= {name: count for name, count in written.items() if name != "texts"}
    return results | check_unknown(counts, "texts")


def write_answers(
    output: str | None,
    chunks: Iterable[list[Row]],
    num_rows: int,
    answer: Callable[[list[Row]], list[dict[str, Any]]],
    counts: collections.Counter[str],
) -> dict[str, int]:
    """Writes the columns of each row and of its answer; a killed call is resumed.

    Args:
      output: the output file; None or `-` for standard output.
      chunks: the rows.
      num_rows: number of all rows; 0 if they come from standard input.
      answer: function of the rows of a chunk to a dictionary of columns for each.
      counts: counts that `answer` adds to.

    Returns:
      The number of `texts`, and of `resumed_rows` and `errors` if there are some.
    """
    noun = "texts" if num_rows else ""
    answers = Answers(chunks, answer, counts, total=num_rows, noun=noun)
    with answers.resuming(output, identity_of_call()) as answered:
        write_json_lines(output, _with_columns(answered))
    return {"texts": answers.done, **answers.counted()}


def _with_columns(
    answered: Iterable[tuple[list[Any], list[dict[str, Any]] | None]],
) -> Iterator[dict[str, Any]]:
    """The rows, with the columns of their answers; of wrong ones, their errors."""
    for rows, answers in answered:
        if answers is None:
            yield from (row.answer() for row in rows)
            continue
        for row, columns in zip(rows, answers, strict=True):
            yield {**row, **columns}
