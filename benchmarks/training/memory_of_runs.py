"""Resident memory of a process that makes, uses and drops one model after the other.

    python -m benchmarks.training.memory_of_runs

The model has 80 MB of weights. Each loop runs in a fresh process. The last line of output is JSON:
{loop: [megabytes after each turn]}.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import tempfile
from typing import Any

from benchmarks.harness.command_line import parse
from benchmarks.harness.models import run_xlnet
from benchmarks.harness.worker import resident_bytes

_MODEL = {"d_model": 512, "d_inner": 2048, "num_heads": 8, "num_layers": 6, "mem_len": 0}
_OVERRIDES = [
    *(f"model.{key}={value}" for key, value in _MODEL.items()),
    "training.num_steps=3",
    "training.checkpoint_steps=3",
    "training.warmup_steps=0",
    "training.batch_size=4",
    "task.max_length=32",
]
_ROWS = [(f"the {word} was made of water", word) for word in ("fine", "dull") * 8]
# Turns of each loop; "save" writes the model that the later ones load.
_TURNS = {"save": 1, "finetune": 4, "finetune, 5 runs": 1, "fit": 6, "generate": 9, "fill": 9}


def _turn(loop: str, turn: int, folder: str) -> None:
    import numpy as np

    from official import xlnet
    from official.xlnet.modeling.ops.keras import keras

    vocab, model = f"{folder}/spiece.model", f"{folder}/model"
    if loop == "save":
        config = xlnet.XLNetConfig.from_dict({"model": {**_MODEL, "vocab_size": 300}})
        xlnet.save_pretrained(xlnet.XLNetPretrainer(config), model, vocab)
    elif loop.startswith("finetune"):
        options: dict[str, Any] = {
            "output": f"{folder}/{loop}{turn}",
            "vocab": vocab,
            "set": _OVERRIDES,
        }
        if loop.endswith("runs"):
            xlnet.finetune_repeatedly(None, _ROWS, _ROWS, runs=5, **options)
        else:
            xlnet.finetune(None, _ROWS, _ROWS, **options)
    elif loop == "fit":
        keras.backend.clear_session()
        classifier = xlnet.XLNetClassifier(xlnet.load_encoder(model), 2)
        classifier.compile("adam", "sparse_categorical_crossentropy")
        texts = xlnet.Tokenizer(vocab)([text for text, _ in _ROWS])
        classifier.fit(texts, np.arange(len(_ROWS)) % 2, batch_size=4, verbose=0)
    elif loop == "generate":
        xlnet.generate(model, ["the water", "it was made"], 8)
    else:
        xlnet.fill_blanks(model, ["the ____ of water"])


def _run(loop: str, folder: str) -> list[int]:
    megabytes = []
    for turn in range(_TURNS[loop]):
        _turn(loop, turn, folder)
        gc.collect()
        megabytes.append(round(resident_bytes() / 1e6))
    return megabytes


def main() -> None:
    parse(__doc__)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        run_xlnet("vocab", "--input=README.md", f"--output={folder}", "--size=300")
        for loop in _TURNS:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                results[loop] = pool.apply(_run, (loop, folder))
            print(loop, results[loop], flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
