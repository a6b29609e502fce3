"""Ranking of documents by relevance to a query."""

# QNLI and WNLI as pairwise ranking: the answering sentence, or the right referent of a pronoun,
# should be ranked first.
_PAIRS = {"name": "ranking", "scoring": "summary", "metric": "pair_accuracy"}
DATASETS = {"qnli_ranking": _PAIRS, "wnli_ranking": _PAIRS}
INPUTS = ("query", "document")
FORMATS = ()  # No other format has its head.
