"""FLOP counting: matrix products in the graph of a traced step or in XLA's HLO.

Counts are exact, so tests can detect regressions that timings would hide in noise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf


class Counted(NamedTuple):
    """One matrix product of a graph.

    Attributes:
      name: name of the operation.
      flops: floating-point operations, with multiplications and additions counted separately.
      shapes: shapes of the two operands and the result.
    """

    name: str
    flops: int
    shapes: tuple[tuple[int, ...], ...]


def products_of(graph: tf.Graph, repeats: int = 1) -> Iterator[Counted]:
    """Yields the matrix products of a graph and, for each call, of the functions it calls.

    Products with a vector are left out, as they are sums (see `xla_kernels.row_sums`).

    Args:
      graph: graph of a concrete function with static shapes.
      repeats: number of iterations of each loop.

    Raises:
      ValueError: the shapes of a product are not static.
    """
    for operation in graph.get_operations():
        if operation.type in _PRODUCTS and not _has_vector(operation):
            yield _product(operation)
        for function in _called(operation):
            inner = graph._get_function(function).graph
            times = repeats if operation.type in ("While", "StatelessWhile") else 1
            yield from list(products_of(inner, repeats)) * times


_PRODUCTS = ("MatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum")


def _called(operation: tf.Operation) -> list[str]:
    """Returns the names of the functions that an operation calls."""
    names = []
    for attribute in operation.node_def.attr.values():
        functions = [attribute.func] if attribute.HasField("func") else attribute.list.func
        names += [function.name for function in functions]
    return [name for name in names if name]


def _has_vector(operation: tf.Operation) -> bool:
    return any(1 in x.shape[-2:] for x in operation.inputs)


def _product(operation: tf.Operation) -> Counted:
    shapes = tuple(tuple(x.shape) for x in (*operation.inputs, *operation.outputs))
    if any(None in shape for shape in shapes):
        raise ValueError(f"{operation.name}: expected static shapes, got {shapes}")
    return Counted(operation.name, 2 * math.prod(shapes[-1]) * _contracted(operation), shapes)


def _contracted(operation: tf.Operation) -> int:
    """Returns the size of the contracted axes of a product."""
    left, right = (operation.inputs[i].shape for i in range(2))
    if operation.type == "Einsum":
        inputs, output = operation.get_attr("equation").decode().split("->")
        sizes: dict[str, int] = {}
        for letters, shape in zip(inputs.split(","), (left, right), strict=True):
            sizes.update(zip(letters, shape, strict=True))
        return math.prod(size for letter, size in sizes.items() if letter not in output)
    transposed = operation.get_attr("transpose_a" if operation.type == "MatMul" else "adj_x")
    return left[-2 if transposed else -1]


def products_of_hlo(text: str) -> Iterator[Counted]:
    """Yields the `dot` instructions of an HLO module without loops.

    Args:
      text: text of the module, from `experimental_get_compiler_ir(...)(stage="hlo")`.
    """
    shapes = {
        name: tuple(int(size) for size in sizes.split(",") if size)
        for name, sizes in re.findall(r"%?([\w.-]+) = \w+\[([\d,]*)\]", text)
    }
    for name, operands, contracted in re.findall(
        r"%?([\w.-]+) = \w+\[[\d,]*\]\S* dot\(([^)]*)\).*lhs_contracting_dims={([\d,]*)}", text
    ):
        left, right = re.findall(r"%?([\w.-]+)(?:,|$)", re.sub(r"\w+\[[\d,]*\]\S* ", "", operands))
        summed = math.prod(shapes[left][int(axis)] for axis in contracted.split(",") if axis)
        flops = 2 * math.prod(shapes[name]) * summed
        yield Counted(name, flops, (shapes[left], shapes[right], shapes[name]))
