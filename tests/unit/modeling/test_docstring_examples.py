"""The examples in docstrings run, and give what they say."""

import doctest
import importlib

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig

PACKAGE = "official.xlnet.modeling"
MODULES = [
    "layers.feed_forward",
    "layers.relative_attention",
    "layers.relative_position",
    "layers.relative_segment",
    "layers.two_stream_mask",
    "layers.xlnet_block",
    "networks.xlnet_encoder",
    "ops.shapes",
]
# The layers by name, as somebody has them who has imported what the example uses.
NAMES = {
    "RelativePositionEncoding": "layers.relative_position",
    "TwoStreamAttentionMask": "layers.two_stream_mask",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"{PACKAGE}.{name}")
    names = {
        each: getattr(importlib.import_module(f"{PACKAGE}.{where}"), each)
        for each, where in NAMES.items()
    }
    names |= {"tf": tf, "np": np, "XLNetConfig": XLNetConfig} | vars(module)
    tests = doctest.DocTestFinder(exclude_empty=True).find(module, globs=names)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    results = [runner.run(test) for test in tests]
    assert sum(result.attempted for result in results) > 0, "there are no examples"
    assert sum(result.failed for result in results) == 0, "see above"
