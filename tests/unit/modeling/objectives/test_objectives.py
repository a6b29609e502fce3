"""Denoising and causal objectives: what they ask, and their losses by hand."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.errors import DataError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.tokenization.phrases import word_starts
from official.xlnet.tokenization.special_tokens import MASK_ID, NUM_SPECIAL
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.oracles.causal_reference import causal_logits
from tests.helpers.tiny import (
    LAYERS,
    MEMORY,
    REUSE,
    TOKENS,
    VOCAB,
    WIDTH,
    random_windows,
    randomize,
    tiny_config,
)


def make_model(**changes):
    model = XLNetPretrainer(tiny_config(**changes))
    randomize(model.trainable_variables, seed=3)
    model.compile(create_optimizer(model.config.training, model.config.model.num_layers))
    return model


def mean_loss(logits_BPV, labels_BP, mask_BP):
    """-log softmax at the labels, averaged over real targets, in float64."""
    logits = np.array(logits_BPV, np.float64)
    logits -= logits.max(-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(log_p, np.array(labels_BP)[..., None], axis=-1)[..., 0]
    return (losses * np.array(mask_BP)).sum() / np.sum(mask_BP)


def test_denoising_replaces_targets_only_and_in_the_right_shares():
    config = tiny_config(kind="denoising", mem_len=0, num_predict=9)
    objective = create_objective(ObjectiveSections.of(config))
    counts = dict.fromkeys(("mask", "same", "other"), 0)
    for seed in range(3):
        batch = random_windows(seed, batch=400)
        task = objective(batch)
        original, given = batch["token_ids"].numpy(), task.inputs["token_ids"].numpy()
        positions, is_real = task.inputs["content_positions"].numpy(), task.mask_BP.numpy() > 0
        labels = task.labels_BP.numpy()
        is_target = np.zeros(original.shape, bool)
        for b, p in np.argwhere(is_real):
            is_target[b, positions[b, p]] = True
            assert labels[b, p] == original[b, positions[b, p]]
        assert is_target.sum() == is_real.sum() > 300
        np.testing.assert_array_equal(given[~is_target], original[~is_target])
        counts["mask"] += (given[is_target] == MASK_ID).sum()
        counts["same"] += (given[is_target] == original[is_target]).sum()
        others = given[is_target & (given != MASK_ID) & (given != original)]
        assert others.min() >= NUM_SPECIAL and others.max() < VOCAB
        counts["other"] += len(others)
        assert "order" not in task.inputs and "target_positions" not in task.inputs
    shares = np.array(list(counts.values())) / sum(counts.values())
    np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=0.015)


@pytest.mark.parametrize("unit", ["word", "token"])
def test_a_word_is_masked_as_a_whole_or_not_at_all(unit):
    """Counted over pairs of neighbors, in forward and reversed text, that are targets."""
    config = tiny_config(kind="denoising", mem_len=0, num_predict=9, target_unit=unit)
    objective = create_objective(ObjectiveSections.of(config))
    of_one_word, of_two = [], []
    for seed in range(3):
        batch = random_windows(seed, batch=400)
        task = objective(batch)
        is_masked = task.inputs["token_ids"].numpy() == MASK_ID
        is_start, is_reversed = batch["is_word_start"].numpy(), batch["is_reversed"].numpy()
        for b, positions in enumerate(task.inputs["content_positions"].numpy()):
            real = positions[task.mask_BP.numpy()[b] > 0]
            for left, right in itertools.pairwise(real):
                if right == left + 1:
                    starts = is_start[b, left] if is_reversed[b] else is_start[b, right]
                    pair = is_masked[b, left] == is_masked[b, right]
                    (of_two if starts else of_one_word).append(pair)
    assert len(of_two) > 50 and len(of_one_word) > 50
    assert np.mean(of_two) < 0.8  # Of independent fates, 0.68.
    assert np.all(of_one_word) == (unit == "word")


def test_denoising_loss_by_hand_and_memory_that_knows_nothing_of_the_next_window():
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

    changed = inputs["token_ids"].numpy()
    changed[:, REUSE:] = 11
    again = model.encoder({**inputs, "token_ids": changed, "memory": memory})
    once = model.encoder({**inputs, "memory": memory})
    np.testing.assert_allclose(again["memory"], once["memory"], atol=1e-6)


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


def test_causal_with_memory_equals_one_long_text():
    """Windows whose memory reaches back to the start predict what one long window predicts."""
    text = np.random.default_rng(0).integers(9, VOCAB, (2, 22))
    model = make_model(kind="causal", mem_len=20, reuse_len=7, bidirectional=False)
    wanted = np.stack([causal_logits(model, row[:21]) for row in text])
    memory = tf.zeros([LAYERS, 2, 20, WIDTH])
    for start in (0, 7, 14):
        batch = random_windows(0, batch=2, tokens=TOKENS)
        window = np.full((2, TOKENS), 9)
        window[:, :8] = text[:, start : start + 8]
        batch["token_ids"] = tf.constant(window, tf.int32)
        task = model.objective(batch)
        outputs = model({**task.inputs, "memory": memory, "memory_length": [start, start]})
        np.testing.assert_array_equal(task.labels_BP, text[:, start + 1 : start + 8])
        np.testing.assert_allclose(outputs["logits"], wanted[:, start : start + 7], atol=1e-4)
        memory = outputs["memory"]


def test_phrases_are_words(vocab_file):
    tokenizer = Tokenizer(vocab_file)
    phrase, text = "the function", "in the function and the functional function of the object"
    ids = np.array(tokenizer.encode(text))
    inside = tokenizer.encode(phrase)
    plain, joined = word_starts(tokenizer), word_starts(tokenizer, [phrase, "of the object"])
    batch = tf.constant(np.stack([ids, ids[::-1]]))
    is_reversed = tf.constant([False, True])
    starts, units = plain(batch, is_reversed).numpy(), joined(batch, is_reversed).numpy()
    np.testing.assert_array_equal(starts[0], starts[1, ::-1])
    np.testing.assert_array_equal(units[0], units[1, ::-1])
    pieces = [tokenizer.id_to_piece(int(i)) for i in ids]
    words = "".join("|" * int(start) + piece for start, piece in zip(units[0], pieces, strict=True))
    words = [word.replace("▁", " ").strip() for word in words.split("|") if word]
    assert words == ["in", phrase, "and", "the", "functional", "function", "of the object"]
    assert len(inside) >= 2
    with pytest.raises(DataError, match="several words"):
        word_starts(tokenizer, ["function"])
