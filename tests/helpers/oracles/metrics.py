"""Metrics in another way than tasks compute them: by other libraries, or by their definitions.

A function takes examples with labels and their predictions, and returns the value of the metric.
"""

import itertools

import numpy as np
import pytrec_eval
from official.nlp.tools import squad_evaluate_v2_0
from scipy import stats
from sklearn import metrics


def labels(examples, predictions):
    """The classes of examples and predictions."""
    return [example.label for example in examples], [x["label"] for x in predictions]


def share_of_right_labels(examples, predictions):
    true, predicted = labels(examples, predictions)
    return np.mean(np.array(true) == np.array(predicted))


def f1_of(is_true, is_predicted):
    """2 · (both) / (number of true ones + number of predicted ones)."""
    return 2 * np.sum(is_true & is_predicted) / (np.sum(is_true) + np.sum(is_predicted))


def f1_of_the_last_class(examples, predictions):
    *_, positive = predictions[0]["probabilities"]
    true, predicted = labels(examples, predictions)
    return f1_of(np.array(true) == positive, np.array(predicted) == positive)


def mean_f1_of_classes(examples, predictions):
    true, predicted = map(np.array, labels(examples, predictions))
    classes = {*true, *predicted}
    return np.mean([f1_of(true == label, predicted == label) for label in classes])


def correlation_of_classes(true, predicted):
    """Matthews' for any number of classes: cov(x, y) / √(cov(x, x) cov(y, y)) of one-hot rows."""
    classes = sorted({*true, *predicted})
    tables = [np.array(names)[:, None] == np.array(classes) for names in (true, predicted)]
    x, y = (table - table.mean(axis=0) for table in tables)
    scale = np.sqrt(np.sum(x * x) * np.sum(y * y))
    return np.sum(x * y) / scale if scale else 0.0


def matthews(examples, predictions):
    return correlation_of_classes(*labels(examples, predictions))


def tables_of_classes(examples, predictions):
    """Whether each class is a label, and whether it is predicted: bool [E, C]."""
    classes = [*predictions[0]["probabilities"]]
    true = [[name in example.label for name in classes] for example in examples]
    predicted = [[p["probabilities"][name] > 0.5 for name in classes] for p in predictions]
    return np.array(true), np.array(predicted)


def micro_f1(examples, predictions):
    return f1_of(*tables_of_classes(examples, predictions))


def macro_f1(examples, predictions):
    true, predicted = tables_of_classes(examples, predictions)
    occurs = np.any(true | predicted, axis=0)
    return np.mean([f1_of(*pair) for pair in zip(true.T[occurs], predicted.T[occurs], strict=True)])


def exact_match(examples, predictions):
    true, predicted = tables_of_classes(examples, predictions)
    return np.mean(np.all(true == predicted, axis=1))


def number_oracles(numbers):
    """Oracles of the metrics of numbers.

    Args:
      numbers: a function of examples and predictions to the numbers of both.
    """

    def of(metric):
        return lambda examples, predictions: metric(*numbers(examples, predictions))

    def correlation(true, predicted):
        is_constant = np.ptp(true) == 0 or np.ptp(predicted) == 0
        return None if is_constant else np.corrcoef(true, predicted)[0, 1]

    def rank_correlation(true, predicted):
        return correlation(stats.rankdata(true), stats.rankdata(predicted))

    def root(true, predicted):
        return np.linalg.norm(np.subtract(true, predicted)) / np.sqrt(len(true))

    return {
        "pearson": of(correlation),
        "spearman": of(rank_correlation),
        "r2": of(metrics.r2_score),
        "mean_squared_error": of(metrics.mean_squared_error),
        "root_mean_squared_error": of(root),
        "mean_absolute_error": of(metrics.mean_absolute_error),
    }


def scores(examples, predictions):
    return [example.label for example in examples], [x["score"] for x in predictions]


def share_of_right_choices(examples, predictions):
    pairs = zip(examples, predictions, strict=True)
    return metrics.accuracy_score(*zip(*((e.label, p["choice"]) for e, p in pairs), strict=True))


def of_some(field, value, oracle):
    """An oracle of the examples whose `field` has a value."""

    def of_these(examples, predictions):
        pairs = zip(examples, predictions, strict=True)
        some = [pair for pair in pairs if getattr(pair[0], field) == value]
        return oracle(*zip(*some, strict=True))

    return of_these


def official_answers(name):
    """A metric of SQuAD 2.0's own program; None where no question is of its kind."""

    def oracle(examples, predictions):
        questions = []
        answers = {}
        for number, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
            expected = [{"text": text, "answer_start": start} for text, start in example.answers]
            questions.append({"id": str(number), "answers": expected})
            answers[str(number)] = prediction["answer"]
        return squad_evaluate_v2_0.evaluate([{"paragraphs": [{"qas": questions}]}], answers)[name]

    return oracle


def entities(tags):
    """(first word, last word, kind) of the entities of tags in BIO."""
    found = set()
    for first, tag in enumerate(tags):
        kind = tag.partition("-")[2]
        before = tags[first - 1].partition("-")[2] if first else ""
        if not kind or (tag.startswith("I-") and before == kind):
            continue
        after = itertools.takewhile(
            lambda other, kind=kind: other == f"I-{kind}", tags[first + 1 :]
        )
        found.add((first, first + len([*after]), kind))
    return found


def share_of_entities(denominator):
    """Entities that are both labelled and predicted, as a share.

    Args:
      denominator: a function of the number of labelled and of predicted ones.
    """

    def oracle(examples, predictions):
        num_true = num_predicted = num_right = 0
        for example, prediction in zip(examples, predictions, strict=True):
            true, predicted = entities(example.tags), entities(prediction["tags"])
            num_true += len(true)
            num_predicted += len(predicted)
            num_right += len(true & predicted)
        if not num_true:
            return None
        total = denominator(num_true, num_predicted)
        return num_right / total if total else 0.0

    return oracle


def tags(examples, predictions):
    """The tags of all words."""
    true = itertools.chain(*(example.tags for example in examples))
    return [*true], [*itertools.chain(*(prediction["tags"] for prediction in predictions))]


def share_of_right_tags(examples, predictions):
    true, predicted = tags(examples, predictions)
    return np.mean(np.array(true) == np.array(predicted))


def matthews_of_tags(examples, predictions):
    return correlation_of_classes(*tags(examples, predictions))


def queries(examples, predictions):
    """{query: {document: (grade, score)}}"""
    found = {}
    for example, prediction in zip(examples, predictions, strict=True):
        documents = found.setdefault(example.query_id, {})
        documents[example.id] = example.relevance, prediction["score"]
    return found


def mean_of_trec_eval(measure, name):
    """The mean over queries of a measure of trec_eval."""

    def oracle(examples, predictions):
        grades, scores_of_queries = {}, {}
        for query, documents in queries(examples, predictions).items():
            grades[query] = {document: int(grade) for document, (grade, _) in documents.items()}
            scores_of_queries[query] = {document: pair[1] for document, pair in documents.items()}
        found = pytrec_eval.RelevanceEvaluator(grades, {measure}).evaluate(scores_of_queries)
        return np.mean([values[name] for values in found.values()])

    return oracle


def expected_reciprocal_rank(examples, predictions):
    """The mean over queries with a relevant document, of grades up to the highest that occurs."""
    highest = max(example.relevance for example in examples)
    values = []
    for documents in queries(examples, predictions).values():
        order = sorted(documents, key=lambda name: (np.float32(documents[name][1]), name))[::-1]
        satisfies = [(2 ** documents[name][0] - 1) / 2**highest for name in order[:20]]
        goes_on = np.cumprod([1, *np.subtract(1, satisfies)])[:-1]
        if any(grade > 0 for grade, _ in documents.values()):
            values.append(np.sum(goes_on * satisfies / np.arange(1, len(satisfies) + 1)))
    return np.mean(values) if values else 0.0


def margins(examples, predictions):
    """Differences of the scores of a more and a less relevant document of a query."""
    found = []
    for documents in queries(examples, predictions).values():
        for better, worse in itertools.permutations(documents.values(), 2):
            if better[0] > worse[0]:
                found.append(better[1] - worse[1])
    return np.array(found)


def share_of_right_pairs(examples, predictions):
    return np.mean(margins(examples, predictions) > 0)


def loss_of_pairs(examples, predictions):
    return np.mean(np.log1p(np.exp(-margins(examples, predictions))))


# {task of the core: {metric: its oracle}}
METRICS = {
    "classification": {
        "accuracy": share_of_right_labels,
        "macro_f1": mean_f1_of_classes,
        "matthews": matthews,
        "f1": f1_of_the_last_class,
    },
    "multi_label": {"micro_f1": micro_f1, "macro_f1": macro_f1, "exact_match": exact_match},
    "regression": number_oracles(scores),
    "multiple_choice": {
        "accuracy": share_of_right_choices,
        "accuracy_high": of_some("group", "high", share_of_right_choices),
        "accuracy_middle": of_some("group", "middle", share_of_right_choices),
    },
    "question_answering": {
        "exact_match": official_answers("exact"),
        "f1": official_answers("f1"),
        "answerable_exact_match": official_answers("HasAns_exact"),
        "answerable_f1": official_answers("HasAns_f1"),
        "unanswerable_f1": official_answers("NoAns_f1"),
    },
    "token_classification": {
        "precision": share_of_entities(lambda num_true, num_predicted: num_predicted),
        "recall": share_of_entities(lambda num_true, num_predicted: num_true),
        "f1": share_of_entities(lambda num_true, num_predicted: (num_true + num_predicted) / 2),
        "word_accuracy": share_of_right_tags,
        "accuracy": share_of_right_tags,  # Of letters.
        "matthews": matthews_of_tags,
    },
    "ranking": {
        "ndcg@20": mean_of_trec_eval("ndcg_cut.20", "ndcg_cut_20"),
        "err@20": expected_reciprocal_rank,
        "mrr": mean_of_trec_eval("recip_rank", "recip_rank"),
        "pair_accuracy": share_of_right_pairs,
        "loss": loss_of_pairs,
    },
}
METRICS["question_answering_simple"] = METRICS["question_answering"]
