"""Ranking of documents by relevance to a query."""
