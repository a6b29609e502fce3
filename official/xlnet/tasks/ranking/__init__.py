"""Ranking of documents by relevance to a query."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.key_marks import OF_HEAD
from official.xlnet.data.examples import Example
from official.xlnet.files.schema import OneOf
from official.xlnet.tasks.settings import CandidatesConfig

# QNLI and WNLI as pairwise ranking: the answering sentence, or the right referent of a pronoun,
# should be ranked first.
_PAIRS = {"name": "ranking", "scoring": "summary", "metric": "pair_accuracy"}
DATASETS = {"qnli_ranking": _PAIRS, "wnli_ranking": _PAIRS}
INPUTS = ("query", "document")
HEAD_FORMATS = ()  # No other format has its head.


@register_settings("task", name=["ranking"])
class RankingConfig(CandidatesConfig):
    """Documents by their relevance to a query.

    Attributes:
      scoring: `kernel` (kernel pooling over token similarities) or `summary` (query and document
        encoded together).
    """

    scoring: Annotated[str, OneOf(("kernel", "summary")), OF_HEAD] = "kernel"


@dataclasses.dataclass(frozen=True, slots=True)
class RankingExample(Example):
    """Example of document ranking: a query and a candidate document.

    Attributes:
      id: id of the document.
      query_id: id of the query; the documents of a query are ranked against each other.
      query: text of the query.
      document: text of the document.
      relevance: relevance grade; 0 is irrelevant, below 0 is junk.
      not_ranked: (document, grade) pairs of the query's judged documents that are not candidates;
        they count in the ideal ranking of NDCG.
      run_score: score in the ranking of a first search, which is reranked.
      subtask: name of its data set in multi-task training.
    """

    label_field = "relevance"

    query_id: str
    query: str
    document: str
    relevance: float | None = None
    not_ranked: tuple[tuple[str, float], ...] = ()
    subtask: str = ""
    run_score: float | None = dataclasses.field(default=None, compare=False)
