"""TensorFlow's module of a step as StableHLO that any release of jax reads.

    python portable.py STEP

adds `step.stablehlo`, which `run_bundle.py` reads, to the folder, and to its description what the
module returns.

Runs where jax is; TensorFlow is not needed. It works on the module with jax's own parts, which may
change: the release that it was written for is the one that `make tpu-check` installs.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any, NamedTuple

from jax._src.export._export import _module_to_bytecode
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

_DTYPES = {
    "i1": "bool",
    "i32": "int32",
    "i64": "int64",
    "ui32": "uint32",
    "f16": "float16",
    "f32": "float32",
    "bf16": "bfloat16",
}


class PortableStep(NamedTuple):
    """A step.

    Attributes:
      module: serialized StableHLO; its parameters are the batch, then the state.
      description: what `steps.write_step` says of it; and `outputs`, the shapes and types of what
        it returns, and `new_state`, pairs of an output and the state array whose new value it is.
    """

    module: bytes
    description: dict[str, Any]


def load(folder: str) -> PortableStep:
    """Reads what `steps.write_step` wrote."""
    description = json.loads(pathlib.Path(folder, "step.json").read_text(encoding="utf-8"))
    text = pathlib.Path(folder, "step.mlir").read_bytes()
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        main = ir.SymbolTable(module.operation)["main"]
        num_batch = len(description["batch"])
        new_state = [
            (output, parameter - num_batch) for output, parameter in _aliases(module).items()
        ]
        expected, got = description["batch"] + description["state"], _specs(main.type.inputs)
        assert got == expected, f"parameters of the module: expected {expected}, got {got}"
        outputs = _specs(main.type.results)
        _clean(module)
        serialized = _module_to_bytecode(module)
    description |= {"outputs": outputs, "new_state": sorted(new_state)}
    return PortableStep(serialized, description)


def _specs(types) -> list[dict[str, Any]]:
    tensors = [ir.RankedTensorType(kind) for kind in types]
    return [{"dtype": _DTYPES[str(x.element_type)], "shape": list(x.shape)} for x in tensors]


def _aliases(module: ir.Module) -> dict[int, int]:
    """{output: parameter} of variables that are updated, as TensorFlow says."""
    if "mhlo.input_output_alias" not in module.operation.attributes:
        return {}
    found = {}
    for entry in module.operation.attributes["mhlo.input_output_alias"]:
        (output,) = list(entry["output_index"])
        found[output] = entry["alias"]["parameter_number"].value
    return found


def _clean(module: ir.Module) -> None:
    """Removes operations that are not StableHLO: copies, which are identities, and hints."""
    copies = []

    def visit(operation):
        for name in list(operation.attributes):
            if name.startswith("mhlo."):
                del operation.attributes[name]
        if operation.name == "mhlo.copy":
            copies.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for copy in copies:
        copy.results[0].replace_all_uses_with(copy.operands[0])
        copy.erase()


def main() -> None:
    (folder,) = map(pathlib.Path, sys.argv[1:])
    step = load(str(folder))
    (folder / "step.stablehlo").write_bytes(step.module)
    (folder / "step.json").write_text(json.dumps(step.description, indent=1), encoding="utf-8")
    (folder / "step.mlir").unlink()


if __name__ == "__main__":
    main()
