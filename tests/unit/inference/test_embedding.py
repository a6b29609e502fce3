"""Embeddings: those of the Keras encoder on each text alone, in the order of the texts."""

import contextlib
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.embedding import TextEmbedder, embed
from official.xlnet.tasks import long_texts
from official.xlnet.tokenization.graph.packing import pack_columns
from official.xlnet.tokenization.graph.ragged import ragged
from tests.helpers.small_language_model import NumberTokenizer
from tests.helpers.tiny import VOCAB, tiny_encoder

MAX_LENGTH = 23


TOKENIZER = NumberTokenizer(VOCAB)
# Around buckets; 22 and 40 are too long.
LENGTHS = [5, 0, 40, 14, 15, 1, 19, 21, 22, 5, 2]
IDS = np.random.default_rng(0).integers(9, VOCAB, 41)
TEXTS = [" ".join(map(str, np.roll(IDS, n)[:length])) for n, length in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder(mem_len=MAX_LENGTH, reuse_len=0)


@pytest.fixture(scope="module")
def states_of_texts(encoder):
    """The Keras encoder's last hidden states, [tokens, D], of each text alone."""
    states = []
    for text in TEXTS:
        inputs = pack_columns([[TOKENIZER.encode(text)]], MAX_LENGTH)
        outputs = encoder({name: tf.constant(x) for name, x in inputs.items()})
        states.append(outputs["content"].numpy()[0][~inputs["is_padding"][0]])
    return states


@pytest.fixture(scope="module")
def embedder(encoder):
    """That of the last layer, which keeps its graphs."""
    return TextEmbedder(encoder, TOKENIZER, max_length=MAX_LENGTH)


@pytest.mark.slow
def test_a_limit_far_above_the_texts_costs_nothing(encoder, states_of_texts):
    texts = [text for text, n in zip(TEXTS, LENGTHS, strict=True) if n < 22]
    embedder = TextEmbedder(encoder, TOKENIZER, max_length=4_000_000)
    first = embedder(texts)
    small = sum(np.prod(variable.shape) for variable in embedder._encoder.variables)
    assert small < 10 * sum(np.prod(variable.shape) for variable in encoder.variables)
    longer = embedder([*texts, " ".join(map(str, np.tile(IDS, 20)))])  # The copy grows.
    np.testing.assert_allclose(longer[:-1], first, atol=1e-6)
    states = [x for x, n in zip(states_of_texts, LENGTHS, strict=True) if n < 22]
    np.testing.assert_allclose(first, [x.mean(axis=0) for x in states], atol=1e-5)
    assert embedder.num_windows == 2 * len(texts) + 1 and not embedder.num_truncated


def test_a_forked_process_says_to_spawn_another_one(embedder):
    """It would wait for the threads of TensorFlow, which are those of its parent."""
    embedder(TEXTS)
    if not (child := os.fork()):
        signal.alarm(20)
        for call in (lambda: embedder(TEXTS), lambda: tf.ones(3) + 1):
            with contextlib.suppress(ConfigError):
                call()
                os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    embedder(TEXTS)


def pooled(states, pooling):
    """The embedding of a text with these hidden states [tokens, D], on the left of zeros."""
    if pooling == "none":
        return np.pad(states, [[MAX_LENGTH - len(states), 0], [0, 0]])
    if pooling == "text_mean":
        return states[:-2].mean(axis=0) if len(states) > 2 else 0 * states[-1]
    return states.mean(axis=0) if pooling == "mean" else states[-1]


@pytest.mark.parametrize(
    "pooling", ["mean", pytest.param("cls", marks=pytest.mark.slow), "text_mean", "none"]
)
def test_each_text_as_the_encoder_reads_it_alone(embedder, states_of_texts, pooling):
    found = embedder(TEXTS, pooling, batch_size=3)
    assert found.dtype == np.float32
    expected = np.stack([pooled(states, pooling) for states in states_of_texts])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert not found[expected == 0].any()


def test_several_layers_stand_side_by_side_and_cut_texts_are_counted(encoder, embedder):
    of_layers = TextEmbedder(encoder, TOKENIZER, [0, -1, 1], max_length=MAX_LENGTH)
    found, texts = of_layers(TEXTS[2:4], "mean"), TEXTS[2:4]
    alone = [embed(encoder, texts, "mean", n, MAX_LENGTH, tokenizer=TOKENIZER) for n in (0, 1)]
    alone.insert(1, embedder(texts, "mean"))
    np.testing.assert_allclose(found, np.concatenate(alone, axis=1), atol=1e-5)
    assert of_layers.width == found.shape[1] and of_layers.num_truncated == 1


@pytest.mark.parametrize(
    ("pooling", "stride"),
    [("mean", 9), ("none", 9), pytest.param("none", 99, marks=pytest.mark.slow)],
)
def test_long_texts_have_the_means_over_their_windows(encoder, embedder, pooling, stride):
    """Those of fine-tuning; for tokens, over the windows that hold them."""
    texts = TEXTS[1:5]
    read = TextEmbedder(encoder, TOKENIZER, max_length=MAX_LENGTH, window_stride=stride)
    found = read(texts, pooling, batch_size=2)
    task = TaskConfig(long_texts="windows", window_stride=stride, max_windows=5)
    for text, vectors in zip(texts, found, strict=True):
        ids = TOKENIZER.encode(text)
        rows = long_texts.read([ragged([ids])], task, MAX_LENGTH)[0]["token_ids"].to_list()
        windows = [" ".join(map(str, row[:-2])) for row in rows if row]
        expected = [embedder(window, pooling) for window in windows]
        if pooling == "none":
            of_places = [[] for _ in range(len(ids) + 2)]
            for number, window in enumerate(expected):
                first = number * min(stride, MAX_LENGTH - 2)
                for place, vector in enumerate(window[:-2], first):
                    of_places[place].append(vector)
                for place in (-2, -1):
                    of_places[place].append(window[place])
            expected = [np.mean(each, axis=0) for each in of_places]
            assert not vectors[: -len(expected)].any() and len(vectors) == 42
            np.testing.assert_allclose(vectors[-len(expected) :], expected, atol=1e-5)
        else:
            np.testing.assert_allclose(vectors, np.mean(expected, axis=0), atol=1e-5)
    assert read.num_truncated == 0


def test_a_causal_model_reads_as_it_was_trained():
    encoder = tiny_encoder(bidirectional=False, kind="causal")
    vectors = TextEmbedder(encoder, TOKENIZER, max_length=MAX_LENGTH)(TEXTS[:3], "cls")
    for text, vector in zip(TEXTS[:3], vectors, strict=True):
        inputs = pack_columns([[TOKENIZER.encode(text)]], MAX_LENGTH)
        outputs = encoder({**inputs, "order": tf.range(MAX_LENGTH)[None]})
        np.testing.assert_allclose(vector, outputs["content"][0, -1], atol=1e-5)


def test_layer_0_is_the_word_embedding(encoder):
    vectors = embed(encoder, "9 11 10", "none", layer=0, tokenizer=TOKENIZER)
    table = encoder.word_embedding.embeddings.numpy()
    np.testing.assert_allclose(vectors, table[[9, 11, 10, 4, 3]], rtol=1e-6)
    cls = embed(encoder, ["9 11", "9"], "cls", layer=-3, tokenizer=TOKENIZER)
    np.testing.assert_allclose(cls, table[[3, 3]], rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"pooling": "max"},
            "pooling: expected one of cls, mean, text_mean, none, words, got 'max'",
        ),
        ({"layer": 3}, r"layer: expected in \[-3, 2\], got 3"),
        ({"layer": []}, "layer: expected at least one"),
        ({"layer": [1, "x"]}, r"layer.*: expected an integer, got .*'x'"),
        ({"layer": -4}, r"layer: expected in \[-3, 2\], got -4"),
        ({"batch_size": 0}, "batch_size: expected at least 1"),
        ({"max_length": 2}, "input length: expected at least 3"),
        ({"tokenizer": None}, "tokenizer: expected the encoder's tokenizer"),
    ],
)
def test_wrong_arguments_are_named(encoder, wrong, message):
    with pytest.raises((ConfigError, DataError), match=message):
        embed(encoder, ["9"], **{"tokenizer": TOKENIZER, **wrong})
