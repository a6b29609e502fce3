"""The recipes in configs/ load, say how they are run, and hold the figures they claim."""

import pathlib

import pytest

from official.xlnet.config import XLNetConfig

CONFIGS = sorted((pathlib.Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_recipe_loads_and_opens_with_its_commands(path):
    config = XLNetConfig.load(str(path))
    head = path.read_text().split("\nmodel:")[0]
    assert f"--config=configs/{path.name}" in head
    if "xlnet vocab" in head:
        assert f"--size={config.model.vocab_size}" in head


def test_large_is_table_7_of_the_paper():
    config = XLNetConfig.load(str(next(path for path in CONFIGS if path.name == "large.yaml")))
    model, data, training = config.model, config.data, config.training
    assert (model.num_layers, model.d_model, model.num_heads, model.d_head) == (24, 1024, 16, 64)
    assert (model.d_inner, model.vocab_size, model.mem_len) == (4096, 32000, 384)
    assert (model.dropout, model.dropatt) == (0.1, 0.1)
    assert (data.seq_len, data.reuse_len, data.num_predict, data.target_ratio) == (512, 256, 85, 6)
    assert data.bidirectional
    assert (training.batch_size, training.learning_rate, training.num_steps) == (8192, 4e-4, 500000)
    assert (training.warmup_steps, training.adam_epsilon) == (40000, 1e-6)
    assert (training.weight_decay, training.decay_power) == (0.01, 1.0)
