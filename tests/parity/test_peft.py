"""Adapters in PEFT's files: peft reads ours onto transformers' XLNet, and we read peft's."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

from official import xlnet  # noqa: E402
from official.xlnet.errors import DataError  # noqa: E402
from tests.helpers.tiny import VOCAB, randomize  # noqa: E402
from tests.parity.hf_weights import hf_model, our_config, pairs  # noqa: E402

pytestmark = pytest.mark.slow
IDS = np.random.default_rng(0).integers(9, VOCAB, (3, 11)).astype(np.int32)


def both(**settings):
    """transformers' model and ours, with the same random weights."""
    hf = hf_model(mem_len=None, **settings)
    ours = xlnet.XLNetPretrainer(our_config(hf.config))
    for _, variable, parameter, is_transposed in pairs(hf, ours):
        value = parameter.detach().numpy()
        variable.assign((value.T if is_transposed else value).reshape(variable.shape))
    return hf, ours


def content_of(hf):
    with torch.no_grad():
        return hf(torch.from_numpy(IDS.astype(np.int64)))[0].numpy()


@pytest.mark.parametrize("with_head", [False, True])
@pytest.mark.parametrize("targets", [["inner"], ["inner", "outer"], ["layer_1/feed_forward/outer"]])
def test_peft_reads_ours(targets, with_head, tmp_path):
    hf, pretrainer = both()
    model = pretrainer if with_head else pretrainer.encoder
    adapters = xlnet.add_lora(model, 3, alpha=7.5, targets=targets)
    randomize(adapters.variables, 5)
    xlnet.save_adapters(model, tmp_path)
    plain = content_of(hf.transformer)
    adapted = peft.PeftModel.from_pretrained(hf if with_head else hf.transformer, str(tmp_path))
    inside = adapted.base_model.model
    found = content_of(inside.transformer if with_head else inside)
    wanted = pretrainer.encoder(IDS)["content"]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert np.abs(found - plain).max() > 1e-2
    merged = adapted.merge_and_unload()
    found = content_of(merged.transformer if with_head else merged)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("use_rslora", [False, True])
@pytest.mark.parametrize("with_head", [False, True])
@pytest.mark.parametrize("targets", [["layer_1"], ["layer_1", "layer_2"]])
def test_we_read_what_peft_writes(targets, with_head, use_rslora, tmp_path):
    hf, pretrainer = both(seed=1)
    settings = peft.LoraConfig(
        r=3, lora_alpha=5, lora_dropout=0.25, target_modules=targets, use_rslora=use_rslora
    )
    adapted = peft.get_peft_model(hf if with_head else hf.transformer, settings).eval()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.25)
    adapted.save_pretrained(tmp_path)
    inside = adapted.base_model.model
    wanted = content_of(inside.transformer if with_head else inside)
    adapters = xlnet.load_adapters(pretrainer, tmp_path)
    assert (adapters.rank, adapters.settings.dropout) == (3, 0.25)
    np.testing.assert_allclose(pretrainer.encoder(IDS)["content"], wanted, atol=1e-5)
    xlnet.merge_lora(pretrainer)
    np.testing.assert_allclose(pretrainer.encoder(IDS)["content"], wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"bias": "lora_only"}, "bias"),
        ({"modules_to_save": ["summary"]}, "modules_to_save"),
        ({"rank_pattern": {"layer_2": 2}}, "rank_pattern"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights"),
        ({"target_modules": None, "target_parameters": ["rel_attn.q"]}, "target_parameters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_adapters_of_peft_are_refused(settings, message, tmp_path):
    hf, pretrainer = both()
    config = peft.LoraConfig(**{"r": 3, "target_modules": ["layer_1", "layer_2"], **settings})
    peft.get_peft_model(hf.transformer, config).save_pretrained(tmp_path)
    assert message in json.loads((tmp_path / "adapter_config.json").read_text())
    with pytest.raises(DataError, match=message):
        xlnet.load_adapters(pretrainer, tmp_path)
    assert pretrainer.encoder.lora is None
