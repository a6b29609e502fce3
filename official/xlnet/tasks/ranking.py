"""Document ranking: learned from pairs, evaluated on lists."""

from __future__ import annotations

import collections
from collections.abc import Sequence

import numpy as np

from official.xlnet.data.examples import RankingExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.batching import Arrays, Unit
from official.xlnet.tasks.ranking_metrics import evaluate_ranking
from official.xlnet.tasks.task import Task, register_task


@register_task("ranking")
class Ranking(Task):
    """A training unit is a query with a better and a worse document; else with one document.

    `task.scoring` `kernel` reads query and documents apart, `summary` each document with the
    query (document | SEP | query | SEP | CLS).
    """

    @property
    def metric(self) -> str:  # type: ignore[override]
        """NDCG@k, with k = `task.cutoff`."""
        return f"ndcg@{self.config.task.cutoff}"

    @classmethod
    def complete(cls, config, examples):
        if not any(_pairs(group) for group in _by_query(examples).values()):
            raise DataError(
                "training data: expected queries with documents of different relevance, got none"
            )

    def units(self, example):
        return [Unit(self._sequences(example.query, [example.document]), {})]

    def training_units(self, examples):
        """A function of the epoch: for each document, a pair with one of other relevance."""
        groups = [_pairs(group) for group in _by_query(examples).values()]
        self.counts["skipped_queries"] += sum(not pairs for pairs in groups)
        pairs_of = [pairs for pairs in groups if pairs]
        seed = self.config.training.seed

        def units(epoch: int) -> list[Unit]:
            rng = np.random.default_rng([seed, 1, epoch])
            drawn = []
            for pairs in pairs_of:
                number = len({better.id for better, _ in pairs})
                for index in rng.choice(len(pairs), number, replace=False):
                    better, worse = pairs[index]
                    documents = [better.document, worse.document]
                    # All as long as they can be, so that every epoch has the same batches.
                    drawn.append(Unit(self._sequences(better.query, documents), {}))
            return drawn

        return units

    def _sequences(self, query: str, documents: Sequence[str]) -> list[Arrays]:
        query_ids = self.tokenizer.encode(query)[: self.config.task.query_length]
        document_ids = [self.tokenizer.encode(document) for document in documents]
        if self.config.task.scoring == "summary":
            return [self.pack([ids, query_ids]) for ids in document_ids]
        return [self.pack([ids]) for ids in (query_ids, *document_ids)]

    def predict(self, example, outputs):
        return {
            "id": example.id,
            "query_id": example.query_id,
            "score": float(outputs[0]["score"][0]),
        }

    def evaluate(self, examples, predictions):
        """NDCG@k, ERR@k, MRR, the share of pairs in the right order, and their mean log loss."""
        grades: dict[str, dict[str, float]] = collections.defaultdict(dict)
        scores: dict[str, dict[str, float]] = collections.defaultdict(dict)
        margins: list[float] = []  # By how much the better document of a pair is ahead.
        for example, prediction in zip(examples, predictions, strict=True):
            grades[example.query_id][example.id] = float(example.relevance)
            scores[example.query_id][example.id] = prediction["score"]
        for query, group in _by_query(examples).items():
            margins += [
                scores[query][better.id] - scores[query][worse.id]
                for better, worse in _pairs(group)
            ]
        figures = evaluate_ranking(grades, scores, self.config.task.cutoff)
        if margins:
            figures["pair_accuracy"] = float(np.mean(np.array(margins) > 0))
            figures["loss"] = float(np.mean(np.logaddexp(0.0, -np.array(margins))))
        return figures

    def draw(self, axes, examples, predictions):
        """Scores by grade."""
        by_grade = collections.defaultdict(list)
        for example, prediction in zip(examples, predictions, strict=True):
            by_grade[float(example.relevance)].append(prediction["score"])
        grades = sorted(by_grade)
        axes.boxplot([by_grade[grade] for grade in grades])
        axes.set_xticks(range(1, len(grades) + 1), [f"{grade:g}" for grade in grades])
        axes.set(xlabel="relevance", ylabel="score", title="Scores by relevance")


def _by_query(examples: Sequence[RankingExample]) -> dict[str, list[RankingExample]]:
    groups: dict[str, list[RankingExample]] = collections.defaultdict(list)
    for example in examples:
        groups[example.query_id].append(example)
    return groups


def _pairs(group: Sequence[RankingExample]) -> list[tuple[RankingExample, RankingExample]]:
    """(better, worse) of one query."""
    return [(a, b) for a in group for b in group if (a.relevance or 0) > (b.relevance or 0)]
