"""Search: folders in the formats of BEIR and TREC, to rank the results of a first search."""
