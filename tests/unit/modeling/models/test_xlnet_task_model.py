"""The model of a task: training step, buckets, windows, memory."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.heads.sequence_summary import SequenceSummary
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import randomize

U = 4


def batch_of(sequences, tokens, seed=0, most_padding=None):
    rng = np.random.default_rng(seed)
    is_padding = np.zeros((U, sequences, tokens), bool)
    for row in is_padding.reshape(-1, tokens):
        row[: rng.integers(0, most_padding or tokens - 1)] = True
    return {
        "token_ids": rng.integers(9, 211, is_padding.shape).astype(np.int32),
        "segment_ids": np.sort(rng.integers(0, 3, is_padding.shape)).astype(np.int32),
        "is_padding": is_padding,
        "label": rng.integers(0, 3, U).astype(np.int32),
        "weight": np.array([1, 2, 0.5, 0], np.float32),
    }


def model_of(seed=0, **task):
    config = task_config(
        **{"name": "classification", "labels": ("a", "b", "c"), "batch_size": U, **task}
    )
    model = XLNetTaskModel(config)
    randomize(model.variables, seed)
    optimizer = create_optimizer(config.training, config.model.num_layers)
    optimizer.build(model.tuned_variables)  # Or `fit` would trace the step twice.
    model.compile(optimizer)
    return model


def dataset(batch):
    return tf.data.Dataset.from_tensors({name: tf.constant(x) for name, x in batch.items()})


def test_the_loss_is_the_weighted_mean_and_one_step_is_adams():
    model = model_of()
    batch = batch_of(1, 23)
    logits = model(batch)["logits"].numpy()
    losses = -np.log(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))
    weight = batch["weight"]
    expected = np.sum(losses[np.arange(U), batch["label"]] * weight) / weight.sum()
    before = [variable.numpy() for variable in model.tuned_variables]
    mask = model.encoder.mask_embedding.numpy()
    history = model.fit(dataset(batch), verbose=0)
    assert history.history["loss"][0] == pytest.approx(expected, rel=1e-4)
    np.testing.assert_array_equal(model.encoder.mask_embedding, mask)
    changed = [np.any(old != new) for old, new in zip(before, model.tuned_variables, strict=True)]
    assert all(changed)


def test_a_batch_without_labels_changes_nothing_and_has_no_loss():
    model = model_of()
    batch = batch_of(1, 23)
    metrics = model.train_step(batch)
    before = [variable.numpy() for variable in model.variables]
    none = {**batch, "weight": np.zeros(U, np.float32)}
    again = model.train_step(none)
    assert again == metrics and again["targets"] == 3.5
    for old, new in zip(before, model.variables, strict=True):
        np.testing.assert_array_equal(old, new)
    assert int(model.optimizer.iterations) == 2
    model.run_eagerly = True
    history = model.fit(dataset(none), verbose=0).history
    assert np.isnan(history["loss"]) and history["targets"] == [0]


def test_cutting_shared_padding_changes_nothing():
    batch = batch_of(1, 24)
    batch["is_padding"][:, :, :15] = True
    weights = []
    for num_buckets in (1, 2):
        model = model_of(num_buckets=num_buckets, max_length=24)
        model.run_eagerly = num_buckets == 1
        model.fit(dataset(batch), verbose=0)
        weights.append([variable.numpy() for variable in model.variables])
    for one, two in zip(*weights, strict=True):
        np.testing.assert_allclose(one, two, atol=2e-4)


@pytest.mark.slow
def test_a_batch_in_slices_gives_the_same_step():
    batch = batch_of(1, 23)
    weights = []
    for slices in ({}, {"accumulate_steps": 2}, {"parallel_slices": 2}):
        model = model_of()
        vars(model.config.training).update(slices)
        model.fit(dataset(batch), verbose=0)  # In a graph, as slices are made to run.
        weights.append([variable.numpy() for variable in model.variables])
    for variable in zip(*weights, strict=True):
        for sliced in variable[1:]:
            np.testing.assert_allclose(sliced, variable[0], atol=2e-4)


def test_a_frozen_encoder_stays_as_it_is():
    model = model_of(freeze_encoder=True)
    before = [variable.numpy() for variable in model.encoder.variables]
    head = [variable.numpy() for variable in model.head.variables]
    model.train_step(batch_of(1, 23))
    for old, new in zip(before, model.encoder.variables, strict=True):
        np.testing.assert_array_equal(old, new)
    changed = [np.any(o != n) for o, n in zip(head, model.head.variables, strict=True)]
    assert all(changed)


@pytest.mark.parametrize("summary", ["last", "first", "mean", "attn"])
def test_padding_changes_no_summary(summary):
    layer = SequenceSummary(task_config().model, summary)
    rng = np.random.default_rng(0)
    content = rng.normal(size=(3, 11, 26)).astype(np.float32)
    is_padding = np.zeros((3, 11), bool)
    layer(content, is_padding)
    randomize(layer.variables)
    padded = np.concatenate([rng.normal(size=(3, 5, 26)).astype(np.float32), content], axis=1)
    with_padding = layer(padded, np.pad(is_padding, [[0, 0], [5, 0]], constant_values=True))
    np.testing.assert_allclose(layer(content, is_padding), with_padding, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_windows_are_pooled_without_those_that_hold_nothing(pooling):
    model = model_of(long_texts="windows", max_windows=3, pooling=pooling)
    batch = batch_of(3, 23)
    batch["is_padding"][1, 2] = True
    batch["is_padding"][2, 1:] = True
    found = model(batch)["logits"].numpy()
    for u, windows in enumerate([(0, 1, 2), (0, 1), (0,), (0, 1, 2)]):
        summaries = []
        for s in windows:
            one = {name: batch[name][u, s] for name in ("token_ids", "segment_ids", "is_padding")}
            content = model.encoder({name: x[None] for name, x in one.items()})["content"]
            summaries.append(model.head.summary(content, one["is_padding"][None])[0])
        pooled = (np.mean if pooling == "mean" else np.max)(summaries, axis=0)
        expected = pooled @ model.head.logits.kernel.numpy() + model.head.logits.bias.numpy()
        np.testing.assert_allclose(found[u], expected, rtol=1e-4, atol=1e-4)


def test_memory_reads_a_short_text_as_one_window_and_sees_all_of_a_long_one():
    model = model_of(long_texts="memory", max_windows=3, mem_len=40, max_length=11)
    plain = model_of(max_length=11)
    batch = batch_of(3, 11, most_padding=5)
    batch["is_padding"][:, :2] = True  # Short texts: only the last window is there.
    one = {name: x[:, 2:] if x.ndim == 3 else x for name, x in batch.items()}
    np.testing.assert_allclose(model(batch)["logits"], plain(one)["logits"], rtol=1e-4, atol=1e-4)

    batch["is_padding"][:, 1:] = False
    batch["is_padding"][:, 0, 7:] = False
    logits = model(batch)["logits"].numpy()
    changed = {**batch, "token_ids": batch["token_ids"].copy()}
    changed["token_ids"][:, 0, 9] = 9 + (changed["token_ids"][:, 0, 9] - 8) % 200
    assert np.all(np.abs(model(changed)["logits"].numpy() - logits).max(axis=1) > 1e-5)
    padding = {**batch, "token_ids": batch["token_ids"].copy()}
    padding["token_ids"][:, 0, :7] = 17
    padding["token_ids"] = np.where(batch["is_padding"], padding["token_ids"], batch["token_ids"])
    np.testing.assert_allclose(model(padding)["logits"], logits, rtol=1e-5, atol=1e-5)


def segments_batch():
    """Texts of three, two and one segments of up to 11 tokens."""
    batch = batch_of(3, 11)
    batch["is_padding"][:] = False
    batch["is_padding"][0, 0, :4] = True
    batch["is_padding"][1, 0] = True
    batch["is_padding"][2, :2] = True
    batch["is_padding"][2, 2, :3] = True
    return batch


@pytest.mark.parametrize("summary", ["last", "mean"])
def test_segments_with_memory_are_pooled(summary):
    model = model_of(
        **{"long_texts": "memory", "pooled_segments": "all", "summary": summary},
        **{"max_windows": 3, "mem_len": 17, "max_length": 11},
    )
    batch = segments_batch()
    found = model(batch)["logits"].numpy()
    for u, segments in enumerate([(0, 1, 2), (1, 2), (2,)]):
        summaries, memory, seen = [], None, 0
        for s in segments:
            inputs = {
                name: batch[name][u, s][None] for name in ("token_ids", "segment_ids", "is_padding")
            }
            if memory is not None:
                inputs |= {"memory": memory, "memory_length": np.array([seen], np.int32)}
            outputs = model.encoder(inputs)
            summaries.append(model.head.summary(outputs["content"], inputs["is_padding"])[0])
            memory, seen = outputs["memory"], seen + int((~inputs["is_padding"]).sum())
        expected = np.mean(summaries, axis=0) @ model.head.logits.kernel.numpy()
        expected += model.head.logits.bias.numpy()
        np.testing.assert_allclose(found[u], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("pooled", "is_trained"), [("all", True), ("last", False)])
def test_a_pooled_segment_is_trained_on(pooled, is_trained):
    """The embedding of a token that only the first segment has gets a gradient, or none."""
    model = model_of(
        long_texts="memory", pooled_segments=pooled, max_windows=3, mem_len=17, max_length=11
    )
    batch, token = segments_batch(), 199
    batch["token_ids"] = np.where(batch["token_ids"] == token, 7, batch["token_ids"])
    batch["token_ids"][0, 0, 9] = token
    embedding = model.encoder.word_embedding.embeddings
    with tf.GradientTape() as tape:
        logits = model(batch)["logits"]
    gradient = tf.convert_to_tensor(tape.gradient(logits, embedding)).numpy()
    assert np.any(gradient[token]) == is_trained


def test_layer_decay_is_that_of_an_optimizer_for_each_layer():
    """Each variable alone under Adam with its own rate, against the run with `layer_decay`."""
    batch = batch_of(1, 23)
    decayed, plain = model_of(), model_of()
    for model, decay in ((decayed, 0.5), (plain, 1.0)):
        model.config.training.layer_decay = decay
        model.config.training.clip_norm = 0.0
        model.compile(create_optimizer(model.config.training, 1))
    before = [variable.numpy() for variable in plain.tuned_variables]
    for model in (decayed, plain):
        model.train_step(batch)
    below = 0
    for old, slow, fast in zip(before, decayed.tuned_variables, plain.tuned_variables, strict=True):
        factor = 0.5 if "word_embedding" in slow.name else 1.0
        below += factor < 1
        np.testing.assert_allclose(
            slow.numpy() - old, factor * (fast.numpy() - old), rtol=1e-3, atol=1e-6
        )
    assert below == 1
