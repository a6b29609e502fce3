"""Signatures of every task against offline prediction and the Python tokenizer."""

import functools
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.api.export import export
from official.xlnet.checkpoints.saving import save_pretrained
from official.xlnet.data.examples import TextExample
from official.xlnet.inference.scoring import score
from official.xlnet.inference.task_prediction import predict_examples
from official.xlnet.modeling.kernels.stored_matrix import StoredMatrix
from official.xlnet.serving import export as export_module
from official.xlnet.serving.client.prediction import row_of
from official.xlnet.serving.factory import create_service, task_service
from official.xlnet.serving.services.base import ExportSettings
from official.xlnet.serving.services.pretrained import EncoderService, LanguageModelService
from official.xlnet.tasks.batching import collate
from official.xlnet.testing.tasks import require_same
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.compare import assert_refused
from tests.helpers.package.of_projects import rows
from tests.helpers.served_models import (
    as_example,
    examples_of,
    inputs_of,
    mixed_texts,
    random_task,
    tokenizers,
)
from tests.helpers.small_language_model import random_model
from tests.helpers.tiny import tiny_encoder

slow = pytest.mark.slow
LENGTHS = {"classification": (11, 23), "question_answering": (11, 23)}


@pytest.fixture(scope="module")
def tokenizer():
    return tokenizers()[0]


@pytest.fixture(scope="module")
def graph_tokenizer():
    return tokenizers()[1]


@functools.cache
def served(name, settings=(), num_texts=1, number=19, weights="float32"):
    """(service, outputs for texts, examples, predictions of Keras) of a kind of task."""
    model, task = random_task(name, **dict(settings))
    examples = examples_of("letters" if "label_unit" in dict(settings) else name, number)
    inputs = inputs_of(examples)
    columns = ("text",)
    if num_texts > 1:
        columns = tuple(f"text{i}" for i in range(num_texts))
        texts = [mixed_texts(number, seed=i)[:: (-1) ** i] for i in range(num_texts)]
        examples = [TextExample(str(n), row) for n, row in enumerate(zip(*texts, strict=True))]
        inputs = dict(zip(columns, texts, strict=True))
    serving = ExportSettings(
        LENGTHS.get(name, (23,)), max_characters=5000, text_columns=columns, weights=weights
    )
    service = task_service(model, tokenizers()[1], serving)
    outputs = service.serve_texts(**{n: tf.constant(x) for n, x in inputs.items()})
    outputs = {n: x.numpy() for n, x in outputs.items()}
    return service, outputs, examples, list(predict_examples(model, task, examples))


WINDOWS = {"long_texts": "windows", "max_windows": 3, "window_stride": 7}
MEMORY = {"long_texts": "memory", "max_windows": 3, "truncation_side": "left"}
RANKING = {"query_length": 7}
LEFT = (("truncation_side", "left"),)


@pytest.mark.parametrize(
    ("name", "settings", "num_texts"),
    [
        ("classification", {}, 1),
        pytest.param("multiple_choice", {"truncation_side": "left"}, 1, marks=slow),
        pytest.param(
            *("ranking", {"scoring": "summary", "truncation_side": "left", **RANKING}, 1),
            marks=slow,
        ),
        ("token_classification", {}, 1),
        *(pytest.param(*row, marks=slow) for row in rows("SERVED")),
        pytest.param("classification", {**WINDOWS, "truncation_side": "left"}, 1, marks=slow),
        pytest.param("classification", MEMORY, 1, marks=slow),
        # From four texts on, the segment of padding lies between theirs and that of CLS.
        pytest.param("classification", {**WINDOWS, "max_windows": 2}, 2, marks=slow),
        pytest.param("classification", {}, 4, marks=slow),
        pytest.param("classification", MEMORY, 5, marks=slow),
        pytest.param("classification", {"both_orders": True}, 2, marks=slow),
    ],
    ids=str,
)
def test_served_texts_equal_keras(name, settings, num_texts):
    if settings.get("both_orders"):
        settings = {**settings, "text_columns": ("text0", "text1")}
    _, outputs, _, expected = served(name, tuple(settings.items()), num_texts)
    for row, prediction in enumerate(expected):
        require_same(row_of(outputs, row), prediction, name)


@slow
def test_memory_in_few_bytes():
    _, outputs, _, expected = served("classification", tuple(MEMORY.items()), weights="bfloat16")
    for row, prediction in enumerate(expected):
        close = pytest.approx(prediction["probabilities"], abs=0.03)
        assert row_of(outputs, row)["probabilities"] == close


@slow
def test_both_orders_give_the_mean_of_each_by_itself():
    """W · (summary(A | B) + summary(B | A)) / 2 + b, whichever text comes first."""
    columns = ("text0", "text1")
    settings = {"both_orders": True, "text_columns": columns}
    service, outputs, examples, _ = served("classification", tuple(settings.items()), 2)
    texts = [tf.constant(column) for column in zip(*(e.texts for e in examples), strict=True)]
    mirrored = service.serve_texts(**dict(zip(columns, texts[::-1], strict=True)))
    np.testing.assert_allclose(outputs["logits"], mirrored["logits"], atol=1e-5)
    model, task = random_task("classification", **settings)
    [units] = task.units([examples[12]])
    batch = collate(units[:1], 23, 1)
    alone = [
        model({name: tf.constant(x[:, [s]]) for name, x in batch.items() if x.ndim == 3})["logits"]
        for s in (0, 1)
    ]
    np.testing.assert_allclose(outputs["logits"][12], np.mean(alone, axis=0)[0], atol=1e-5)


@pytest.mark.parametrize(
    "name",
    ["question_answering", pytest.param("question_answering_simple", marks=pytest.mark.slow)],
)
def test_answers(name):
    settings = {"query_length": 5, "window_stride": 5, "answer_length": 7}
    _, outputs, examples, expected = served(name, tuple(settings.items()), number=31)
    for row, (example, prediction) in enumerate(zip(examples, expected, strict=True)):
        require_same(row_of(outputs, row), prediction, name)
        assert outputs["null_score"][row] == pytest.approx(prediction["no_answer_score"], abs=1e-5)
        for best in prediction["n_best"][:1]:
            assert outputs["score"][row] == pytest.approx(best["log_probability"], abs=1e-5)
        start, end = outputs["start"][row], outputs["end"][row]
        if prediction["answer"]:
            assert example.context[start:end] == prediction["answer"]
            assert start == prediction["start"]
        else:
            assert start == end == -1


@pytest.mark.parametrize(
    ("name", "settings"),
    [("classification", ()), pytest.param("multiple_choice", LEFT, marks=slow)],
)
def test_examples_signature(name, settings):
    service, outputs, examples, _ = served(name, settings)
    inputs = inputs_of(examples)
    rows = [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)]
    serialized = tf.constant([as_example(row) for row in rows])
    found = service.signatures()["examples"](examples=serialized)
    np.testing.assert_allclose(found["probabilities"], outputs["probabilities"], atol=1e-6)


def test_token_ids_signature(tokenizer):
    service, outputs, examples, _ = served("classification", (), 1)
    ids = [tokenizer.encode(example.texts[0])[:21] for example in examples]
    longest = max(map(len, ids)) + 2
    token_ids = [[7] * (longest - 2 - len(row)) + row + [4, 3] for row in ids]
    segments = [[4] * (longest - 2 - len(row)) + [0] * len(row) + [0, 2] for row in ids]
    found = service.serve_tokens(
        token_ids=tf.constant(token_ids), segment_ids=tf.constant(segments)
    )
    np.testing.assert_allclose(found["probabilities"], outputs["probabilities"], atol=1e-6)


WRONG_TOKENS = [
    ([[9, 4, 3]], [[0, 0]], "expected one shape"),
    ([[9] * 24], [[0] * 24], "token_ids: expected up to 23 tokens, got 24"),
    ([[211, 4, 3]], [[0, 0, 2]], "token_ids: expected ids from 0 to 210, got 211"),
    ([[9, -7, 3]], [[0, 0, 2]], "token_ids: expected ids from 0 to 210, got -7"),
    ([[9, 4, 3]], [[0, 0, 3]], "segment_ids: expected 0 to 2, or 4"),
    ([[9, 4, 3]], [[0, 2, 4]], "padding .4. on the left"),
]


def test_wrong_tokens():
    service = served("classification", (), 1)[0]
    function = tf.function(service.serve_tokens, autograph=False)
    serve = function.get_concrete_function(**service.token_specs())
    for token_ids, segment_ids, message in WRONG_TOKENS:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            serve(token_ids=tf.constant(token_ids), segment_ids=tf.constant(segment_ids))


def test_wrong_texts():
    service = served("classification", (), 1)[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="up to 5000 characters, got 5001"):
        service.serve_texts(text=tf.constant(["the", "é" * 5001]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="text"):
        service.texts_of(tf.constant([tf.train.Example().SerializeToString()]))


@slow
def test_wrong_texts_of_choices():
    service = served("multiple_choice", LEFT, 1)[0]
    texts = {"passage": tf.constant(["a", "b"]), "question": tf.constant(["a"])}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"equal numbers of rows, got 1, 2, 1"):
        service.serve_texts(choices=tf.constant([["a", "b"]]), **texts)
    texts["passage"] = tf.constant(["a"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected 2 to 4 in a row, got 5"):
        service.serve_texts(choices=tf.constant([["a"] * 5]), **texts)


def test_embeddings(graph_tokenizer):
    encoder = tiny_encoder(vocab_size=211)
    service = EncoderService(encoder, graph_tokenizer, ExportSettings((11, 23)))
    texts = mixed_texts(13)
    outputs = service.serve_texts(text=tf.constant(texts))
    packed = graph_tokenizer.pack([graph_tokenizer(tf.constant(texts))], 23)
    expected = encoder(packed)["content"].numpy()
    real = ~packed["is_padding"].numpy()
    for row in range(len(texts)):
        number = int(outputs["num_tokens"][row])
        assert number == real[row].sum()
        found = outputs["embeddings"][row].numpy()
        np.testing.assert_allclose(found[-number:], expected[row, -number:], atol=1e-5)
        assert not found[:-number].any()
        mean = expected[row, -number:].mean(axis=0)
        np.testing.assert_allclose(outputs["mean"][row], mean, atol=1e-5)
        np.testing.assert_allclose(outputs["cls"][row], expected[row, -1], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["permutation", "causal"])
def test_language_model(tokenizer, graph_tokenizer, kind):
    # A causal model's memory holds what the service reads in one window.
    model = random_model(vocab_size=211, clamp_len=9, mem_len=23, kind=kind)
    pieces = [tokenizer.id_to_piece(i) for i in range(211)]
    service = LanguageModelService(model, pieces, graph_tokenizer, ExportSettings((23,)))
    texts = [text for text in mixed_texts(17) if 0 < len(tokenizer.encode(text)) <= 23]
    outputs = service.serve_texts(text=tf.constant([*texts, "", "of " * 40]))
    for row, expected in enumerate(score(model, texts, tokenizer=tokenizer)):
        number = len(expected.pieces)
        assert float(outputs["log_likelihood"][row]) == pytest.approx(expected.total, abs=2e-4)
        found = outputs["log_likelihoods"][row].numpy()
        np.testing.assert_allclose(found[-number:], expected.log_likelihoods, atol=1e-5)
        assert [p.decode() for p in outputs["pieces"][row].numpy()[-number:]] == expected.pieces
    assert outputs["num_tokens"].numpy()[-2:].tolist() == [0, 23]
    assert outputs["is_truncated"].numpy().tolist() == [False] * (len(texts) + 1) + [True]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["permutation", "causal"])
def test_language_model_reads_one_window_of_training(tmp_path, vocab_file, kind):
    vocab_size = Tokenizer(vocab_file).vocab_size
    model = random_model(vocab_size=vocab_size, seq_len=23, reuse_len=7, mem_len=3, kind=kind)
    save_pretrained(model, str(tmp_path), vocab_file)
    outputs = create_service(str(tmp_path), "lm").serve_texts(text=tf.constant(["the " * 40]))
    length = {"permutation": 23, "causal": 7}[kind]
    assert outputs["num_tokens"].numpy().tolist() == [length]
    [expected] = score(str(tmp_path), ["the " * 40])
    first = expected.log_likelihoods[:length]
    np.testing.assert_allclose(outputs["log_likelihoods"][0][-length:], first, atol=1e-5)


@pytest.mark.parametrize(
    ("storage", "error"), [("float32", 0), ("float16", 5e-4), ("bfloat16", 4e-3), ("int8", 8e-3)]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_stored_matrix(storage, error, axis):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((13, 7)).astype(np.float32) * rng.uniform(0.1, 9, (13, 1))
    stored = StoredMatrix(matrix.astype(np.float32), storage, axis)
    x, y = rng.standard_normal((5, 13)), rng.standard_normal((5, 7))
    x, y = x.astype(np.float32), y.astype(np.float32)
    largest = np.abs(matrix).max()
    found = [
        (stored.multiply(x), x @ matrix, 30 * error * largest),
        (stored.multiply(y, transpose=True), y @ matrix.T, 30 * error * largest),
        (stored.rows(tf.constant([[3, 0]])), matrix[None, [3, 0]], error * largest),
    ]
    for got, expected, allowed in found:
        np.testing.assert_allclose(got, expected, atol=allowed + 1e-5 * largest, rtol=1e-5)


def test_tokens_begin_after_characters_that_normalization_removes(tokenizer, graph_tokenizer):
    """Accents alone (U+00B4), zero-width characters, combining marks after a space, `▁`."""
    kinds = {"Zs", "Cf", "Cc", "Sk", "Mn", "Lm", "So"}
    characters = [chr(i) for i in range(0x80, 0x3100) if unicodedata.category(chr(i)) in kinds]
    offsets = tf.function(OffsetTokenizer(tokenizer, graph_tokenizer).__call__)
    texts = [
        form.format(c)
        for form in ("the {}cat on", "the{} cat", "a {} c", "ﬀ{}ﬁ")
        for c in characters
    ]
    ids, starts, ends = (x.to_list() for x in offsets(tf.constant(texts)))
    for row, text in enumerate(texts):
        spans = list(zip(starts[row], ends[row], strict=True))
        assert (ids[row], spans) == tokenizer.encode_with_offsets(text), ascii(text)


@slow
def test_the_same_version_again_is_left_as_it_is(tmp_path, tokenizer, monkeypatch):
    model = random_model(vocab_size=tokenizer.vocab_size)
    save_pretrained(model.encoder, tmp_path / "model", tokenizer)
    options = {"version": 3, "head": "encoder", "buckets": [8]}
    first = export(tmp_path / "model", tmp_path / "exported", **options)
    assert first["path"] == f"{tmp_path}/exported/3"
    monkeypatch.setattr(export_module, "create_service", None)
    assert export(tmp_path / "model", tmp_path / "exported", **options) == first
    (tmp_path / "exported/3/assets.extra/columns.json").touch()
    assert export(tmp_path / "model", tmp_path / "exported", **options) == first
    wrong = functools.partial(export, tmp_path / "model", tmp_path / "exported")
    assert_refused("3: expected a new version, or the same one", wrong, **options, max_length=8)
    (tmp_path / "exported/3/assets.extra/columns.json").write_text("{}")
    assert_refused("3: expected a new version, or the same one", wrong, **options)
