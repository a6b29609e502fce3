"""The work of `candidates` and `unmask`, from files to files."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from data_prep.tasks.text_rows import Row, text_chunks
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.inference import generation
from official.xlnet.inference.language_model import loaded
from official.xlnet.jobs.file_generation import GenerationCall, generate_texts, write_answers
from official.xlnet.projects.any_order.candidates import ranker
from official.xlnet.projects.any_order.stepwise import Steps


@dataclasses.dataclass(frozen=True)
class CandidatesCall:
    """The arguments of `candidates`."""

    model: str
    text: Sequence[str]
    input: str | None
    output: str | None
    candidates: int
    choices: Sequence[str]
    max_blank_length: int


def rank_candidates(call: CandidatesCall) -> dict[str, Any]:
    """Writes the candidates for each blank of texts; see `verbs.candidates_file`."""
    require_json_lines(call.output)
    chunks, num_rows = text_chunks(
        call.text, call.input, generation.BATCH_SIZE, written={"candidates"}
    )
    model, tokenizer = loaded(call.model, takes_masked=True)
    rank = ranker(model, tokenizer, call.choices or call.candidates, call.max_blank_length)

    def answer(rows: list[Row]) -> list[dict[str, Any]]:
        answers = []
        for row in rows:
            blanks = rank(row["text"])
            as_json = [[candidate._asdict() for candidate in blank] for blank in blanks]
            answers.append({"candidates": as_json})
        return answers

    return write_answers(call.output, chunks, num_rows, answer, tokenizer.counts)


@dataclasses.dataclass(frozen=True)
class UnmaskCall(GenerationCall):
    """The arguments of `unmask`."""

    steps: int
    select: str
    remask: bool


def unmask_texts(call: UnmaskCall) -> dict[str, Any]:
    """Generates text in steps; see `verbs.unmask_file`."""
    return generate_texts(call, Steps(call.steps, call.select, call.remask))
