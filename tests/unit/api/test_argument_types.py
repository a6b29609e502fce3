"""Arguments of another type at the door of the public classes and functions: one sentence."""

import math
import pathlib

import numpy as np
import pandas as pd
import pytest

from official import xlnet
from official.xlnet.errors import XLNetError
from tests.helpers.tiny import tiny_config, tiny_encoder

WRONG = [b"x", -1, math.nan, None, object(), ["x"], ("x", "y"), {"x": 1}, np.zeros(2), "x"]
WRONG += [pathlib.Path("x"), pd.Series(["x", None])]


@pytest.fixture(scope="module")
def right(vocab_file):
    """{name: (function, its right arguments)}."""
    encoder, tokenizer = tiny_encoder(vocab_size=2000, num_layers=1), xlnet.Tokenizer(vocab_file)
    config = tiny_config(num_layers=1)
    return {
        "GraphTokenizer": (xlnet.GraphTokenizer, {"tokenizer": tokenizer}),
        "Scorer": (lambda model: xlnet.Scorer(model, tokenizer), {"model": None}),
        "TextEmbedder": (lambda encoder: xlnet.TextEmbedder(encoder, tokenizer), {"encoder": None}),
        "XLNetClassifier": (xlnet.XLNetClassifier, {"encoder": encoder, "num_classes": 2}),
        "XLNetEncoder": (xlnet.XLNetEncoder, {"config": config}),
        "XLNetPretrainer": (xlnet.XLNetPretrainer, {"config": config}),
        "XLNetTaskModel": (xlnet.XLNetTaskModel, {"config": config}),
        "XLNetConfig.from_dict": (xlnet.XLNetConfig.from_dict, {"tree": {}}),
        "create_optimizer": (
            xlnet.create_optimizer,
            {"training": config.training, "num_layers": 1},
        ),
        "save_pretrained": (
            xlnet.save_pretrained,
            {"model": encoder, "model_dir": "/nowhere/x", "tokenizer": tokenizer},
        ),
    }


def test_a_wrong_type_is_named(right):
    for function, arguments in right.values():
        for argument in arguments:
            # `save_pretrained` would write to any other path.
            for value in [""] if argument == "model_dir" else WRONG:
                with pytest.raises(
                    (XLNetError, TypeError), match=r"expected|unknown key"
                ) as caught:
                    function(**{**arguments, argument: value})
                assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)
