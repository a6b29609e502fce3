"""Arguments of the Python API: right ones in another form, and wrong ones."""

import pathlib

import numpy as np
import pandas as pd

from official import xlnet
from tests.helpers.wrong.files import VALUES

# What a caller may pass by mistake. Large counts are no mistake, they only take long.
WRONG = [value for value in VALUES if not isinstance(value, int | float) or abs(value) < 99]
WRONG += [float("nan"), float("inf"), b"the", ("the",), {"the"}, object(), ["the", b"of"], [["a"]]]
WRONG += [np.array(["the"]), np.array([1.5]), "\0", "../", 3 + 4j, pd.Series(["the", None])]


def other_forms(value, is_example=False):
    """The same argument as other callers write it; a tuple of `is_example` is one example."""
    if isinstance(value, str):
        return [np.str_(value), *([pathlib.Path(value)] if "/" in value else [])]
    if isinstance(value, list):
        forms = [list(value), (x for x in value), np.array(value), pd.Series(value)]
        return forms if is_example else [tuple(value), *forms]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [np.array(value)[()], *([np.float32(value)] if isinstance(value, float) else [])]
    return [value]


def calls_by_path(world):
    """{name: (function, its good arguments)} of the Python API, with models by their paths."""
    language, task = str(world / "language"), str(world / "task")
    texts = ["the water", "of"]
    records = {"path": str(world / "data"), "batch_size": 2, "split": "train", "start_step": 1}
    return {
        "score": (xlnet.score, {"model": language, "texts": texts, "num_orders": 2, "seed": 1}),
        "generate": (xlnet.generate, {"model": language, "prompts": texts, "num_tokens": 2}),
        "embed": (xlnet.embed, {"model": language, "texts": texts, "layer": 1, "batch_size": 2}),
        "predict": (xlnet.predict, {"model": task, "inputs": texts}),
        "evaluate": (
            xlnet.evaluate,
            {"model": task, "data": str(world / "dev.tsv"), "max_lost": 0.5},
        ),
        "load_config": (xlnet.load_config, {"path": task, "overrides": ["model.dropout=0.5"]}),
        "load_encoder": (xlnet.load_encoder, {"model_dir": language}),
        "load_tokenizer": (xlnet.load_tokenizer, {"path": language}),
        "pretraining_dataset": (xlnet.pretraining_dataset, records),
    }
