"""Reads the text of an optimized module. Neither jax nor TensorFlow is needed."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s64": 8, "u64": 8, "f64": 8}
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?(%[\w.\-]+) = (\([^=]*?\)|\S+) ([\w\-]+)\((.*?)\)(.*)")
_NO_KERNEL = {"parameter", "get-tuple-element", "tuple", "bitcast", "constant"}
_SCRATCH = re.compile(r"s8\[\d+\]")  # Of cuBLAS.


class Kernel(NamedTuple):
    """A kernel of a module.

    Attributes:
      kind: the operation, with the kind of a fusion or the target of a library's call.
      moved: bytes that it reads and writes.
      shape: of its results.
      operation: what it comes from.
    """

    kind: str
    moved: int
    shape: str
    operation: str


def kernels_of(text: str) -> list[Kernel]:
    """The kernels of an optimized module; of a conditional, those of the branch that moves most."""
    computations: dict[str, list[str]] = {}
    current: list[str] = []
    for line in re.sub(r"/\*.*?\*/", "", text).splitlines():  # Numbers of a tuple's elements.
        head = re.match(r"(ENTRY )?(%[\w.\-]+) .*\{$", line)
        if head:
            current = computations["ENTRY" if head[1] else head[2]] = []
        current.append(line)
    return _kernels_of("ENTRY", computations)


def _kernels_of(computation: str, computations: dict[str, list[str]]) -> list[Kernel]:
    shapes: dict[str, str] = {}
    kernels = []
    for match in filter(None, map(_INSTRUCTION.match, computations[computation])):
        name, shape, operation, arguments, rest = match.groups()
        shapes[name] = shape
        if operation in _NO_KERNEL:
            continue
        if operation in ("conditional", "call"):
            branches = [name for name in re.findall(r"%[\w.\-]+", rest) if name in computations]
            lists = [_kernels_of(branch, computations) for branch in branches]
            kernels += max(lists, key=lambda kernels: sum(kernel.moved for kernel in kernels))
            continue
        detail = re.search(r'kind=(\w+)|custom_call_target="([^"]+)"', rest)
        kind = f"{operation} {detail[1] or detail[2]}" if detail else operation
        read = [shapes.get(operand, "") for operand in re.findall(r"%[\w.\-]+", arguments)]
        moved = size(_SCRATCH.sub("", " ".join([shape, *read])))
        source = re.search(r'op_name="([^"]+)"', rest)
        kernels.append(Kernel(kind, moved, shape, source[1] if source else "?"))
    return kernels


def estimates_of(text: str) -> list[tuple[int, str, str]]:
    """(cycles, shape of results, operation it comes from) of what a TPU's compiler estimates."""
    found = []
    for line in text.splitlines():
        cycles = re.search(r'"estimated_cycles":"(\d+)"', line)
        if cycles:
            shape = re.search(r" = (.*?) [\w\-]+\(", line)
            source = re.search(r'op_name="([^"]+)"', line)
            found.append((int(cycles[1]), shape[1] if shape else "", source[1] if source else "?"))
    return found


def count_loops(text: str) -> int:
    """Number of `while` instructions of a module."""
    return len(re.findall(r" while\(", text))


def all_reduced(text: str) -> int:
    """Bytes of what a module sums over devices."""
    results = re.findall(r" = (.*) all-reduce(?:-start)?\(", text)
    return sum(map(size, results))


def size(shapes: str) -> int:
    """Bytes of all arrays of a shape as HLO writes it, e.g. `(f32[2,3]{1,0}, pred[])`."""
    return sum(
        _BYTES.get(dtype, 4) * math.prod(int(length) for length in lengths.split(",") if length)
        for dtype, lengths in re.findall(r"(\w+)\[([\d,]*)\]", shapes)
    )


def largest_constant(text: str) -> int:
    """Bytes of the largest constant of a module."""
    constants = re.findall(r" = (\w+\[[\d,]*\])\S* constant\(", text)
    return max(map(size, constants), default=0)
