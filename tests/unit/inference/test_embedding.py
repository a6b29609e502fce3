"""Embeddings: those of the Keras encoder on each text alone, in the order of the texts."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.embedding import TextEmbedder, embed
from official.xlnet.tokenization.graph.packing import pack_columns
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
    return tiny_encoder(num_layers=3, mem_len=MAX_LENGTH, reuse_len=0)


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


def pooled(states, pooling):
    """The embedding of a text with these hidden states [tokens, D], on the left of zeros."""
    if pooling == "none":
        return np.pad(states, [[MAX_LENGTH - len(states), 0], [0, 0]])
    return states.mean(axis=0) if pooling == "mean" else states[-1]


@pytest.mark.parametrize("pooling", ["mean", "cls", "none"])
def test_each_text_as_the_encoder_reads_it_alone(embedder, states_of_texts, pooling):
    found = embedder(TEXTS, pooling, batch_size=3)
    assert found.dtype == np.float32
    expected = np.stack([pooled(states, pooling) for states in states_of_texts])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert not found[expected == 0].any()


def test_a_causal_model_reads_as_it_was_trained():
    encoder = tiny_encoder(num_layers=3, bidirectional=False, kind="causal")
    vectors = TextEmbedder(encoder, TOKENIZER, max_length=MAX_LENGTH)(TEXTS[:3], "cls")
    for text, vector in zip(TEXTS[:3], vectors, strict=True):
        inputs = pack_columns([[TOKENIZER.encode(text)]], MAX_LENGTH)
        outputs = encoder({**inputs, "order": tf.range(MAX_LENGTH)[None]})
        np.testing.assert_allclose(vector, outputs["content"][0, -1], atol=1e-5)


def test_short_texts_do_not_run_at_the_length_of_long_ones(embedder):
    sizes = [min(length + 2, MAX_LENGTH) for length in LENGTHS]
    batches = list(embedder._batches(sizes, 4))
    assert sorted(row for _, rows in batches for row in rows) == list(range(len(TEXTS)))
    for length, rows in batches:
        assert 0 < len(rows) <= 4
        shortest = max(sizes[row] for row in rows)
        assert length == min(n for n in embedder._lengths if n >= shortest)
        assert all(sizes[row] > n for row in rows for n in embedder._lengths if n < length)


def test_layer_0_is_the_word_embedding(encoder):
    vectors = embed(encoder, "9 11 10", "none", layer=0, tokenizer=TOKENIZER)
    table = encoder.word_embedding.embeddings.numpy()
    np.testing.assert_allclose(vectors, table[[9, 11, 10, 4, 3]], rtol=1e-6)
    cls = embed(encoder, ["9 11", "9"], "cls", layer=-4, tokenizer=TOKENIZER)
    np.testing.assert_allclose(cls, table[[3, 3]], rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pooling": "max"}, "pooling: expected one of cls, mean, none, got 'max'"),
        ({"layer": 4}, "layer: expected -4 to 3 for 3 layers, got 4"),
        ({"layer": -5}, "layer: expected -4 to 3 for 3 layers, got -5"),
        ({"batch_size": 0}, "batch_size: expected at least 1"),
        ({"max_length": 2}, "input length: expected at least 3"),
        ({"tokenizer": None}, "tokenizer: expected that of the encoder"),
    ],
)
def test_wrong_arguments_are_named(encoder, wrong, message):
    with pytest.raises((ConfigError, DataError), match=message):
        embed(encoder, ["9"], **{"tokenizer": TOKENIZER, **wrong})
