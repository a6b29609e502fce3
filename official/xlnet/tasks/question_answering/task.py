"""Extractive question answering (SQuAD): sliding windows, answer spans and the null threshold."""

from __future__ import annotations

import collections
import math
import re
import string
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.errors import require_data
from official.xlnet.tasks.batching import Arrays, Unit
from official.xlnet.tasks.question_answering import AnswerConfig, QuestionExample
from official.xlnet.tasks.question_answering.windows import Windows
from official.xlnet.tasks.task import Prediction, Task, register_task
from official.xlnet.tokenization.graph.ragged import ragged, rows_of

NO_SPAN = -1e29  # Masked spans have scores at or below this.
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NEVER_NULL = 1e30  # Null threshold with which every question is answered.


@register_task("question_answering_simple")
@register_task("question_answering")
class QuestionAnswering(Task):
    """Question answering on SQuAD 1.1 and 2.0.

    A unit is one window of the paragraph with the whole question:

        padding … | window | SEP | question | SEP | CLS

    Positions count from the right end, CLS being 0, so they do not depend on padding.
    """

    metric = "f1"
    metrics = ("exact_match", "f1", "answerable_exact_match", "answerable_f1", "unanswerable_f1")
    typical = tuple(
        QuestionExample(f"{who} {asked}", f"{asked} does {who} live ?", context, answers)
        for who, place in (("Ann", "Paris"), ("Bob", "Rome"), ("Eve", "Ghana"))
        for context in (f"{who} lives in {place} .",)
        for asked, answers in (("Where", ((place, context.index(place)),)), ("Why", ()))
    )

    @classmethod
    def complete_settings(cls, config, examples):
        require_data(
            any(example.answers for example in examples),
            "training data",
            "at least one answerable question",
            "only unanswerable ones",
        )
        if all(example.answers for example in examples):
            config.task.null_threshold = _NEVER_NULL

    def read(self, examples):
        task = self.config.task.settings(AnswerConfig)
        question = self.tokens([e.question for e in examples])[:, : task.query_length]
        longest = int(tf.reduce_max(question.row_lengths()))
        require_data(
            task.max_length - longest >= 4,
            "task.max_length",
            f"room for a question of {longest} tokens and part of its paragraph",
            task.max_length,
        )
        read = [self.tokenizer.encode_with_offsets(e.context) for e in examples]
        ids = ragged([row for row, _ in read])
        windows = Windows.of(question, ids, task.max_length, task.window_stride)
        sequences = rows_of(windows.features(question, ids, task.max_length))
        places = (x.numpy() for x in (windows.text_W, windows.start_W, windows.length_W))
        offsets = [np.array(spans).reshape(-1, 2) for _, spans in read]
        answers = [_answer_span(*pair) for pair in zip(examples, offsets, strict=True)]
        units: list[list[Unit]] = [[] for _ in examples]
        for sequence, number, first, length in zip(sequences, *places, strict=True):
            example, answer = examples[number], answers[number]
            labels = _labels(answer, first, length, sequence) if example.has_label else {}
            own = {
                "offsets": offsets[number][first : first + length],
                "size": sequence["token_ids"].size,
            }
            units[number].append(Unit([sequence], labels, example.weight, own))
        for example, of_example in zip(examples, units, strict=True):
            if example.has_label and example.answers:
                is_held = any(not unit.labels["is_impossible"] for unit in of_example)
                self.counts["answers_in_no_window"] += not is_held
        return units

    def predict(self, example, outputs):
        spans: dict[tuple[int, int], float] = {}
        for output in outputs:
            last = output["size"] - 1
            for score, start, end in legal_spans(output):
                # Positions from the right end of the input become indices into the window.
                place = (
                    int(output["offsets"][last - start][0]),
                    int(output["offsets"][last - end][1]),
                )
                spans[place] = max(score, spans.get(place, -np.inf))
        ranked = sorted(spans.items(), key=lambda item: (-item[1], item[0]))
        best = [(a, example.context[a:b], score) for (a, b), score in ranked if b > a]
        no_answer = float(min(output["no_answer"] for output in outputs))
        return {"id": example.id, **self._prediction(best, no_answer)}

    def combine(self, predictions):
        """Averages the probabilities of spans, and the log odds that there is no answer.

        A span that a model has not among its best counts with probability 0.
        """
        mass: dict[tuple[int, str], float] = collections.defaultdict(float)
        for prediction in predictions:
            for span in prediction["n_best"]:
                mass[span["start"], span["text"]] += math.exp(span["log_probability"])
        ranked = sorted(mass.items(), key=lambda item: (-item[1], item[0]))
        best = [(*span, math.log(total / len(predictions))) for span, total in ranked]
        no_answer = float(np.mean([p["no_answer_score"] for p in predictions]))
        return {**predictions[0], **self._prediction(best, no_answer)}

    def average_tuned_settings(self, members):
        self.config.task.null_threshold = float(np.mean([m.null_threshold for m in members]))

    def _prediction(self, best: Sequence[tuple[int, str, float]], no_answer: float) -> Prediction:
        """The answer of spans (start, text, log probability), best first."""
        task = self.config.task.settings(AnswerConfig)
        start, answer, _ = best[0] if best else (None, "", 0.0)
        is_null = not best or no_answer > task.null_threshold
        return {
            "answer": "" if is_null else answer,
            "start": None if is_null else start,
            "no_answer_score": round(no_answer, 6),
            "best_span": answer,
            "n_best": [
                {"text": text, "start": start, "log_probability": round(score, 6)}
                for start, text, score in best[: task.n_best]
            ],
        }

    def evaluate(self, examples, predictions):
        """Computes the official SQuAD metrics, in percent.

        SQuAD 2.0's if any question is unanswerable, else SQuAD 1.1's.
        """
        pairs = zip(examples, predictions, strict=True)  # Ids are unique only within a file.
        scores = np.array([_scores(prediction["answer"], example) for example, prediction in pairs])
        is_answerable = np.array([bool(example.answers) for example in examples])
        means = {"exact_match": scores[:, 0], "f1": scores[:, 1]}
        if not is_answerable.all():
            means["unanswerable_f1"] = scores[~is_answerable, 1]
            if is_answerable.any():
                means["answerable_exact_match"] = scores[is_answerable, 0]
                means["answerable_f1"] = scores[is_answerable, 1]
        return {name: 100 * float(np.mean(values)) for name, values in means.items()}

    def error_and_probability(self, example, prediction):
        return 1 - _scores(prediction["answer"], example)[1], np.nan

    def tune_settings(self, examples, predictions):
        """Sets `task.null_threshold` to the threshold with the best F1.

        If all questions are answerable, every question is answered.
        """
        task = self.config.task
        if all(example.answers for example in examples):
            task.null_threshold = _NEVER_NULL
            return
        thresholds, f1 = self._curve(examples, predictions)
        task.null_threshold = thresholds[int(np.argmax(f1))]

    def _curve(self, examples, predictions) -> tuple[list[float], list[float]]:
        """Returns candidate null thresholds and the F1 at each of them, in percent.

        Candidates are the midpoints between consecutive `no_answer_score`s, and one beyond each
        end. Questions with a score up to the threshold are answered.
        """
        gain = np.array(
            [
                _scores(p["best_span"], example)[1] - (0.0 if example.answers else 1.0)
                for example, p in zip(examples, predictions, strict=True)
            ]
        )
        score = np.array([p["no_answer_score"] for p in predictions])
        order = np.argsort(score, kind="stable")
        unanswerable = sum(not example.answers for example in examples)
        totals = unanswerable + np.concatenate([[0.0], np.cumsum(gain[order])])
        ascending = score[order]
        middles = (ascending[1:] + ascending[:-1]) / 2
        thresholds = np.concatenate([[ascending[0] - 1], middles, [ascending[-1] + 1]])
        # No threshold separates equal scores.
        is_distinct = np.concatenate([[True], np.diff(ascending) > 0, [True]])
        f1 = 100 * totals[is_distinct] / len(examples)
        return thresholds[is_distinct].tolist(), f1.tolist()

    def draw(self, axes, examples, predictions):
        """Plots F1 over the null threshold."""
        thresholds, f1 = self._curve(examples, predictions)
        axes.step(thresholds, f1, where="mid")
        chosen = self.config.task.settings(AnswerConfig).null_threshold
        if thresholds[0] <= chosen <= thresholds[-1]:
            axes.axvline(chosen, color="gray", linestyle="--")
        axes.set(xlabel="null threshold", ylabel="F1", title="F1 by null threshold")


def legal_spans(output: dict[str, np.ndarray]) -> list[tuple[float, int, int]]:
    """Returns the candidate answer spans of a window.

    Args:
      output: outputs of `QuestionAnsweringHead` for one window, without the unit axis.

    Returns:
      (log probability, start, end) of each span; positions count from the right end.
    """
    start_log_A, end_log_AE = (
        output[name].astype(np.float64) for name in ("start_log_prob", "end_log_prob")
    )
    score_AE = start_log_A[:, None] + end_log_AE
    start_AE, end_AE = np.broadcast_arrays(
        output["start_position"][:, None], output["end_position"]
    )
    arrays = (x[score_AE > NO_SPAN].tolist() for x in (score_AE, start_AE, end_AE))
    return list(zip(*arrays, strict=True))


def _answer_span(example: QuestionExample, offsets_K2: np.ndarray) -> tuple[int, int] | None:
    """Returns the first and last token of the paragraph that overlap the first answer, or None."""
    if not example.has_label or not example.answers:
        return None
    text, start = example.answers[0]
    is_answer_K = (offsets_K2[:, 0] < start + len(text)) & (offsets_K2[:, 1] > start)
    tokens = np.flatnonzero(is_answer_K)
    return (tokens[0], tokens[-1]) if tokens.size else None


def _labels(answer: tuple[int, int] | None, first: int, length: int, sequence: Arrays) -> Arrays:
    """Labels of a window; positions count from the right end of the input.

    Args:
      answer: first and last token of the answer in the paragraph.
      first: first token of the window there.
      length: number of tokens of the paragraph in the window.
      sequence: the window's arrays.
    """
    is_held = answer is not None and first <= answer[0] <= answer[1] < first + length
    last = first + sequence["token_ids"].size - 1
    start, end = (last - token for token in answer) if is_held and answer else (0, 0)
    return {
        "start": np.array(start, np.int32),
        "end": np.array(end, np.int32),
        "is_impossible": np.array(not is_held, np.float32),
    }


def _scores(answer: str, example: QuestionExample) -> tuple[float, float]:
    """Exact match and F1 of the words of an answer, in [0, 1]: as SQuAD's `evaluate-v2.0.py`.

    Args:
      answer: the answer; empty if there is none.
      example: the question; the best of its expected answers counts.
    """
    words = normalized(answer).split()
    golds = [normalized(text).split() for text, _ in example.answers]
    golds = [*filter(None, golds)] or [[]]
    exact = max(float(words == gold) for gold in golds)
    if not words or golds == [[]]:
        return exact, exact
    common = [(collections.Counter(words) & collections.Counter(gold)).total() for gold in golds]
    f1 = [2 * n / (len(words) + len(gold)) for n, gold in zip(common, golds, strict=True)]
    return exact, max(f1)


def normalized(answer: str) -> str:
    """An answer in lower case, without punctuation, articles and repeated spaces.

    Example:
      >>> normalized("The Nile-Delta,  in Egypt.")
      'niledelta in egypt'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())
