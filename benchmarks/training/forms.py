"""What each fast form of the training step earns: CPU time with a plain form in its place.

    python -m benchmarks.training.forms --shape=base3

Steps with and without a form alternate, and the medians of their CPU time are compared; so other
work on the machine changes the ratio little. A form that earns nothing at any shape should go.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Iterator
from unittest import mock

import tensorflow as tf
from absl import app, flags

from benchmarks.harness.workload import SHAPES
from benchmarks.training import ours
from official.xlnet.modeling.kernels import (
    attend,
    attention,
    relative_shift,
    stateless_dropout,
    xla_kernels,
)
from official.xlnet.modeling.kernels.stateless_dropout import dropout
from official.xlnet.modeling.layers import attention as reference
from official.xlnet.modeling.layers import feed_forward, relative_attention, xlnet_block
from official.xlnet.modeling.networks import xlnet_encoder
from official.xlnet.modeling.ops.visibility import can_attend

_SHAPE = flags.DEFINE_enum("shape", "small", sorted(SHAPES), "Sizes of model and batch.")
_ROUNDS = flags.DEFINE_integer("rounds", 12, "Steps of each form.", lower_bound=1)
_FORMS = flags.DEFINE_list("forms", None, "Forms to measure. Default: all.")


def _plain_shift(self, score_BNPR, position_BP):
    return reference.relative_shift(
        tf.einsum("bnpr->bpnr", score_BNPR), position_BP, self.num_tokens, self.num_keys
    )


def _plain_shift_back(self, score_BNPK, position_BP):
    num_distances = self.num_keys + self.num_tokens - 1
    first_BP = self.num_tokens - 1 - position_BP
    key_BPR = tf.range(num_distances) - first_BP[:, :, None]
    has_key_BPR = (key_BPR >= 0) & (key_BPR < self.num_keys)
    shape = tf.shape(score_BNPK)[:3]
    key_BNPR = tf.broadcast_to(
        tf.clip_by_value(key_BPR, 0, self.num_keys - 1)[:, None],
        [*tf.unstack(shape), num_distances],
    )
    score_BNPR = tf.gather(score_BNPK, key_BNPR, batch_dims=3)
    return tf.where(has_key_BPR[:, None], score_BNPR, tf.zeros([], score_BNPK.dtype))


def _plain_attend(terms, value_BNKH, rows, keys, pattern, rate, seed):
    p_BNQK = tf.nn.softmax(
        attend._masked_scores(pattern, terms.content, terms.positional, terms.segment, rows, keys)
    )
    output_BNQH = tf.matmul(tf.cast(dropout(p_BNQK, rate, seed), value_BNKH.dtype), value_BNKH)
    sees_any_BQ = tf.reduce_any(can_attend(rows, keys, pattern.causal), axis=-1)
    return output_BNQH * tf.cast(sees_any_BQ, output_BNQH.dtype)[:, None, :, None]


def _plain_keep_mask(shape, rate, seed):
    return tf.random.stateless_uniform(shape, seed) >= rate


def _plain_sums(x):
    return tf.reduce_sum(x, axis=-1)


def _to_heads(x_BXD, kernel_DNH):
    return tf.einsum("bxd,dnh->bnxh", x_BXD, kernel_DNH)


def _from_heads(x_BNXH, kernel_DNH):
    return tf.einsum("bnxh,dnh->bxd", x_BNXH, kernel_DNH)


def _plain_attention(*arguments, recompute, return_probabilities, **options):
    return reference.attention(*arguments, **options)


def _plain_look_up(table_VD, token_ids_BT):
    return tf.gather(table_VD, token_ids_BT), table_VD


def _uncompiled(function: Callable, *static) -> Callable:
    return lambda *tensors: function(*static, *tensors)


# What is replaced by what: object, name, plain form.
FORMS: dict[str, tuple[tuple[object, str, object], ...]] = {
    "attention": ((relative_attention, "_attention", _plain_attention),),
    "gradients of attention": ((attention, "attend", _plain_attend),),
    "bits of dropout": (
        (attend, "keep_mask", _plain_keep_mask),
        (stateless_dropout, "keep_mask", _plain_keep_mask),
    ),
    "padded inner rows": ((feed_forward, "inner_width", lambda d_inner, dtype: d_inner),),
    "merged projections": (
        (attention, "to_heads", _to_heads),
        (attention, "from_heads", _from_heads),
    ),
    "rolled rows": (
        (relative_shift.TargetRows, "to_keys", _plain_shift),
        (relative_shift.TargetRows, "from_keys", _plain_shift_back),
    ),
    "row sums as products": (
        (attend, "row_sums", _plain_sums),
        (xlnet_block, "row_sums", _plain_sums),
    ),
    "fused element-wise work": (
        (attend, "compiled", _uncompiled),
        (attention, "fused", _uncompiled),
        (xlnet_block, "fused", _uncompiled),
    ),
    "gradient of the embedding": ((xlnet_encoder, "look_up", _plain_look_up),),
}


@contextlib.contextmanager
def plain(form: str | None) -> Iterator[None]:
    """Context in which steps are traced with the plain form in the place of a fast one.

    Args:
      form: a key of `FORMS`, or None for the step as it is.
    """
    with contextlib.ExitStack() as stack:
        for owner, name, replacement in FORMS.get(form or "", ()):
            stack.enter_context(mock.patch.object(owner, name, replacement))
        # Kernels that were traced hold the forms of their time.
        xla_kernels.compiled.cache_clear()
        xla_kernels.fused.cache_clear()
        yield


def _step(form: str | None) -> Callable[[], float]:
    with plain(form):
        run = ours.build("pretrain", dataclasses.asdict(SHAPES[_SHAPE.value])).run
        run(), run()  # Traced and compiled.

    def cpu_seconds() -> float:
        start = time.process_time()
        run()
        return time.process_time() - start

    return cpu_seconds


def main(argv: list[str]) -> None:
    """Prints the CPU time with each plain form, relative to the step as it is."""
    del argv
    as_it_is = _step(None)
    for form in _FORMS.value or FORMS:
        without = _step(form)
        pairs = [(as_it_is(), without()) for _ in range(_ROUNDS.value)]
        fast = statistics.median(a for a, _ in pairs)
        ratios = [b / a for a, b in pairs]
        row = {
            "shape": _SHAPE.value,
            "form": form,
            "cpu_seconds": round(fast, 3),
            "ratio": round(statistics.median(ratios), 3),
            "least": round(min(b for _, b in pairs) / min(a for a, _ in pairs), 3),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    app.run(main)
