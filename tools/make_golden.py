"""Regenerates the golden files of tests/golden: `python -m tools.make_golden`.

    hf_xlnet.npz   weights, inputs, outputs and gradients of the PyTorch XLNet of HF transformers,
                   for test environments without torch
    losses.json    losses of a few training steps of this implementation

Refactorings do not change them. Regenerate them only for intended numerical changes, and explain
the reason in the commit message.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from official.xlnet.cli import set_environment_defaults

set_environment_defaults()

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer  # noqa: E402
from tests.golden import runs  # noqa: E402
from tests.helpers.tiny import random_inputs  # noqa: E402
from tests.parity import hf_weights  # noqa: E402

SIZES = {"vocab_size": 17, "d_model": 10, "d_inner": 7, "mem_len": 5, "reuse_len": 3}

# {case: (HF configuration, arguments of `random_inputs`)}.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "bi": (
        {"bi_data": True, "clamp_len": 9},
        {"directions": True, "padding": True, "memory": 5, "order": "halves", "batch": 4},
    ),
    "uni": ({"attn_type": "uni", "ff_activation": "gelu"}, {"order": "all", "memory": 3}),
}


def hf_arrays() -> dict[str, np.ndarray]:
    """Creates the contents of `hf_xlnet.npz`, which `tests/golden/test_golden.py` reads."""
    arrays: dict[str, np.ndarray] = {}
    for seed, (case, (settings, arguments)) in enumerate(CASES.items()):
        hf = hf_weights.hf_model(seed, **SIZES, **settings)
        config = hf_weights.our_config(hf.config)
        ours = XLNetPretrainer(config)
        inputs = random_inputs(seed, tokens=11, targets=4, width=SIZES["d_model"], **arguments)
        inputs["token_ids"] %= SIZES["vocab_size"]
        labels = np.random.default_rng(seed).integers(
            0, SIZES["vocab_size"], [len(inputs["order"]), 4]
        )
        outputs = hf_weights.run_hf(hf, inputs, labels)
        arrays[f"{case}/config"] = np.array(json.dumps(config.as_dict()))
        arrays[f"{case}/labels"] = labels.astype(np.int32)
        for name, value in inputs.items():
            arrays[f"{case}/inputs/{name}"] = value
        for name, value in outputs.items():
            arrays[f"{case}/outputs/{name}"] = np.asarray(value, np.float32)
        weights, gradients = {}, {}
        for _, variable, parameter, transposed in hf_weights.pairs(hf, ours):
            weights[variable.name] = hf_weights.as_ours(parameter, variable, transposed)
            gradients[variable.name] = hf_weights.as_ours(parameter.grad, variable, transposed)
        # A single flat vector, since each array in the file has a large overhead.
        names = sorted(weights)
        arrays[f"{case}/names"] = np.array(names)
        for kind, values in (("weights", weights), ("gradients", gradients)):
            arrays[f"{case}/{kind}"] = np.concatenate([values[name].ravel() for name in names])
    return arrays


def main() -> None:
    """Writes both files atomically."""
    with open(runs.HF_FILE + ".tmp", "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **hf_arrays())
    os.replace(runs.HF_FILE + ".tmp", runs.HF_FILE)
    with open(runs.LOSSES_FILE + ".tmp", "w", encoding="utf-8") as file:
        json.dump(runs.training_losses(), file, indent=1)
        file.write("\n")
    os.replace(runs.LOSSES_FILE + ".tmp", runs.LOSSES_FILE)


if __name__ == "__main__":
    main()
