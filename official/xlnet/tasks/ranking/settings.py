"""Keys of ranking."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.validation import COUNT_OR_NONE
from official.xlnet.tasks.settings import CandidatesConfig


@register_settings("task", name=["ranking"])
class RankingConfig(CandidatesConfig):
    """Documents by their relevance to a query.

    Attributes:
      scoring: `kernel` (kernel pooling over token similarities) or `summary` (query and document
        encoded together).
      rerank_depth: number of documents of a TREC run that are reranked per query; 0: all.
    """

    allowed = {"scoring": ("kernel", "summary"), "rerank_depth": COUNT_OR_NONE}

    of_head = (*CandidatesConfig.of_head, "scoring")

    scoring: str = "kernel"
    rerank_depth: int = 0
