"""Keys of the survey in a section of another class."""

import pytest

from official import xlnet
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError
from official.xlnet.jobs.finetuning import task_configuration
from official.xlnet.projects.survey.settings import UniversalModelConfig


def test_a_section_as_another_class_has_it_is_not_written_to():
    config = XLNetConfig.from_dict({"model": {"depth": "shared", "ponder_weight": 0.5}})
    view = config.model.settings(UniversalModelConfig)
    assert (view.ponder_weight, view.step_encoding, view.depth) == (0.5, True, "shared")
    assert config.model.as_dict()["step_encoding"] is True  # Of the chosen depth.
    assert "step_encoding" not in XLNetConfig().model.as_dict()
    with pytest.raises(AttributeError, match=r"config\.set\('model\.ponder_weight=0\.1'\)"):
        view.ponder_weight = 0.1


@pytest.mark.parametrize("network", ["xlnet", "gpt"])
def test_the_model_says_its_objective_and_its_longest_input(tmp_path, network):
    tree = {
        "model": {"network": network, "attention_type": "uni", "max_positions": 71, "mem_len": 0},
        "data": {"seq_len": 71, "reuse_len": 63, "num_predict": 7, "bidirectional": False},
        "objective": {"kind": "causal"},
    }
    xlnet.XLNetConfig.from_dict(tree).save(str(tmp_path))
    config = task_configuration("classification", None, [], str(tmp_path))
    assert config.objective.kind == "causal"  # What `task.lm_weight` reads follows from it.
    assert config.task.max_length == (71 if network == "gpt" else 128)
    with pytest.raises(ConfigError, match=r"at most model.max_positions = 71 .*got 72"):
        overrides = ["task.max_length=72", "model.network=gpt"]
        task_configuration("classification", None, overrides, str(tmp_path))
