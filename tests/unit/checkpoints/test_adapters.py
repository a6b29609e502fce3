"""Adapters alone in PEFT's files: written, read back, and refused where they do not fit."""

import json
import os

import numpy as np
import pytest
import safetensors.numpy

from official import xlnet
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from tests.helpers.tiny import LAYERS, VOCAB, WIDTH, randomize, tiny_encoder

RANK = 3
IDS = np.random.default_rng(0).integers(9, VOCAB, (4, 11)).astype(np.int32)
FEED_FORWARD = ["inner", "outer"]


def with_adapters(model, seed=3, **settings):
    """The model, with random adapters of the feed-forward kernels."""
    settings = {"targets": FEED_FORWARD, **settings}
    randomize(xlnet.add_lora(model, RANK, **settings).variables, seed)
    return model


def warnings_of(caplog):
    """Sentences about adapters that were trained beside other weights."""
    messages = [record.getMessage() for record in caplog.records]
    return [message for message in messages if "trained beside" in message]


@pytest.mark.parametrize("make", [tiny_encoder, lambda: XLNetClassifier(tiny_encoder(), 2)])
def test_files_are_those_of_peft_and_read_back(make, tmp_path, caplog):
    model, other = make(), make()
    other.set_weights(model.get_weights())
    with_adapters(model, alpha=7.5, dropout=0.25)
    xlnet.save_adapters(model, tmp_path / "film")
    config = json.loads((tmp_path / "film/adapter_config.json").read_text())
    wanted = {"peft_type": "LORA", "r": RANK, "lora_alpha": 7.5, "lora_dropout": 0.25}
    assert {name: config[name] for name in wanted} == wanted
    tensors = safetensors.numpy.load_file(tmp_path / "film/adapter_model.safetensors")
    transformer = "" if make is tiny_encoder else "transformer."
    start = f"base_model.model.{transformer}layer"
    encoder = getattr(model, "encoder", model)
    d_inner = encoder.model.d_inner
    shapes = {
        f"{start}.{layer}.ff.{matrix}.lora_{side}.weight": shape
        for layer in range(LAYERS)
        for matrix, (num_inputs, num_outputs) in {
            "layer_1": (WIDTH, d_inner),
            "layer_2": (d_inner, WIDTH),
        }.items()
        for side, shape in {"A": (RANK, num_inputs), "B": (num_outputs, RANK)}.items()
    }
    assert {name: tensor.shape for name, tensor in tensors.items()} == shapes
    # The kernel of PEFT's definition: W + (lora_alpha / r)·(B·A)ᵀ.
    kernel = encoder.lora.kernels["layer_1/feed_forward/outer"]
    a, b = (tensors[f"{start}.1.ff.layer_2.lora_{side}.weight"] for side in "AB")
    change = config["lora_alpha"] / config["r"] * (b @ a).T
    np.testing.assert_allclose(kernel.numpy(), kernel.kernel.numpy() + change, atol=1e-6)

    adapters = xlnet.load_adapters(other, tmp_path / "film")
    assert adapters.settings.dropout == 0.25 and adapters.settings.scale == 7.5 / RANK
    found, wanted = (getattr(x, "encoder", x)(IDS)["content"] for x in (other, model))
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert not warnings_of(caplog)
    other = make()
    randomize(other.weights, 7)
    xlnet.load_adapters(other, tmp_path / "film")
    assert len(warnings_of(caplog)) == 1


def test_a_kill_leaves_no_adapters_rather_than_those_of_two_models(tmp_path, monkeypatch):
    model, other = with_adapters(tiny_encoder(), alpha=7.5), with_adapters(tiny_encoder(), alpha=2)
    xlnet.save_adapters(model, tmp_path)
    replace = os.replace

    def killed(source, target):
        replace(source, target)
        if target == str(tmp_path / "adapter_model.safetensors"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", killed)
        xlnet.save_adapters(other, tmp_path)
    with pytest.raises(DataError, match=r"adapter_config\.json: expected a file of adapters"):
        xlnet.load_adapters(tiny_encoder(), tmp_path)
    xlnet.save_adapters(other, tmp_path)
    assert xlnet.load_adapters(tiny_encoder(), tmp_path).settings.scale == 2 / RANK


def test_models_and_files_that_do_not_fit(tmp_path):
    folder = tmp_path / "film"
    for model, message in (
        (tiny_encoder(), "model: expected a model with adapters"),
        (with_adapters(tiny_encoder(), targets=None), "targets: .*feed-forward kernels alone"),
    ):
        with pytest.raises(ConfigError, match=message):
            xlnet.save_adapters(model, folder)
    assert not folder.exists()
    with pytest.raises(DataError, match=r"adapter_config\.json: expected a file of adapters"):
        xlnet.load_adapters(tiny_encoder(), tmp_path)
    xlnet.save_adapters(with_adapters(tiny_encoder()), folder)
    with pytest.raises(ConfigError, match="model: expected a model without adapters"):
        xlnet.load_adapters(with_adapters(tiny_encoder()), folder)
    for changes, message in (
        ({"num_layers": LAYERS - 1}, f"one of the {LAYERS - 1} layers"),
        ({"d_inner": 31}, "shape .*31"),
    ):
        other = tiny_encoder(**changes)
        with pytest.raises(DataError, match=message):
            xlnet.load_adapters(other, folder)
        assert other.lora is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "IA3"}, "peft_type: expected LORA"),
        ({"r": 2}, "shape .2, 22., as the model"),
        ({"r": 0}, "r: expected a positive integer"),
        ({"lora_alpha": None}, "lora_alpha: expected a positive number"),
        ({"lora_dropout": 1.5}, "lora_dropout"),
        ({"use_dora": True}, "use_dora: expected none"),
        ({"alpha_pattern": {"layer_1": 3}}, "alpha_pattern: expected none"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights"),
        ({"bias": "all"}, "bias: expected none"),
        ({"a_key_of_tomorrow": 1}, "a_key_of_tomorrow"),
    ],
)
def test_settings_that_would_compute_something_else(changes, message, tmp_path):
    xlnet.save_adapters(with_adapters(tiny_encoder()), tmp_path)
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    encoder = tiny_encoder()
    with pytest.raises(DataError, match=message):
        xlnet.load_adapters(encoder, tmp_path)
    assert encoder.lora is None


@pytest.mark.parametrize("damage", ["nan", "another tensor", "one factor", "no tensors", "text"])
def test_damaged_weights(damage, tmp_path):
    xlnet.save_adapters(with_adapters(tiny_encoder()), tmp_path)
    path = tmp_path / "adapter_model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    first = sorted(tensors)[0]
    if damage == "nan":
        tensors[first][0, 0] = np.nan
    elif damage == "another tensor":
        tensors["base_model.model.logits_proj.weight"] = np.ones([2, 5], np.float32)
    elif damage == "one factor":
        del tensors[first]
    elif damage == "no tensors":
        tensors = {}
    safetensors.numpy.save_file(tensors, path)
    if damage == "text":
        path.write_text("no tensors")
    encoder = tiny_encoder()
    with pytest.raises(DataError):
        xlnet.load_adapters(encoder, tmp_path)
    assert encoder.lora is None
