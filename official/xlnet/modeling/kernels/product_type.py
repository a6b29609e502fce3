"""The type that operands of matrix products are rounded to: float32, or bfloat16.

CPUs with the instructions `avx512_bf16` or `amx_bf16` multiply bfloat16 faster than float32 (1.9
times as fast on an AMD EPYC), and sum in float32. In `matmul_precision("bfloat16")` every product
of the encoder and the LM head rounds its operands to bfloat16; sums over rows, softmax, norms,
residuals, moments and weights stay float32. That is what TPUs do with float32 by default. With
`mixed_bfloat16` everything between the products is bfloat16 too, which is slower than float32 on a
CPU.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Annotated

import tensorflow as tf

from official.xlnet.configs.choices import PRODUCTS
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf
from official.xlnet.modeling.kernels.device_forms import has_accelerator

CPU_FLAGS = "/proc/cpuinfo"  # Of Linux.
_type = tf.float32


@public()
@contextlib.contextmanager
def matmul_precision(name: Annotated[str, OneOf(PRODUCTS)] | None) -> Iterator[None]:
    """Context manager: graphs traced inside round float32 operands of matrix products to a type.

    The type applies to the whole process: models of other threads compute with it, too. A model
    that was called before keeps the type of its first call.

    Args:
      name: `float32` or `bfloat16`; None for the type as it is.

    Raises:
      ConfigError: another name.

    Example:
      >>> with matmul_precision("bfloat16"):
      ...     multiply(tf.constant([[1.001]]), tf.constant([[3.0]])).numpy()
      array([[3.]], dtype=float32)
    """
    global _type
    before, _type = _type, tf.dtypes.as_dtype(name or _type)
    try:
        yield
    finally:
        _type = before


def multiply(
    a: tf.Tensor, b: tf.Tensor, product: Callable[..., tf.Tensor] = tf.matmul, **how
) -> tf.Tensor:
    """A matrix product of the network, in the dtype of `a`.

    Forward and backward pass share the rounded operands. A gradient is float32 before it is added
    to another one.

    Args:
      a: the left operand; the result has its dtype.
      b: the right operand, which may be stored in fewer bytes.
      product: `tf.matmul`, `tf.tensordot` or `tf.einsum` with its equation.
      **how: further arguments of `product`.
    """
    dtype = _type if a.dtype == tf.float32 else a.dtype
    return tf.cast(product(tf.cast(a, dtype), tf.cast(b, dtype), **how), a.dtype)


def advice_on_products(name: str) -> str:
    """A sentence if this CPU would be faster with the other type of products; else empty."""
    multiplies = cpu_multiplies_bfloat16() and not has_accelerator()
    if multiplies and name == "float32":
        return (
            "this CPU has instructions for bfloat16: with --set=training.products=bfloat16, a step "
            "takes about a fifth less time, and the numbers it multiplies are rounded to three "
            "digits (docs/performance.md)"
        )
    if name == "bfloat16" and not multiplies and not has_accelerator():
        return (
            "this CPU has no instructions for bfloat16 (avx512_bf16 or amx_bf16): "
            "training.products=bfloat16 is slower than float32 here"
        )
    return ""


def cpu_multiplies_bfloat16() -> bool:
    """Whether the CPU has instructions for products of bfloat16, as far as the system says."""
    try:
        with open(CPU_FLAGS, encoding="utf-8") as file:
            return bool(re.search(r"\b(avx512_bf16|amx_bf16)\b", file.read()))
    except FileNotFoundError:
        return False
