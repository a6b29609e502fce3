"""Conformance of an objective: what its predictions depend on, and steps of training with it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.objectives.base import prediction_rows
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.modeling.ops.visibility import can_attend
from official.xlnet.tokenization.special_tokens import CLS_ID, EOD_ID, NUM_SPECIAL, SEP_ID

TINY: dict[str, dict[str, Any]] = {
    "model": {
        "vocab_size": 53,
        "num_layers": 2,
        "d_model": 22,
        "num_heads": 2,
        "d_inner": 29,
        "mem_len": 7,
        "dropout": 0.0,
        "dropatt": 0.0,
        "init_std": 0.2,
    },
    "data": {
        "seq_len": 13,
        "reuse_len": 5,
        "num_predict": 5,
        "target_ratio": 2.0,
        "target_unit": "token",
    },
    "objective": {"random_share": 0.2},  # No target of denoising keeps its token.
    "training": {"batch_size": 4, "parallel_slices": 1},
}
# Forms of a step, and the largest relative error of its gradients.
OTHER_STEPS = {
    ("accumulate_steps=2", "recompute=block"): 1e-4,
    ("parallel_slices=2", "precision=mixed_bfloat16"): 0.05,
    ("jit_compile=true",): 1e-4,
}
# Inputs that hide tokens.
_ATTENTION = "order", "perm_mask", "is_padding", "target_positions"
_RATE = 0.1
_ROUNDING = 1e-5  # Largest error of logits and hidden states.


def check_objective(kind: str, overrides: Sequence[str] = (), quick: bool = False) -> None:
    """Checks a pre-training objective with a tiny random model on random windows.

    No prediction depends on its own token, on a token that `order` or `perm_mask` hides from it or,
    by the memory, on a token of the next window; each depends on some token. All weights have
    finite gradients. Loss and gradients are the same with gradient accumulation, recomputation and
    `jit_compile`, and close to them in bfloat16. A model that is saved between two steps is
    restored to the bit.

    Args:
      kind: the name that the objective is registered under.
      overrides: further settings, as `key=value`: `auxiliary=[next_sentence]` checks an auxiliary
        objective. Targets must not keep their own tokens, as some do in BERT's denoising. Without
        the compiled step (`jit_compile=false`), a check takes half the time.
      quick: whether to check dependencies and the gradients of one step alone, in a second.

    Raises:
      AssertionError: the objective fails a check, which the message names.
      ConfigError: the objective does not work with the tiny configuration without `overrides`.

    Example:
      >>> check_objective("denoising", ["mem_len=0", "target_draws=1"])
    """
    config = XLNetConfig.from_dict(TINY).changed([f"objective.kind={kind}", *overrides])
    check_training(config, {} if quick else OTHER_STEPS, is_restored=not quick)


def check_training(
    config: XLNetConfig, other_steps: Mapping[tuple[str, ...], float], is_restored: bool
) -> None:
    """Checks what predictions depend on, steps of pre-training, and a restored model.

    Args:
      config: the configuration.
      other_steps: other forms of a step, see `check_steps`.
      is_restored: whether to save the model between two steps and to restore it.
    """
    _check_dependencies(config)
    model = check_steps(config, XLNetPretrainer, [_windows(config, 2)], other_steps)
    if is_restored:
        _check_restored(config, model)


def check_steps(
    config: XLNetConfig,
    create: Callable,
    batches: Sequence[Any],
    other_steps: Mapping[tuple[str, ...], float] = MappingProxyType(OTHER_STEPS),
) -> Any:
    """Checks the gradients of a model, also as other implementations of its step compute them.

    Args:
      config: the configuration.
      create: creates the model from a configuration.
      batches: batches that together depend on all weights.
      other_steps: {settings of another form of the step: the largest relative error of its
        gradients}.

    Returns:
      The model after a step for each batch.
    """
    model, loss, gradients = _steps(config, create, batches)
    unused = [variable.name for variable in model.encoder.only_pretrained]
    for name, gradient in gradients:
        refuse(~np.isfinite(gradient), f"{name}: the gradient is not finite")
        # A softmax over tokens does not change with one bias for all of them.
        is_zero = gradient.size > 1 and not gradient.any()
        refuse(is_zero and name not in unused, f"{name}: there is no gradient")
    for overrides, error in other_steps.items():
        other = config
        for override in overrides:
            with contextlib.suppress(ConfigError):  # Some networks refuse recomputation.
                other = other.changed([override])
        if "jit_compile=true" in overrides and config.training.jit_compile is False:
            continue
        _, other_loss, others = _steps(other, create, batches)
        differ = []
        for (name, expected), (_, gradient) in zip(gradients, others, strict=True):
            distance = np.linalg.norm(gradient - expected)
            if distance > error * (np.linalg.norm(expected) + 0.1):
                differ.append(name)
        is_other = bool(differ) or abs(other_loss - loss) > error
        what = f"the loss is {other_loss:.5f}, and {loss:.5f} without; other gradients: {differ}"
        refuse(is_other, f"with {', '.join(overrides)}, {what}")
    return model


def refuse(is_wrong: Any, sentence: str) -> None:
    """Raises `AssertionError` where an array is true, with the first place if it has axes."""
    for place in np.argwhere(is_wrong)[:1]:
        raise AssertionError(f"{sentence} {tuple(place.tolist()) or ''}".rstrip())


def _windows(config: XLNetConfig, seed: int) -> dict[str, tf.Tensor]:
    """A random batch, as of `pretraining_dataset`, except that all parts have two segments."""
    rng, shape = np.random.default_rng(seed), (config.training.batch_size, config.data.seq_len)
    token_ids = rng.integers(NUM_SPECIAL, config.model.vocab_size, shape)
    token_ids[:, [2, -3, -2, -1]] = EOD_ID, SEP_ID, SEP_ID, CLS_ID
    rows, is_text = np.arange(shape[0]), token_ids >= NUM_SPECIAL
    integers = {
        "token_ids": token_ids,
        "segment_ids": np.tile(np.arange(shape[1]) // 3 % 2, [shape[0], 1]),
        "letter_case": np.where(is_text, token_ids % 3 - 1, -1),
        "context_length": rng.integers(0, 11, shape[0]),
        "is_next": rows // 2 % 2,
        "epoch": rows,
    }
    flags = {
        "is_word_start": rng.random(shape) < 0.7,
        "can_be_target": is_text,
        "is_reversed": rows % 2 == 1,
    }
    windows = {name: tf.constant(value, tf.int32) for name, value in integers.items()}
    windows |= {name: tf.constant(value) for name, value in flags.items()}
    return windows | {"window_id": tf.constant(rng.integers(0, 1 << 40, shape[0]))}


def _check_dependencies(config: XLNetConfig) -> None:
    """Compares windows with copies that have another token at position j = 0, 1, …"""
    model, copies = XLNetPretrainer(config), config.data.seq_len + 1
    windows = {name: tf.repeat(x, copies, axis=0) for name, x in _windows(config, 1).items()}
    is_j = tf.tile(tf.eye(copies)[:, :-1] > 0, [config.training.batch_size, 1])
    ids, num_pieces = windows["token_ids"] - NUM_SPECIAL, config.model.vocab_size - NUM_SPECIAL
    is_other = is_j & windows["can_be_target"]
    windows["token_ids"] = NUM_SPECIAL + tf.where(is_other, (ids + 1) % num_pieces, ids)
    task = model.make_permutation(windows)
    outputs, inputs = model(task.inputs), task.inputs

    def parts(x: tf.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Values of windows [B, …], and whether a copy has another one, bool [B, J, …]."""
        x = tf.reshape(x, [-1, copies, *x.shape[1:]]).numpy()
        return x[:, -1], np.abs(x[:, :-1] - x[:, -1:]) > _ROUNDING

    mask = TwoStreamAttentionMask()(
        inputs["token_ids"], **{name: inputs.get(name) for name in _ATTENTION}
    )
    attended = {"content": can_attend(mask.content, mask.keys, False)}
    attended["query"] = can_attend(mask.query, mask.keys, False)
    can_attend_BPT, _ = parts(tf.cast(prediction_rows(attended, inputs), tf.int32))
    is_target_BP = parts(task.mask_BP)[0] > 0
    depends_BJP = parts(outputs["logits"])[1].any(-1) & is_target_BP[:, None]
    is_hidden_BJP = np.einsum("bjt,bpt->bjp", parts(inputs["token_ids"])[1], can_attend_BPT) == 0
    own_BJP, where = depends_BJP & parts(task.labels_BP)[1], "; row, position and target:"
    refuse(own_BJP, f"a prediction depends on its own token{where}")
    refuse(depends_BJP & is_hidden_BJP, f"a prediction depends on a token that is hidden{where}")
    is_idle_BP = is_target_BP & can_attend_BPT.any(2) & ~depends_BJP.any(1)
    refuse(is_idle_BP, "a prediction depends on no token; row and target:")
    if "memory" in outputs and config.data.reuse_len:
        changes_BJLMD = parts(tf.transpose(outputs["memory"], [1, 0, 2, 3]))[1]
        is_next_BJ = changes_BJLMD[:, config.data.reuse_len :].any((2, 3, 4))
        refuse(is_next_BJ, "the memory depends on a token of the next window; row and token:")


def _steps(
    config: XLNetConfig, create: Callable, batches: Sequence[Any]
) -> tuple[Any, float, list[tuple[str, np.ndarray]]]:
    """A model after steps of gradient descent, their mean loss, and sums of gradients by name."""
    keras.utils.set_random_seed(3)
    model = create(config)
    model.compile(keras.optimizers.SGD(_RATE, momentum=0.9))
    model.optimizer.build(model.trainable_variables)  # Or the step would be traced twice.
    before = [variable.numpy() for variable in model.trainable_variables]
    step = model.train_step
    if config.training.jit_compile:
        step = tf.function(step, jit_compile=True)
    for batch in batches:
        metrics = step(batch)
    pairs = zip(before, model.trainable_variables, strict=True)
    changes = [(new.name, (old - new.numpy()) / _RATE) for old, new in pairs]
    return model, float(metrics["loss"]), changes


def _check_restored(config: XLNetConfig, model: XLNetPretrainer) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        again = keras.models.load_model(f"{folder}/model.keras")
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(f"{folder}/state")
        state = tf.train.Checkpoint(model=again, optimizer=again.optimizer)
        state.read(f"{folder}/state").assert_existing_objects_matched()
    model.train_step(_windows(config, 3))
    again.train_step(_windows(config, 3))
    for one, other in zip(model.variables, again.variables, strict=True):
        what = f"{one.name}: another value after a model was saved and restored between two steps"
        refuse(not np.array_equal(one, other, equal_nan=True), what)
