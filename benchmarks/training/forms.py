"""What each fast form of the training step earns: CPU time with a plain form in its place.

    python -m benchmarks.training.forms --shape=base3

Steps with and without a form alternate, and the medians of their CPU time are compared; so other
work on the machine changes the ratio little. A form that earns nothing at any shape should go.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from unittest import mock

import tensorflow as tf

from benchmarks.harness.command_line import flag, parse
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
from official.xlnet.modeling.layers import feed_forward, losses, relative_attention, xlnet_block
from official.xlnet.modeling.networks import xlnet_encoder
from official.xlnet.modeling.ops.visibility import can_attend


def _gathered_to_keys(self, score_BNPR, position_BP):
    first_BP = self.num_tokens - 1 - position_BP
    return relative_shift._gathered(score_BNPR, first_BP, self.num_keys)


def _gathered_from_keys(self, score_BNPK, position_BP):
    margin = self.num_tokens - 1
    return relative_shift._gathered(score_BNPK, position_BP - margin, self.num_keys + margin)


def _plain_attend(terms: attend.ScoreTerms, value_BNKH, rows, keys, shift, causal, rate, seed):
    p_BNQK = tf.nn.softmax(attend._masked_scores(shift, causal, *terms, rows, keys))
    output_BNQH = tf.matmul(tf.cast(dropout(p_BNQK, rate, seed), value_BNKH.dtype), value_BNKH)
    sees_any_BQ = tf.reduce_any(can_attend(rows, keys, causal), axis=-1)
    return output_BNQH * tf.cast(sees_any_BQ, output_BNQH.dtype)[:, None, :, None]


def _plain_attention(*arguments, recompute, return_probabilities, **options):
    return reference.attention(*arguments, **options)


# What is replaced by what: object, name, plain form.
FORMS: dict[str, tuple[tuple[object, str, object], ...]] = {
    "attention": ((relative_attention, "_attention", _plain_attention),),
    "gradients of attention": ((attention, "attend", _plain_attend),),
    "bits of dropout": (
        *(
            (
                owner,
                "keep_mask",
                lambda shape, rate, seed: tf.random.stateless_uniform(shape, seed) >= rate,
            )
            for owner in (attend, stateless_dropout)
        ),
    ),
    "padded inner rows": ((feed_forward, "inner_width", lambda d_inner, dtype: d_inner),),
    "merged projections": (
        (attention, "to_heads", functools.partial(tf.einsum, "bxd,dnh->bnxh")),
        (attention, "from_heads", functools.partial(tf.einsum, "bnxh,dnh->bxd")),
    ),
    "rolled rows": (
        (relative_shift.TargetRows, "to_keys", _gathered_to_keys),
        (relative_shift.TargetRows, "from_keys", _gathered_from_keys),
    ),
    "row sums as products": (
        *(
            (owner, "row_sums", functools.partial(tf.reduce_sum, axis=-1))
            for owner in (attend, xlnet_block)
        ),
    ),
    "fused element-wise work": (
        (attend, "compiled", functools.partial),
        (attention, "fused", functools.partial),
        (xlnet_block, "fused", functools.partial),
    ),
    "cross entropy": (
        (
            losses,
            "_cross_entropy",
            lambda logits_BPV, labels_BP: tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels_BP, logits_BPV
            ),
        ),
    ),
    "gradient of the embedding": (
        (xlnet_encoder, "look_up", lambda table, ids: (tf.gather(table, ids), table)),
    ),
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


def _step(form: str | None, shape: str) -> Callable[[], float]:
    """Returns a function that runs a step and returns its CPU time, in seconds."""
    with plain(form):
        run = ours.build("pretrain", dataclasses.asdict(SHAPES[shape])).run
        run(), run()  # Traced and compiled.

    def cpu_seconds() -> float:
        start = time.process_time()
        run()
        return time.process_time() - start

    return cpu_seconds


def main() -> None:
    """Prints the CPU time with each plain form, relative to the step as it is."""
    options = parse(
        __doc__,
        shape=flag("small", "sizes of model and batch", choices=sorted(SHAPES)),
        rounds=flag(12, "steps of each form"),
        forms=flag(list(FORMS), "forms to measure"),
    )
    as_it_is = _step(None, options.shape)
    for form in options.forms:
        without = _step(form, options.shape)
        fast, slow = zip(*((as_it_is(), without()) for _ in range(options.rounds)), strict=True)
        ratios = [b / a for a, b in zip(fast, slow, strict=True)]
        row = {
            "shape": options.shape,
            "form": form,
            "cpu_seconds": round(statistics.median(fast), 3),
            "ratio": round(statistics.median(ratios), 3),
            "least": round(min(slow) / min(fast), 3),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
