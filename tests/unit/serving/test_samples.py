"""Configuration of servers beside an export, whatever its folder is called."""

import re
from unittest import mock

import pytest
import yaml
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from official.xlnet.serving.samples import write_samples


@pytest.mark.parametrize(
    "folder", ["sst2", "2024", "yes", "a: b", 'a"b', "[x]", "%s", "${HOME}", "{name}", "é"]
)
def test_the_name_of_a_folder_breaks_no_file(tmp_path, folder):
    output = tmp_path / folder
    output.mkdir()
    write_samples(str(output), mock.Mock(sample_texts=lambda length: {"text": ["the " * length]}))
    config = text_format.Parse((output / "models.config").read_text(), ModelServerConfig())
    [model] = config.model_config_list.config
    tree = yaml.safe_load((output / "docker-compose.yaml").read_text())
    [(name, service)] = tree["services"].items()
    assert isinstance(name, str) and re.fullmatch(r"[a-zA-Z0-9._-]+", name)
    assert service["volumes"] == [f".:{model.base_path}:ro"] and model.name == name
    assert f"--model_config_file={model.base_path}/models.config" in service["command"]
    assert service["environment"] == {"TF_ENABLE_ONEDNN_OPTS": "1"}
    assert f"models/{name}:predict" in (output / "README.md").read_text()
    assert name == folder or folder not in ("sst2", "2024", "yes")
