"""Keys of the section `task` for ranking the results of a first search."""

from __future__ import annotations

from typing import Annotated

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.validation import COUNT_OR_NONE
from official.xlnet.tasks.ranking import RankingConfig


@register_settings("task")
class RerankConfig(RankingConfig):
    """Ranking of the documents that a first search has found.

    Attributes:
      rerank_depth: number of documents of a TREC run that are reranked per query; 0: all.
    """

    rerank_depth: Annotated[int, COUNT_OR_NONE] = 0
