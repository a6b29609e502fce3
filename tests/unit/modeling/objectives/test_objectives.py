"""Denoising and causal objectives: what they ask, and their losses by hand."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.errors import DataError
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.tokenization.special_tokens import MASK_ID, NUM_SPECIAL
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.word_starts import word_starts
from tests.helpers.compiled import make_model
from tests.helpers.oracles.causal_reference import causal_logits
from tests.helpers.tiny import (
    LAYERS,
    MEMORY,
    REUSE,
    TOKENS,
    VOCAB,
    WIDTH,
    random_windows,
    tiny_config,
)


def mean_loss(logits_BPV, labels_BP, mask_BP):
    """-log softmax at the labels, averaged over real targets, in float64."""
    logits = np.array(logits_BPV, np.float64)
    logits -= logits.max(-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(log_p, np.array(labels_BP)[..., None], axis=-1)[..., 0]
    return (losses * np.array(mask_BP)).sum() / np.sum(mask_BP)


@pytest.mark.parametrize("unit", ["word", "token"])
def test_denoising_replaces_targets_only_and_in_the_right_shares(unit):
    """A word is masked as a whole or not at all, in forward and in reversed text."""
    config = tiny_config(kind="denoising", mem_len=0, num_predict=9, target_unit=unit)
    batch = random_windows(1, batch=1200)
    task = create_objective(ObjectiveSections.of(config))(batch)
    assert "order" not in task.inputs and "target_positions" not in task.inputs
    original, given = batch["token_ids"].numpy(), task.inputs["token_ids"].numpy()
    positions, is_real = task.inputs["content_positions"].numpy(), task.mask_BP.numpy() > 0
    labels = np.take_along_axis(original, positions, axis=1)
    np.testing.assert_array_equal(task.labels_BP.numpy()[is_real], labels[is_real])
    is_target = np.zeros(original.shape, bool)
    is_target[np.nonzero(is_real)[0], positions[is_real]] = True
    assert is_target.sum() == is_real.sum() > 900
    np.testing.assert_array_equal(given[~is_target], original[~is_target])
    is_masked, is_same = given == MASK_ID, given == original
    others = given[is_target & ~is_masked & ~is_same]
    assert others.min() >= NUM_SPECIAL and others.max() < VOCAB
    shares = [np.mean(x[is_target]) for x in (is_masked, is_same)]
    np.testing.assert_allclose(shares, [0.8, 0.1], atol=0.02)

    is_start, is_reversed = batch["is_word_start"].numpy(), batch["is_reversed"].numpy()
    starts_right = np.where(is_reversed[:, None], is_start[:, :-1], is_start[:, 1:])
    are_targets = is_target[:, :-1] & is_target[:, 1:]
    are_alike = is_masked[:, :-1] == is_masked[:, 1:]
    assert np.mean(are_alike[are_targets & starts_right]) < 0.8  # Of independent fates, 0.68.
    assert np.all(are_alike[are_targets & ~starts_right]) == (unit == "word")


def test_denoising_loss_by_hand():
    model = make_model(kind="denoising")
    batch = random_windows(1)
    task = model.objective(batch)
    np.testing.assert_array_equal(
        task.inputs["order"], np.tile(np.arange(TOKENS) >= REUSE, [4, 1]).astype(int)
    )
    memory = np.zeros([LAYERS, 4, MEMORY, WIDTH], np.float32)
    inputs = {name: value for name, value in task.inputs.items() if name != "content_positions"}
    encoded = model.encoder({**inputs, "memory": memory, "memory_length": batch["context_length"]})
    rows_BPD = np.take_along_axis(
        encoded["content"].numpy(), task.inputs["content_positions"].numpy()[..., None], axis=1
    )
    embedding = model.encoder.word_embedding.embeddings.numpy()
    logits = rows_BPD @ embedding.T + model.lm_head.bias.numpy()
    wanted = mean_loss(logits, task.labels_BP, task.mask_BP)
    np.testing.assert_allclose(model.train_step(batch)["loss"], wanted, rtol=1e-5)


@pytest.mark.parametrize("kind", ["permutation", "denoising"])
def test_target_draws(kind):
    """1: a static mask; 2: two in turn; 0: a new one each epoch."""

    def drawn(target_draws, epoch):
        config = tiny_config(kind=kind, target_draws=target_draws)
        inputs = create_objective(ObjectiveSections.of(config))(
            random_windows(2, batch=8, epoch=epoch)
        ).inputs
        name = "target_positions" if kind == "permutation" else "content_positions"
        return inputs[name].numpy(), inputs["token_ids"].numpy(), inputs["order"].numpy()

    def same(one, other):
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))

    assert same(drawn(1, 0), drawn(1, 5)) and same(drawn(1, 0), drawn(0, 0))
    assert same(drawn(2, 1), drawn(2, 5)) and not same(drawn(2, 0), drawn(2, 1))
    assert not same(drawn(0, 1), drawn(0, 5))


@pytest.mark.parametrize("reuse_len", [7, 0])
def test_causal_equals_a_plain_causal_transformer(reuse_len):
    settings = {"kind": "causal", "mem_len": 0, "reuse_len": reuse_len, "bidirectional": False}
    model = make_model(**settings)
    batch = random_windows(0)
    batch["segment_ids"] = tf.zeros_like(batch["segment_ids"])
    task = model.objective(batch)
    length = reuse_len or TOKENS
    rows = min(length, TOKENS - 1)
    assert task.labels_BP.shape == (4, rows)
    token_ids = batch["token_ids"].numpy()
    np.testing.assert_array_equal(task.labels_BP, token_ids[:, 1 : rows + 1])
    mask = batch["can_be_target"].numpy()[:, 1 : rows + 1]
    np.testing.assert_array_equal(task.mask_BP, mask)
    logits = np.stack([causal_logits(model, row[:length])[:rows] for row in token_ids])
    np.testing.assert_allclose(model(task.inputs)["logits"], logits, atol=1e-4)
    loss = model.train_step(batch)["loss"]
    np.testing.assert_allclose(loss, mean_loss(logits, task.labels_BP, mask), rtol=1e-5)


def test_phrases_are_words(vocab_file):
    tokenizer = Tokenizer(vocab_file)
    ids = np.array(tokenizer.encode("in the function and the functional function of the object"))
    starts = word_starts(tokenizer, ["the function", "of the object"])
    batch = tf.constant(np.stack([ids, ids[::-1]]))
    forward, backward = starts(batch, tf.constant([False, True])).numpy()
    np.testing.assert_array_equal(forward, backward[::-1])
    pieces = [tokenizer.id_to_piece(int(i)) for i in ids]
    words = "".join("|" * int(start) + piece for start, piece in zip(forward, pieces, strict=True))
    words = [word.replace("▁", " ").strip() for word in words.split("|") if word]
    assert words == ["in", "the function", "and", "the", "functional", "function", "of the object"]
    with pytest.raises(DataError, match="several words"):
        word_starts(tokenizer, ["function"])
