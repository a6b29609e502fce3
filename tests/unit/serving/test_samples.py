"""Configuration of servers beside an export, whatever its folder is called."""

import re
import shutil
from unittest import mock

import pytest
import tensorflow as tf
import yaml
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from official.xlnet.serving import export
from official.xlnet.serving.samples import write_samples
from official.xlnet.serving.services.base import Settings
from tests.helpers.world import command


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


@pytest.mark.parametrize("moment", ["saved_model.save", "write_warmup", "write_samples"])
def test_an_output_that_vanishes_is_a_sentence(tmp_path, monkeypatch, capsys, moment):
    """`²` is a digit to `isdigit`, and no number of a version."""
    output = tmp_path / "out"
    (output / "²").mkdir(parents=True)
    owner = export.tf.saved_model if "." in moment else export
    name = moment.rpartition(".")[2]
    original = getattr(owner, name)

    def vanishing(*arguments):
        shutil.rmtree(output)
        return original(*arguments)

    monkeypatch.setattr(owner, name, vanishing)
    monkeypatch.setattr(export, "create_service", lambda *_: _Service())
    command("export", status=2, model=tmp_path, output=output)
    assert len(capsys.readouterr().err.splitlines()) == 1


class _Service(tf.Module):
    """As little of a service as `export` needs."""

    settings = Settings((16,))
    columns = {"text": "text"}
    texts_of_signatures = {"serving_default": ("text",)}
    token_types = {"token_ids": tf.int32}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def answer(self, text):
        return {"length": tf.strings.length(text)}

    def signatures(self):
        return {"serving_default": self.answer.get_concrete_function()}

    def sample_texts(self, length, signature=""):
        return {"text": ["the " * length]}

    def sample_tokens(self, length):
        return {"token_ids": tf.zeros([1, length], tf.int32)}
