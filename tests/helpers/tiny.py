"""A tiny model and random batches, for tests. Sizes are primes, distinct where it matters."""

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder

# B rows, T tokens, M memory, P targets; D = 2·11, two heads of H = 11, F 29, V 53.
BATCH, TOKENS, MEMORY, TARGETS, REUSE, VOCAB, WIDTH, LAYERS = 3, 13, 7, 5, 5, 53, 22, 2

CONFIG = {
    "model": {
        "vocab_size": VOCAB,
        "num_layers": LAYERS,
        "d_model": WIDTH,
        "num_heads": 2,
        "d_inner": 29,
        "mem_len": MEMORY,
        "dropout": 0.0,
        "dropatt": 0.0,
    },
    "data": {
        "seq_len": TOKENS,
        "reuse_len": REUSE,
        "num_predict": TARGETS,
        "target_ratio": 2.0,
        "target_unit": "token",
    },
    "training": {"batch_size": 4, "num_steps": 100, "warmup_steps": 0, "learning_rate": 0.01},
}


def tiny_config(**changes):
    """The tiny configuration; `changes` are values of any section by their name."""
    config = XLNetConfig.from_dict(CONFIG)
    for name, value in changes.items():
        config.set(f"{name}={value}")
    config.check()
    return config


def tiny_encoder(seed=0, **changes):
    """An encoder with random values in every variable."""
    encoder = XLNetEncoder(tiny_config(**changes))
    encoder.build()
    randomize(encoder.variables, seed)
    return encoder


def randomize(variables, seed=0, scale=0.25):
    """Random values, no two variables alike; layer norms' around 1 and 0."""
    rng = np.random.default_rng(seed)
    for variable in variables:
        values = rng.standard_normal(variable.shape) * scale
        variable.assign(values + ("gamma" in variable.name))


def random_inputs(
    seed,
    batch=BATCH,
    tokens=TOKENS,
    targets=TARGETS,
    memory=0,
    padding=False,
    directions=False,
    order="targets",
    layers=LAYERS,
    width=WIDTH,
):
    """Inputs of an encoder, with three kinds of segments.

    Args:
      seed: of everything random.
      batch, tokens, targets: B, T and P.
      memory: M; 0 for none.
      padding: whether rows have 1 to 3 padding tokens on the left.
      directions: whether the second half of the rows are reversed text.
      order: `targets`: 0 for context, then 1, 2, … for the targets; `all`: a random place for
        each token, where the first is no target; `halves`: the two-half rule of pre-training.
      layers, width: L and D of the memory.
    """
    rng = np.random.default_rng(seed)
    orders = np.zeros((batch, tokens), np.int32)
    positions = np.zeros((batch, targets), np.int32)
    is_padding = np.zeros((batch, tokens), bool)
    for b in range(batch):
        start = int(rng.integers(1, 4)) if padding else 0
        is_padding[b, :start] = True
        if order == "targets":
            positions[b] = rng.choice(np.arange(start, tokens), targets, replace=False)
            orders[b, positions[b]] = 1 + rng.permutation(targets)
        elif order == "all":
            places = rng.permutation(np.arange(start, tokens))
            orders[b, places] = 10 + np.arange(len(places))
            positions[b] = rng.choice(places[1:], targets, replace=False)
        elif order == "halves":
            half = tokens // 2
            first = rng.choice(np.arange(start, half), targets // 2, replace=False)
            second = rng.choice(np.arange(half, tokens), targets - len(first), replace=False)
            orders[b, half:] = 100
            orders[b, first] += 1 + rng.permutation(len(first))
            orders[b, second] += 1 + rng.permutation(len(second))
            positions[b] = rng.permutation(np.concatenate([first, second]))
    inputs = {
        "token_ids": rng.integers(9, VOCAB, (batch, tokens)).astype(np.int32),
        "segment_ids": np.sort(rng.integers(0, 3, (batch, tokens))).astype(np.int32),
        "order": orders,
        "target_positions": positions,
    }
    if padding:
        inputs["is_padding"] = is_padding
    if directions:
        inputs["is_reversed"] = np.arange(batch) >= batch // 2
    if memory:
        states = rng.standard_normal((layers, batch, memory, width))
        inputs["memory"] = states.astype(np.float32)
    return inputs


def random_windows(seed, batch=4, tokens=TOKENS, context_length=None, epoch=0):
    """A batch of windows as `pretraining_dataset` gives them, as tensors."""
    import tensorflow as tf

    rng = np.random.default_rng(seed)
    token_ids = rng.integers(9, VOCAB, (batch, tokens)).astype(np.int32)
    first_end = rng.integers(REUSE + 2, tokens - 4, batch)
    is_mark = np.zeros((batch, tokens), bool)
    is_mark[np.arange(batch), first_end] = True
    is_mark[:, -2:] = True
    token_ids[is_mark] = 4  # SEP
    token_ids[:, -1] = 3  # CLS
    segment_ids = (np.arange(tokens) > first_end[:, None]).astype(np.int32)
    segment_ids[:, -1] = 2
    if context_length is None:
        context_length = rng.integers(0, MEMORY + 4, batch)
    windows = {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "is_word_start": rng.random((batch, tokens)) < 0.7,
        "letter_case": np.where(is_mark, -1, token_ids % 3 - 1).astype(np.int32),
        "can_be_target": ~is_mark,
        "is_reversed": np.arange(batch) % 2 == 1,
        "context_length": np.broadcast_to(context_length, batch).astype(np.int32),
        "is_next": np.ones(batch, np.int32),
        "window_id": rng.integers(0, 1 << 40, batch),
        "epoch": np.full(batch, epoch, np.int32),
    }
    return {name: tf.constant(value) for name, value in windows.items()}


def stacked(*batches):
    """A data set of batches."""
    import tensorflow as tf

    tensors = {name: tf.stack([batch[name] for batch in batches]) for name in batches[0]}
    return tf.data.Dataset.from_tensor_slices(tensors)
