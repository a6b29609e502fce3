"""Keys of the survey in a section of another class."""

import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.projects.survey.settings import UniversalModelConfig


def test_a_section_as_another_class_has_it_is_not_written_to():
    config = XLNetConfig.from_dict({"model": {"depth": "shared", "ponder_weight": 0.5}})
    view = config.model.settings(UniversalModelConfig)
    assert (view.ponder_weight, view.step_encoding, view.depth) == (0.5, True, "shared")
    assert config.model.as_dict()["step_encoding"] is True  # Of the chosen depth.
    assert "step_encoding" not in XLNetConfig().model.as_dict()
    with pytest.raises(AttributeError, match=r"config\.set\('model\.ponder_weight=0\.1'\)"):
        view.ponder_weight = 0.1
