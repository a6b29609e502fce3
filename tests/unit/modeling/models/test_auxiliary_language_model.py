"""The auxiliary language-model loss of fine-tuning, token by token."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import randomize

UNITS, TOKENS, WEIGHT = 4, 11, 0.5


def make_model(kind="permutation", lm_weight=WEIGHT, **task):
    config = task_config(
        name="classification", labels=("a", "b", "c"), batch_size=UNITS, lm_weight=lm_weight, **task
    )
    config.objective.kind = kind
    model = XLNetTaskModel(config)
    randomize(model.variables, seed=4)
    optimizer = create_optimizer(config.training, config.model.num_layers)
    optimizer.build(model.tuned_variables)  # Or `fit` would trace the step twice.
    model.compile(optimizer)
    return model


def make_batch(sequences=1, seed=0):
    rng = np.random.default_rng(seed)
    shape = UNITS, sequences, TOKENS
    token_ids = rng.integers(9, 211, shape).astype(np.int32)
    token_ids[..., -1], token_ids[..., [6, -2]] = CLS_ID, SEP_ID
    segments = np.broadcast_to(np.repeat([0, 1, 2], [7, 3, 1]), shape).astype(np.int32)
    is_padding = np.arange(TOKENS) < rng.integers(0, 5, (UNITS, sequences, 1))
    return {
        "token_ids": token_ids,
        "segment_ids": segments,
        "is_padding": is_padding,
        "label": rng.integers(0, 3, UNITS).astype(np.int32),
        "weight": np.array([1, 2, 0.5, 0], np.float32),
    }


def by_hand(model, batch, kind):
    """Mean -log p of each unit, from one encoder call for each prefix of each text."""
    embedding = model.encoder.word_embedding.embeddings.numpy()
    bias = model.language_model.lm_head.bias.numpy()
    losses = []
    for u in range(UNITS):
        found = []
        for ids, segments, is_padding in zip(
            *(batch[name][u] for name in ("token_ids", "segment_ids", "is_padding")), strict=True
        ):
            start = int(is_padding.sum())
            for t in range(start + 1, TOKENS):
                if ids[t] < 9:
                    continue
                if kind == "permutation":
                    # The token itself is replaced: a target does not see itself.
                    seen = np.append(ids[start:t], 77)[None]
                    inputs = {
                        "token_ids": seen,
                        "segment_ids": segments[None, start : t + 1],
                        "order": np.arange(t + 1 - start)[None],
                        "target_positions": np.array([[t - start]], np.int32),
                    }
                    vector = model.encoder(inputs)["query"].numpy()[0, 0]
                else:
                    inputs = {
                        "token_ids": ids[None, start:t],
                        "segment_ids": segments[None, start:t],
                        "order": np.arange(t - start)[None],
                    }
                    vector = model.encoder(inputs)["content"].numpy()[0, -1]
                logits = (embedding @ vector + bias).astype(float)
                found.append(np.log(np.exp(logits).sum()) - logits[ids[t]])
        losses.append(np.mean(found))
    return np.array(losses)


@pytest.mark.parametrize("kind", ["permutation", "causal"])
@pytest.mark.parametrize("sequences", [1, 2])
def test_loss_by_hand(kind, sequences):
    windows = {"long_texts": "windows", "max_windows": 2} if sequences == 2 else {}
    model, batch = make_model(kind, **windows), make_batch(sequences)
    inputs = {name: tf.constant(x) for name, x in batch.items()}
    found = model.language_model(model.encoder, inputs)
    np.testing.assert_allclose(found, by_hand(model, batch, kind), rtol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("slices", [{}, {"accumulate_steps": 2}])
def test_a_step_minimizes_the_sum_of_both_losses(slices):
    batch = make_batch()
    model, plain = make_model(), make_model(lm_weight=0.0)
    vars(model.config.training).update(slices)
    for variable, other in zip(plain.head.variables, model.head.variables, strict=True):
        variable.assign(other)
    for variable, other in zip(plain.encoder.variables, model.encoder.variables, strict=True):
        variable.assign(other)
    weight = batch["weight"]
    extra = (by_hand(model, batch, "permutation") * weight).sum() / weight.sum()
    before = model.language_model.lm_head.bias.numpy(), model.encoder.mask_embedding.numpy()
    model.run_eagerly, plain.run_eagerly = not slices, True  # Slices are a loop of the graph.
    data = tf.data.Dataset.from_tensors(batch)
    found = model.fit(data, verbose=0).history["loss"][0]
    without = plain.fit(data, verbose=0).history["loss"][0]
    np.testing.assert_allclose(found, without + WEIGHT * extra, rtol=1e-4)
    after = model.language_model.lm_head.bias.numpy(), model.encoder.mask_embedding.numpy()
    assert all(np.any(old != new) for old, new in zip(before, after, strict=True))
