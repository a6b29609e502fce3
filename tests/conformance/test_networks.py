"""Every network, depth and kind of initial weights that is registered, also of extensions."""

import pytest
import tensorflow as tf

from official.xlnet import testing
from official.xlnet.configs.registry import ATTENTION_INITS, DEPTHS, NETWORKS
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.networks.encoder_inputs import by_name
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder

GPT = ["objective.kind=causal", "attention_type=uni", "mem_len=0", "bidirectional=false"]
# What a part needs besides its name; some tokens halt after one block, some after two.
NEEDS = {
    "bert": ["objective.kind=denoising", "mem_len=0", "bidirectional=false"],
    "gpt": GPT,
    "gpt2": GPT,
    "adaptive": ["halting_threshold=0.7", "untie_r=false"],
}
PARTS = [
    *((name, NEEDS.get(name, [])) for name in NETWORKS.names()),
    *(("xlnet", [f"depth={name}", *NEEDS.get(name, [])]) for name in DEPTHS.names()[1:]),
    *(("xlnet", [f"attention_init={name}"]) for name in ATTENTION_INITS.names()[1:]),
]


def check(network, overrides, quick=False):
    try:
        testing.check_network(network, overrides, quick)
    except ConfigError as error:
        pytest.fail(f"{error}: write what {network} {overrides} needs in NEEDS of test_networks.py")


@pytest.mark.slow
@pytest.mark.parametrize(("network", "overrides"), PARTS, ids=str)
def test_network(network, overrides):
    check(network, overrides)


@pytest.mark.slow
def test_a_network_without_the_compiled_step():
    """Which takes longer than everything else."""
    testing.check_network("xlnet", ["jit_compile=false"])


QUICK = [part for part in PARTS[1:] if part[0] != "gpt"]  # As it is beside `gpt2`.


@pytest.mark.parametrize(("network", "overrides"), QUICK, ids=str)
def test_network_quickly(network, overrides):
    check(network, overrides, quick=True)


def test_a_network_that_needs_settings_says_where_they_are_written():
    with pytest.raises(pytest.fail.Exception, match=r"xlnet .* needs in NEEDS of test_networks"):
        check("xlnet", ["mem_len=-1"])


class Wrong(XLNetEncoder):
    fault = ""

    def build(self, input_shape=None):
        if self.fault == "a weight":
            self.unused = self.add_weight(name="unused", shape=[3])
        super().build(input_shape)

    def call(self, inputs, **wanted):
        inputs = {name: x for name, x in by_name(inputs).items() if name != self.fault}
        outputs = super().call(inputs, **wanted)
        mean_TD = tf.reduce_mean(outputs["content"], axis=0) * (self.fault == "rows")
        return outputs | {"content": outputs["content"] - mean_TD}

    def get_config(self):
        config = super().get_config()
        config["config"]["model"] |= {"activation": "relu"} if self.fault == "a setting" else {}
        return config


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("is_padding", "padding or other rows change the vectors"),
        ("rows", "padding or other rows change the vectors"),
        ("a setting", "get_config: .* other vectors"),
        ("order", "a prediction depends on its own token"),
        ("a weight", r"model\.num_parameters: .* the network has"),
    ],
)
def test_a_wrong_network_is_refused(monkeypatch, fault, message):
    monkeypatch.setattr(Wrong, "fault", fault)
    monkeypatch.setitem(NETWORKS, "wrong", Wrong)
    with pytest.raises(AssertionError, match=message):
        testing.check_network("wrong", ["objective.kind=causal", "jit_compile=false"])
