"""Writes a step as StableHLO that `run_bundle.py` reads.

    python write_portable.py STEP

Adds `step.stablehlo` to the folder, and to its description what the module returns.
"""

from __future__ import annotations

import json
import os
import sys

from portable import load

if __name__ == "__main__":
    (folder,) = sys.argv[1:]
    step = load(folder)
    with open(os.path.join(folder, "step.stablehlo"), "wb") as file:
        file.write(step.module)
    with open(os.path.join(folder, "step.json"), "w", encoding="utf-8") as file:
        json.dump(step.description, file, indent=1)
    os.remove(os.path.join(folder, "step.mlir"))
