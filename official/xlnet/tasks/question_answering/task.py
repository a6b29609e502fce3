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
        encoded = [self.tokenizer.encode_with_offsets(e.context) for e in examples]
        ids = ragged([ids_of_context for ids_of_context, _ in encoded])
        offsets = [np.array(spans).reshape(-1, 2) for _, spans in encoded]
        answers = [_answer_span(*pair) for pair in zip(examples, offsets, strict=True)]
        windows = Windows.of(question, ids, task.max_length, task.window_stride)
        sequences = rows_of(windows.features(question, ids, task.max_length))
        places = (x.numpy() for x in (windows.text_W, windows.start_W, windows.length_W))
        units: list[list[Unit]] = [[] for _ in examples]
        for sequence, index, first, length in zip(sequences, *places, strict=True):
            example = examples[index]
            unit = Unit([sequence], labels={}, weight=example.weight)
            if example.has_label:
                unit.labels = _labels(answers[index], first, length, sequence)
            unit.places["offsets"] = offsets[index][first : first + length]
            unit.places["size"] = sequence["token_ids"].size
            units[index].append(unit)
        for example, units_of_example in zip(examples, units, strict=True):
            if example.has_label and example.answers:
                is_held = any(not unit.labels["is_impossible"] for unit in units_of_example)
                self.counts["answers_in_no_window"] += not is_held
        return units

    def predict(self, example, outputs):
        spans: dict[tuple[int, int], float] = {}
        for output in outputs:
            last = output["size"] - 1
            for score, start, end in legal_spans(output):
                # Positions from the right end of the input become indices into the window.
                start_char = int(output["offsets"][last - start][0])
                end_char = int(output["offsets"][last - end][1])
                span = start_char, end_char
                spans[span] = max(score, spans.get(span, -np.inf))
        ranked = sorted(spans.items(), key=lambda item: (-item[1], item[0]))
        best = []
        for (start_char, end_char), score in ranked:
            if end_char > start_char:
                best.append((start_char, example.context[start_char:end_char], score))
        no_answer = float(min(output["no_answer"] for output in outputs))
        return {"id": example.id, **self._prediction(best, no_answer)}

    def combine(self, predictions):
        """Averages the probabilities of spans, and the log odds that there is no answer.

        A span that is not among the best of a model counts with probability 0.
        """
        total_probability: dict[tuple[int, str], float] = collections.defaultdict(float)
        for prediction in predictions:
            for span in prediction["n_best"]:
                key = span["start"], span["text"]
                total_probability[key] += math.exp(span["log_probability"])
        ranked = sorted(total_probability.items(), key=lambda item: (-item[1], item[0]))
        best = []
        for (start, text), total in ranked:
            best.append((start, text, math.log(total / len(predictions))))
        no_answer = float(np.mean([p["no_answer_score"] for p in predictions]))
        return predictions[0] | self._prediction(best, no_answer)

    def average_tuned_settings(self, members):
        self.config.task.null_threshold = float(np.mean([m.null_threshold for m in members]))

    def _prediction(self, best: Sequence[tuple[int, str, float]], no_answer: float) -> Prediction:
        """The answer of spans (start, text, log probability), best first."""
        task = self.config.task.settings(AnswerConfig)
        n_best = []
        for start, text, score in best[: task.n_best]:
            n_best.append({"text": text, "start": start, "log_probability": round(score, 6)})
        best_start, best_text, _ = best[0] if best else (None, "", 0.0)
        is_null = not best or no_answer > task.null_threshold
        return {
            "answer": "" if is_null else best_text,
            "start": None if is_null else best_start,
            "no_answer_score": round(no_answer, 6),
            "best_span": best_text,
            "n_best": n_best,
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
        # The gain in F1 of each question if it is answered.
        gains = []
        for example, prediction in zip(examples, predictions, strict=True):
            _, f1_if_answered = _scores(prediction["best_span"], example)
            f1_if_not = 0.0 if example.answers else 1.0
            gains.append(f1_if_answered - f1_if_not)
        scores = np.array([prediction["no_answer_score"] for prediction in predictions])
        order = np.argsort(scores, kind="stable")
        num_unanswerable = sum(not example.answers for example in examples)
        totals = num_unanswerable + np.concatenate([[0.0], np.cumsum(np.array(gains)[order])])
        ascending = scores[order]
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
    start_log_A = output["start_log_prob"].astype(np.float64)
    end_log_AE = output["end_log_prob"].astype(np.float64)
    score_AE = start_log_A[:, None] + end_log_AE
    start_A1, end_AE = output["start_position"][:, None], output["end_position"]
    start_AE, end_AE = np.broadcast_arrays(start_A1, end_AE)
    is_legal_AE = score_AE > NO_SPAN
    columns = (x[is_legal_AE].tolist() for x in (score_AE, start_AE, end_AE))
    return list(zip(*columns, strict=True))


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
    expected_answers = []
    for text, _ in example.answers:
        expected_words = normalized(text).split()
        if expected_words:
            expected_answers.append(expected_words)
    if not words or not expected_answers:
        exact = float(not words and not expected_answers)
        return exact, exact
    best_f1 = 0.0
    for expected_words in expected_answers:
        common = collections.Counter(words) & collections.Counter(expected_words)
        f1 = 2 * common.total() / (len(words) + len(expected_words))
        best_f1 = max(best_f1, f1)
    return float(words in expected_answers), best_f1


def normalized(answer: str) -> str:
    """An answer in lower case, without punctuation, articles and repeated spaces.

    Example:
      >>> normalized("The Nile-Delta,  in Egypt.")
      'niledelta in egypt'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())
