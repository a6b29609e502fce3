"""The examples in docstrings run, and give what they say."""

import doctest
import importlib

import numpy as np
import pytest
import tensorflow as tf

from official import xlnet

MODULES = [
    "extensions.bert.bert_encoder",
    "extensions.bert.gpt_encoder",
    "extensions.universal.adaptive_depth",
    "extensions.universal.shared_depth",
    "modeling.depth.stacked",
    "modeling.layers.feed_forward",
    "modeling.layers.relative_attention",
    "modeling.layers.relative_position",
    "modeling.layers.relative_segment",
    "modeling.layers.two_stream_mask",
    "modeling.layers.xlnet_block",
    "modeling.networks.xlnet_encoder",
    "modeling.objectives.permutation_sampling",
    "modeling.ops.shapes",
    "tokenization.graph.ragged",
    "tasks.batching",
    "tasks.labels",
    "tasks.multiple_choice.choices",
    "tasks.ranking.metrics",
    "training.evaluation",
    "training.optimization",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"official.xlnet.{name}")
    # What somebody has imported who writes such lines.
    names = {"np": np, "tf": tf} | {each: getattr(xlnet, each) for each in xlnet.__all__}
    result = doctest.testmod(module, extraglobs={**names, **vars(module)})
    assert result.attempted > 0 and result.failed == 0
