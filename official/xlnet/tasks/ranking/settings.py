"""Keys of ranking."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.validation import COUNT, COUNT_OR_NONE, Range
from official.xlnet.tasks.settings import QueryConfig


@register_settings("task", name=["ranking"])
class RankingConfig(QueryConfig):
    """Documents by their relevance to a query.

    Attributes:
      scoring: `kernel` (kernel pooling over token similarities) or `summary` (query and document
        encoded together).
      num_candidates: number of documents of a query that the loss compares: one and, if there are
        so many, `num_candidates` - 1 less relevant ones; 2: pairs.
      cutoff: rank cutoff k of NDCG@k and ERR@k.
      highest_grade: highest possible relevance grade, for ERR@k; 0: the highest in the data.
      rerank_depth: number of documents of a TREC run that are reranked per query; 0: all.
    """

    allowed = {
        "scoring": ("kernel", "summary"),
        "num_candidates": Range(2, 1000),
        "cutoff": COUNT,
        "highest_grade": Range(0, 100),
        "rerank_depth": COUNT_OR_NONE,
    }

    scoring: str = "kernel"
    num_candidates: int = 2
    cutoff: int = 20
    highest_grade: int = 0
    rerank_depth: int = 0
