"""The examples in docstrings of training, tasks, serving and objectives give what they say."""

import doctest
import importlib

import pytest

MODULES = {
    "modeling.objectives.permutation_sampling": 2,
    "serving.graph.ragged": 1,
    "tasks.batching": 3,
    "tasks.multiple_choice": 1,
    "tasks.question_answering": 1,
    "tasks.ranking_metrics": 4,
    "tasks.registry": 1,
    "training.optimization": 3,
}


@pytest.mark.parametrize(("name", "number"), MODULES.items())
def test_examples(name, number):
    module = importlib.import_module(f"official.xlnet.{name}")
    assert doctest.testmod(module) == (0, number)
