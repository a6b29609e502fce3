"""Windows, labels, the beam, offsets, and the official figures of question answering."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from official.nlp.tools import squad_evaluate_v2_0

from official.xlnet.modeling.heads import create_head
from official.xlnet.tasks.question_answering.examples import QuestionExample
from official.xlnet.tasks.question_answering.task import (
    QuestionAnswering,
    legal_spans,
)
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
    start = -1
    for _ in range(occurrence + 1):
        start = context.index(text, start + 1)
    return QuestionExample("q", "who could make words ?", context, ((text, start),))


@pytest.fixture(scope="module")
def tokenizer(vocab_file):
    return Tokenizer(vocab_file)


def qa_task(tokenizer, **task):
    settings = {"max_length": 31, "window_stride": 7, "query_length": 11, **task}
    config = task_config(tokenizer.vocab_size, name="question_answering", **settings)
    return QuestionAnswering(config, tokenizer)


@pytest.mark.parametrize("left", ["", " ", "\u00a0", "\ufeff", "\u200b", "\u3000 "])
@pytest.mark.parametrize("right", ["", "\n", "\u00a0", "\ufeff"])
def test_what_tokenization_leaves_out_belongs_to_no_label(left, right, tokenizer):
    """An answer with it has the labels of the answer without."""
    task = qa_task(tokenizer, max_length=61)
    context = f"the café was{left or ' '}first people{right or ' '}of the café"
    start = context.index("first")
    plain = find("first people", context=context)
    text = f"{left}first people{right}"
    marked = dataclasses.replace(plain, answers=((text, start - len(left)),))
    labels, of_marked = ([unit.labels for unit in units] for units in task.units([plain, marked]))
    assert of_marked == labels
    assert not any(label["is_impossible"] for label in labels)
    assert task.counts["answers_in_no_window"] == 0


def test_answers_that_no_window_holds_are_counted(tokenizer):
    task = qa_task(tokenizer)
    long = QuestionExample("q", "who?", CONTEXT, ((CONTEXT[:150], 0),))
    unanswerable = dataclasses.replace(long, answers=())
    unlabelled = dataclasses.replace(long, has_label=False)
    assert len(list(task.units([long, find("Zürich"), unanswerable, unlabelled, long]))) == 5
    assert task.counts["answers_in_no_window"] == 2


def test_windows_by_hand():
    question = ragged([[91], [91], [91, 92]])
    ids = ragged([range(11, 21), range(31, 35), range(41, 51)])
    windows = Windows.of(question, ids, length=9, stride=3)
    spans = zip(
        windows.text_W.numpy(), windows.start_W.numpy(), windows.length_W.numpy(), strict=True
    )
    assert [*spans] == [
        *[(0, 0, 5), (0, 3, 5), (0, 6, 4), (1, 0, 4)],
        *[(2, 0, 4), (2, 3, 4), (2, 6, 4)],
    ]
    wide = Windows.of(question, ids, length=8, stride=9)
    assert wide.start_W.numpy().tolist() == [0, 4, 8, 0, 0, 3, 6, 9]
    eight = ragged([range(11, 19)])
    features = Windows.of(question[:1], eight, 9, 3).features(question[:1], eight, 9)
    assert features["token_ids"].to_list() == [
        [*range(11, 16), 4, 91, 4, 3],
        [*range(14, 19), 4, 91, 4, 3],
    ]
    # Token 3 is last but one in the first window, first in the second.
    no, yes = [False], [True]
    assert features["may_start"].to_list() == [yes * 4 + no * 5, no + yes * 4 + no * 4]
    assert features["can_answer"].to_list() == [yes * 5 + no * 4] * 2


@pytest.mark.parametrize(
    ("text", "occurrence"),
    [("Zürich", 0), ("Zürich", 1), ("Zürich", 3), ("Café", 0), ("café", 0), ("😀", 0)]
    + [("naïve words", 0), ("people from Zürich 😀 who", 0), ("people", 2), ("1,000", 0)],
)
def test_the_labelled_span_gives_the_answer_back(tokenizer, text, occurrence):
    task = qa_task(tokenizer)
    example = find(text, occurrence)
    (units,) = task.units([example])
    assert len(units) > 2
    holding = [unit for unit in units if not unit.labels["is_impossible"]]
    assert holding
    outputs = []
    for unit in units:
        has = not unit.labels["is_impossible"]
        start, end = unit.labels["start"], unit.labels["end"]
        outputs.append(
            {
                "start_log_prob": np.array([-1.0 if has else -9.0]),
                "start_position": np.array([start if has else unit.length - 1]),
                "end_log_prob": np.array([[-1.0 if has else -9.0]]),
                "end_position": np.array([[end if has else unit.length - 1]]),
                "no_answer": np.float32(-3.0),
            }
            | unit.places
        )
    prediction = task.predict(example, outputs)
    assert prediction["answer"] == text
    assert prediction["start"] == example.answers[0][1]


def test_units_hold_the_window_the_question_and_the_special_tokens(tokenizer):
    task = qa_task(tokenizer)
    example = find("Zürich", 1)
    question = tokenizer.encode(example.question)[:11]
    (units,) = task.units([example])
    for unit in units:
        (sequence,) = unit.sequences
        ids, can_answer = sequence["token_ids"].tolist(), sequence["can_answer"]
        assert unit.length <= 31
        window = int(can_answer.sum())
        assert can_answer[:window].all()
        assert ids[window:] == [4, *question, 4, 3]
        segments = [0] * (window + 1) + [1] * (len(question) + 1) + [2]
        assert sequence["segment_ids"].tolist() == segments


def test_the_beam_finds_what_brute_force_finds():
    units, tokens, width, longest = 3, 13, 26, 4
    config = task_config(
        name="question_answering", start_n_top=tokens, end_n_top=tokens, answer_length=longest
    )
    head = create_head(config)
    head.build([None, None, None, width])
    randomize(head.variables, scale=0.9)
    rng = np.random.default_rng(5)
    content = rng.normal(size=(units, 1, tokens, width)).astype(np.float32)
    can_answer = np.zeros((units, 1, tokens), bool)
    for u in range(units):
        can_answer[u, 0, u + 1 : 9] = True
    may_start = can_answer & (rng.random(can_answer.shape) < 0.8)
    outputs = head(tf.constant(content), {"can_answer": can_answer, "may_start": may_start})

    def log_softmax(x):
        return x - np.log(np.sum(np.exp(x - x.max()))) - x.max()

    def value(layer, x):
        return x @ layer.kernel.numpy() + (layer.bias.numpy() if layer.use_bias else 0)

    for u in range(units):
        hidden = content[u, 0].astype(np.float64)
        is_open = [*np.flatnonzero(can_answer[u, 0]), tokens - 1]
        start_log = dict(
            zip(is_open, log_softmax(value(head.start_logits, hidden[is_open])[:, 0]), strict=True)
        )
        spans = []
        for i in np.flatnonzero(may_start[u, 0]):
            both = np.concatenate([hidden, np.repeat(hidden[i : i + 1], tokens, axis=0)], axis=1)
            x = np.tanh(value(head.end_hidden, both))
            x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-12)
            x = x * head.end_norm.gamma.numpy() + head.end_norm.beta.numpy()
            end_log = dict(
                zip(is_open, log_softmax(value(head.end_logits, x)[is_open, 0]), strict=True)
            )
            for j in range(i, min(i + longest, tokens)):
                if can_answer[u, 0, j]:
                    spans.append((start_log[i] + end_log[j], tokens - 1 - i, tokens - 1 - j))
        of_unit = {name: x[u].numpy() for name, x in outputs.items()}
        found = sorted(legal_spans(of_unit), reverse=True)
        spans.sort(reverse=True)
        assert [span[1:] for span in found] == [span[1:] for span in spans]
        np.testing.assert_allclose([s[0] for s in found], [s[0] for s in spans], rtol=1e-4)


def examples_and_predictions(seed, number=37):
    rng = np.random.default_rng(seed)
    words = ["the", "owners", "of", "a", "café", "met", "in", "Zürich"]
    examples, predictions = [], []
    for n in range(number):
        answer = " ".join(rng.choice(words, 3))
        answers = ((answer, 0),) if rng.random() < 0.6 else ()
        examples.append(QuestionExample(str(n), "?", answer + " ...", answers))
        said = answer if rng.random() < 0.5 else " ".join(rng.choice(words, 2))
        score = float(rng.normal() - 2 * bool(answers))
        predictions.append({"id": str(n), "best_span": said, "no_answer_score": score})
    return examples, predictions


def answered(predictions, threshold):
    return [
        p | {"answer": "" if p["no_answer_score"] > threshold else p["best_span"]}
        for p in predictions
    ]


def test_figures_are_the_official_ones_and_the_threshold_is_the_best(tokenizer):
    task = qa_task(tokenizer)
    for seed in range(3):
        examples, predictions = examples_and_predictions(seed)
        task.finish(examples, predictions)
        chosen = task.evaluate(examples, answered(predictions, task.config.task.null_threshold))
        tried = [
            task.evaluate(examples, answered(predictions, threshold))["f1"]
            for threshold in np.linspace(-5, 5, 60)
        ]
        assert chosen["f1"] >= max(tried) - 1e-9
        dataset = [
            {
                "paragraphs": [
                    {
                        "qas": [
                            {
                                "id": e.id,
                                "answers": [{"text": t, "answer_start": s} for t, s in e.answers],
                            }
                            for e in examples
                        ]
                    }
                ]
            }
        ]
        official = squad_evaluate_v2_0.evaluate(
            dataset,
            {p["id"]: p["best_span"] for p in predictions},
            {p["id"]: p["no_answer_score"] for p in predictions},
        )
        assert chosen["f1"] == pytest.approx(official["final_f1"])
