"""Windows, labels, the beam, offsets, and the official figures of question answering."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf
from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0

from official.xlnet.modeling.heads import create_head
from official.xlnet.tasks.question_answering import QuestionExample
from official.xlnet.tasks.question_answering.task import QuestionAnswering, legal_spans
from official.xlnet.tasks.question_answering.windows import Windows
from official.xlnet.tokenization.graph.ragged import ragged
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import randomize

CONTEXT = (
    "Café owners in Zürich met people from Zürich 😀 who could make 1,000 naïve words; "
    "people in Zürich said the café was first, and the people of Zürich said it was not."
)


def find(text, occurrence=0, context=CONTEXT):
    start = [match.start() for match in re.finditer(re.escape(text), context)][occurrence]
    return QuestionExample("q", "who could make words ?", context, ((text, start),))


def qa_task(vocab_file, **settings):
    tokenizer = Tokenizer(vocab_file)
    settings = {"max_length": 31, "window_stride": 7, "query_length": 11, **settings}
    config = task_config(tokenizer.vocab_size, name="question_answering", **settings)
    return QuestionAnswering(config, tokenizer)


@pytest.mark.parametrize("left", ["", " ", "\u00a0", "\ufeff", "\u200b", "\u3000 "])
@pytest.mark.parametrize("right", ["", "\n", "\u00a0", "\ufeff"])
def test_what_tokenization_leaves_out_belongs_to_no_label(left, right, vocab_file):
    """An answer with it has the labels of the answer without."""
    task = qa_task(vocab_file, max_length=61)
    context = f"the café was{left or ' '}first people{right or ' '}of the café"
    plain = find("first people", context=context)
    answer = (f"{left}first people{right}", context.index("first") - len(left))
    marked = dataclasses.replace(plain, answers=(answer,))
    labels, of_marked = ([unit.labels for unit in units] for units in task.units([plain, marked]))
    assert of_marked == labels
    assert not any(label["is_impossible"] for label in labels)


def test_answers_that_no_window_holds_are_counted(vocab_file):
    task = qa_task(vocab_file)
    long = QuestionExample("q", "who?", CONTEXT, ((CONTEXT[:150], 0),))
    other = [dataclasses.replace(long, **x) for x in ({"answers": ()}, {"has_label": False})]
    assert len(list(task.units([long, find("Zürich"), *other, long]))) == 5
    assert task.counts["answers_in_no_window"] == 2


def test_windows_by_hand():
    question = ragged([[91], [91], [91, 92]])
    ids = ragged([range(11, 21), range(31, 35), range(41, 51)])
    found = Windows.of(question, ids, length=9, stride=3)
    spans = np.stack([found.text_W, found.start_W, found.length_W], axis=1).tolist()
    expected = [[0, 0, 5], [0, 3, 5], [0, 6, 4], [1, 0, 4], [2, 0, 4], [2, 3, 4], [2, 6, 4]]
    assert spans == expected
    wide = Windows.of(question, ids, length=8, stride=9)
    assert wide.start_W.numpy().tolist() == [0, 4, 8, 0, 0, 3, 6, 9]
    eight = ragged([range(11, 19)])
    features = Windows.of(question[:1], eight, 9, 3).features(question[:1], eight, 9)
    no, yes = [False], [True]
    assert {
        name: features[name].to_list() for name in ("token_ids", "may_start", "can_answer")
    } == {
        "token_ids": [[*range(11, 16), 4, 91, 4, 3], [*range(14, 19), 4, 91, 4, 3]],
        # Token 3 is last but one in the first window, first in the second.
        "may_start": [yes * 4 + no * 5, no + yes * 4 + no * 4],
        "can_answer": [yes * 5 + no * 4] * 2,
    }


@pytest.mark.parametrize(
    ("text", "occurrence"),
    [("Zürich", 0), ("Zürich", 1), ("Zürich", 3), ("Café", 0), ("café", 0), ("😀", 0)]
    + [("naïve words", 0), ("people from Zürich 😀 who", 0), ("people", 2), ("1,000", 0)],
)
def test_windows_hold_the_question_and_the_labelled_span_gives_the_answer_back(
    vocab_file, text, occurrence
):
    task, example = qa_task(vocab_file), find(text, occurrence)
    question = task.tokenizer.encode(example.question)[:11]
    (units,) = task.units([example])
    assert len(units) > 2 and not all(unit.labels["is_impossible"] for unit in units)
    outputs = []
    for unit in units:
        (sequence,) = unit.sequences
        size = int(sequence["can_answer"].sum())
        assert unit.length <= 31 and sequence["can_answer"][:size].all()
        assert sequence["token_ids"][size:].tolist() == [4, *question, 4, 3]
        segments = [0] * (size + 1) + [1] * (len(question) + 1) + [2]
        assert sequence["segment_ids"].tolist() == segments
        has = not unit.labels["is_impossible"]
        places = [unit.labels[name] if has else unit.length - 1 for name in ("start", "end")]
        outputs.append(
            {
                "start_log_prob": np.array([-1.0 if has else -9.0]),
                "start_position": np.array(places[:1]),
                "end_log_prob": np.array([[-1.0 if has else -9.0]]),
                "end_position": np.array([places[1:]]),
                "no_answer": np.float32(-3.0),
            }
            | unit.places
        )
    prediction = task.predict(example, outputs)
    assert (prediction["answer"], prediction["start"]) == example.answers[0]


def log_softmax(x):
    return x - np.log(np.sum(np.exp(x - x.max()))) - x.max()


def outputs_of(units, tokens, **settings):
    """A random head, hidden states [U, 1, T, D], where answers may be and start, and outputs."""
    head = create_head(task_config(**settings))
    head.build([None, None, None, 26])
    randomize(head.variables, scale=0.9)
    rng = np.random.default_rng(5)
    content = rng.normal(size=(units, 1, tokens, 26)).astype(np.float32)
    place = np.arange(tokens)
    can_answer = (place > np.arange(units)[:, None, None]) & (place < 9)
    may_start = can_answer & (rng.random(can_answer.shape) < 0.8)
    outputs = head(tf.constant(content), {"can_answer": can_answer, "may_start": may_start})
    return head, content, can_answer, may_start, outputs


def test_the_beam_finds_what_brute_force_finds():
    units, tokens, longest = 3, 13, 4
    settings = {"start_n_top": tokens, "end_n_top": tokens, "answer_length": longest}
    head, content, can_answer, may_start, outputs = outputs_of(
        units, tokens, name="question_answering", **settings
    )
    for u in range(units):
        hidden = content[u, 0]
        is_open = [*np.flatnonzero(can_answer[u, 0]), tokens - 1]
        start_log = np.full(tokens, -np.inf)
        start_log[is_open] = log_softmax(head.start_logits(hidden).numpy()[is_open, 0])
        spans = []
        for i in np.flatnonzero(may_start[u, 0]):
            both = np.concatenate([hidden, np.repeat(hidden[i : i + 1], tokens, axis=0)], axis=1)
            normed = head.end_norm(head.end_hidden(both[None, None]))
            logits = head.end_logits(normed).numpy()[0, 0]
            end_log = np.full(tokens, -np.inf)
            end_log[is_open] = log_softmax(logits[is_open, 0])
            spans += [
                (start_log[i] + end_log[j], tokens - 1 - i, tokens - 1 - j)
                for j in range(i, min(i + longest, tokens))
                if can_answer[u, 0, j]
            ]
        found = sorted(legal_spans({name: x[u].numpy() for name, x in outputs.items()}))[::-1]
        spans = sorted(spans)[::-1]
        assert [span[1:] for span in found] == [span[1:] for span in spans]
        np.testing.assert_allclose([s[0] for s in found], [s[0] for s in spans], rtol=1e-4)


def test_simple_spans_are_those_of_brute_force():
    """The best starts by their best end, and all ends: HF's pipeline has all pairs."""
    units, tokens, longest = 3, 13, 4
    settings = {"start_n_top": 5, "end_n_top": tokens, "answer_length": longest}
    head, content, can_answer, may_start, outputs = outputs_of(
        units, tokens, name="question_answering_simple", **settings
    )
    for u in range(units):
        logs = np.full((tokens, 2), -np.inf)
        is_open = [*np.flatnonzero(can_answer[u, 0]), tokens - 1]
        logits = content[u, 0] @ head.span_logits.kernel.numpy() + head.span_logits.bias.numpy()
        logs[is_open] = np.stack([log_softmax(x) for x in logits[is_open].T], axis=1)
        spans = [
            (logs[i, 0] + logs[j, 1], tokens - 1 - i, tokens - 1 - j)
            for i in np.flatnonzero(may_start[u, 0])
            for j in range(i, min(i + longest, tokens))
            if can_answer[u, 0, j]
        ]
        found = sorted(legal_spans({name: x[u].numpy() for name, x in outputs.items()}))[::-1]
        spans = sorted(spans)[::-1]
        assert len(found) > 9 and [s[1:] for s in found[:5]] == [s[1:] for s in spans[:5]]
        np.testing.assert_allclose([s[0] for s in found[:5]], [s[0] for s in spans[:5]], rtol=1e-4)
        no_answer = logs[-1].sum() - spans[0][0]
        np.testing.assert_allclose(outputs["no_answer"][u], no_answer, rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_figures_are_the_official_ones_and_the_threshold_is_the_best(vocab_file, seed):
    task, rng = qa_task(vocab_file), np.random.default_rng(seed)
    words = ["the", "Owners", "of", "a", "café", "met.", "in", "Zürich", "(an)"]
    examples, predictions = [], []
    for n in range(37):
        answer = " ".join(rng.choice(words, 3))
        answers = ((answer, 0),) if rng.random() < 0.6 else ()
        examples.append(QuestionExample(str(n), "?", answer + " ...", answers))
        said = answer if rng.random() < 0.5 else " ".join(rng.choice(words, 2))
        score = float(rng.normal() - 2 * bool(answers))
        predictions.append({"id": str(n), "best_span": said, "no_answer_score": score})

    def f1(threshold):
        answered = [
            p | {"answer": "" if p["no_answer_score"] > threshold else p["best_span"]}
            for p in predictions
        ]
        return task.evaluate(examples, answered)["f1"]

    task.tune_settings(examples, predictions)
    chosen = f1(task.config.task.null_threshold)
    assert chosen >= max(map(f1, np.linspace(-5, 5, 60))) - 1e-9
    answers = {e.id: [{"text": t, "answer_start": s} for t, s in e.answers] for e in examples}
    qas = [{"id": name, "answers": each} for name, each in answers.items()]
    official = squad_evaluate_v2_0.evaluate(
        [{"paragraphs": [{"qas": qas}]}],
        {p["id"]: p["best_span"] for p in predictions},
        {p["id"]: p["no_answer_score"] for p in predictions},
    )
    assert chosen == pytest.approx(official["final_f1"])
    answered = [p | {"answer": p["best_span"]} for p in predictions]
    found = task.evaluate(examples, answered)
    again = [dataclasses.replace(example, id="of several files") for example in examples]
    assert task.evaluate(again, [p | {"id": "of several files"} for p in answered]) == found
    names = {"exact_match": "exact", "f1": "f1", "unanswerable_f1": "NoAns_f1"}
    names |= {"answerable_exact_match": "HasAns_exact", "answerable_f1": "HasAns_f1"}
    expected = squad_evaluate_v2_0.evaluate(
        [{"paragraphs": [{"qas": qas}]}], {p["id"]: p["best_span"] for p in predictions}
    )
    assert found == pytest.approx({name: expected[theirs] for name, theirs in names.items()})
    alone = [pair for pair in zip(examples, answered, strict=True) if pair[0].answers]
    found = task.evaluate(*zip(*alone, strict=True))
    of_alone = [qa for qa in qas if qa["answers"]]
    expected = squad_evaluate_v1_1.evaluate(
        [{"paragraphs": [{"qas": of_alone}]}], {p["id"]: p["best_span"] for p in predictions}
    )
    assert found["exact_match"] == pytest.approx(100 * expected["exact_match"])
    assert found["f1"] == pytest.approx(100 * expected["final_f1"])
