"""Document ranking (learning to rank): trained on pairs, evaluated on ranked lists."""

from __future__ import annotations

import collections
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import require_data
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.number_labels import mean_score
from official.xlnet.tasks.ranking import RankingConfig, RankingExample
from official.xlnet.tasks.ranking.metrics import evaluate_ranking
from official.xlnet.tasks.task import Task, in_parts, register_task

_PAIR_SAMPLING = 1  # Random stream of the training pairs; `TrainingBatches` uses [seed, epoch].


def columns_of(
    query: tf.RaggedTensor, document: tf.RaggedTensor, row_N: tf.Tensor, task: TaskConfig
) -> list[tf.RaggedTensor]:
    """Returns the texts of each sequence, to `pack` them.

    Args:
      query: token ids of Q queries, ragged int32 [Q, (number of tokens)].
      document: token ids of N documents, ragged int32 [N, (number of tokens)].
      row_N: the query of each document.
      task: settings of the task.

    Returns:
      The texts of N sequences, document and query; with `task.scoring` `kernel`, the single text
      of each of Q + N sequences, queries first.
    """
    settings = task.settings(RankingConfig)
    query = query[:, : settings.query_length]
    if settings.scoring == "summary":
        return [document, tf.gather(query, row_N)]
    return [tf.concat([query, document], axis=0)]


@register_task("ranking")
class Ranking(Task):
    """Ranking of documents by relevance to a query.

    A training unit is a query with a document and `task.num_candidates` - 1 less relevant ones,
    or as many as there are; for prediction, a query with one document. With `task.scoring`
    `kernel`, query and documents are encoded separately; with `summary`, each document is encoded
    together with the query (document | SEP | query | SEP | CLS).
    """

    metrics = ("ndcg@*", "err@*", "mrr", "pair_accuracy", "loss")
    typical = tuple(
        RankingExample(
            id=pet,
            query_id=f"{who} {asked}",
            query=f"a {asked} ?",
            document=f"{who} has a {pet} .",
            relevance=float(pet == asked),
        )
        for who in ("Ann", "Bob")
        for asked in ("cat", "dog", "bird")
        for pet in ("cat", "dog", "bird")
    )

    @property
    def _settings(self) -> RankingConfig:
        return self.config.task.settings(RankingConfig)

    @property
    def metric(self) -> str:  # type: ignore[override]
        """NDCG@k, with k = `task.cutoff`."""
        return f"ndcg@{self._settings.cutoff}"

    @property
    def metric_note(self) -> str:  # type: ignore[override]
        return f" ({self._settings.gain} gain)"

    @classmethod
    def complete_settings(cls, config, examples):
        require_data(
            any(_pairs(group) for group in _by_query(examples).values()),
            "training data",
            "queries with documents of different relevance",
            "none",
        )

    def read(self, examples):
        return [[unit] for unit in self._units([[example] for example in examples], 1)]

    def training_units(self, examples):
        """Returns a function from the epoch number to randomly drawn units."""
        groups = _by_query(examples)
        all_pairs = [_pairs(group) for group in groups.values()]
        self.counts["skipped_queries"] += sum(not pairs for pairs in all_pairs)
        pairs_of_queries = [pairs for pairs in all_pairs if pairs]
        seed = self.config.training.seed

        def units(epoch: int) -> list[Unit]:
            rng = np.random.default_rng([seed, _PAIR_SAMPLING, epoch])
            drawn = []
            for pairs in pairs_of_queries:
                num_drawn = len({better.id for better, _ in pairs})
                for index in rng.choice(len(pairs), num_drawn, replace=False):
                    better, worse = pairs[index]
                    # With one bucket length for all, every epoch has the same number of batches.
                    drawn.append(self._candidates(better, worse, groups[better.query_id], rng))
            return list(in_parts(self._units, drawn))

        return units

    def _candidates(
        self,
        better: RankingExample,
        worse: RankingExample,
        group: Sequence[RankingExample],
        rng: np.random.Generator,
    ) -> list[RankingExample]:
        """Both documents and, with more candidates, other less relevant ones."""
        candidates = [better, worse]
        num_others = self._settings.num_candidates - 2
        if num_others:
            others = [x for x in group if x is not worse and _grade(x) < _grade(better)]
            candidates += [others[i] for i in rng.permutation(len(others))[:num_others]]
        return candidates

    def _units(
        self, groups: Sequence[Sequence[RankingExample]], num_documents: int | None = None
    ) -> list[Unit]:
        """Converts groups of documents, each of one query, to units.

        Args:
          groups: the documents.
          num_documents: number of documents of a unit, to which smaller groups are filled up.
            None: `task.num_candidates`.
        """
        if num_documents is None:
            num_documents = self._settings.num_candidates
        row_N = np.repeat(np.arange(len(groups)), [*map(len, groups)])
        query = self.tokens(group[0].query for group in groups)
        document = self.tokens(example.document for group in groups for example in group)
        sequences = self.pack(columns_of(query, document, row_N, self.config.task))
        documents = iter(sequences[-len(row_N) :])
        units = []
        for group, query_sequence in zip(groups, sequences, strict=False):
            own_sequences = [] if self._settings.scoring == "summary" else [query_sequence]
            own_sequences += [next(documents) for _ in group]
            own_sequences += [{}] * (num_documents - len(group))
            units.append(Unit(own_sequences, {}))
        return units

    def predict(self, example, outputs):
        return {
            "id": example.id,
            "query_id": example.query_id,
            "score": float(outputs[0]["score"][0]),
        }

    def combine(self, predictions):
        return mean_score(predictions)

    def evaluate(self, examples, predictions):
        """Computes NDCG@k, ERR@k, MRR, pair accuracy and the pairwise log loss."""
        return self._metrics(examples, [prediction["score"] for prediction in predictions])

    def baselines(self, examples):
        scores = [example.run_score for example in examples]
        if None in scores:
            return None
        return {"run": self._metrics(examples, scores)}

    def _metrics(
        self, examples: Sequence[RankingExample], scores_E: Sequence[float]
    ) -> dict[str, float | None]:
        grades: dict[str, dict[str, float]] = collections.defaultdict(dict)
        scores: dict[str, dict[str, float]] = collections.defaultdict(dict)
        margins: list[float] = []  # Score differences of (better, worse) pairs.
        for example, score in zip(examples, scores_E, strict=True):
            grades[example.query_id].update(example.not_ranked)
            grades[example.query_id][example.id] = example.relevance or 0.0
            scores[example.query_id][example.id] = score
        for query, group in _by_query(examples).items():
            for better, worse in _pairs(group):
                margins.append(scores[query][better.id] - scores[query][worse.id])
        task = self._settings
        highest = task.highest_grade or None
        metrics: dict[str, float | None] = {}
        metrics |= evaluate_ranking(grades, scores, task.cutoff, highest, task.gain)
        metrics["pair_accuracy"] = metrics["loss"] = None
        if margins:
            metrics["pair_accuracy"] = float(np.mean(np.array(margins) > 0))
            metrics["loss"] = float(np.mean(np.logaddexp(0.0, -np.array(margins))))
        return metrics


def _by_query(examples: Sequence[RankingExample]) -> dict[str, list[RankingExample]]:
    groups: dict[str, list[RankingExample]] = collections.defaultdict(list)
    for example in examples:
        groups[example.query_id].append(example)
    return groups


def _grade(example: RankingExample) -> float:
    """The relevance of a document; junk is not relevant."""
    return max(example.relevance or 0, 0)


def _pairs(group: Sequence[RankingExample]) -> list[tuple[RankingExample, RankingExample]]:
    """Returns all (more relevant, less relevant) pairs of one query."""
    graded = [(example, _grade(example)) for example in group]
    return [(a, b) for a, better in graded for b, worse in graded if better > worse]
