"""The work of `score_steps`, from files to files."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.inference.language_model import loaded
from official.xlnet.inference.score import Score
from official.xlnet.inference.text_parts import Span
from official.xlnet.jobs.file_scoring import FileScoring, ScoringCall
from official.xlnet.projects.any_order.stepwise import Steps
from official.xlnet.projects.any_order.stepwise.scoring import StepScorer


@dataclasses.dataclass(frozen=True)
class StepsCall(ScoringCall):
    """The arguments of `score_steps`."""

    format: str | None
    steps: int
    select: str

    def scorer(self) -> StepScorer:
        model, tokenizer = loaded(self.model, takes_masked=True)
        return StepScorer(model, tokenizer, Steps(self.steps, self.select))

    def scores(
        self,
        scorer: Any,
        texts: Sequence[str],
        targets: Sequence[Sequence[Span]],
        with_entropies: bool = False,
    ) -> list[Score]:
        assert not with_entropies
        return scorer.score(texts, targets)


def score_in_steps(call: StepsCall) -> dict[str, Any]:
    """Scores texts as they are generated in steps; see `verbs.score_steps_file`."""
    require_json_lines(call.output)
    chunks, num_rows = call.chunks(format=call.format)
    job = FileScoring(call, chunks, num_rows)
    job.require_one_window(lambda row: call.placed(row)[0], "steps")
    with job.scored() as scored:
        write_json_lines(call.output, ({**row.columns(), **row.marks()} for row in scored))
    return job.results()
