"""Loss by context: counts by hand, and means that add up to the loss of `evaluate`."""

import json

import numpy as np
import pytest
import tensorflow as tf

from official import xlnet
from official.xlnet.checkpoints.saving import save_pretrained
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.projects.any_order.context_losses import _contexts
from official.xlnet.tokenization.special_tokens import MASK_ID
from tests.helpers.tiny import random_windows, tiny_config


@pytest.mark.parametrize("kind", ["permutation", "absorbing_diffusion", "causal"])
def test_contexts_are_those_counted_by_hand(kind):
    model = XLNetPretrainer(tiny_config(kind=kind))
    task = model.make_permutation(random_windows(3))
    length_B = np.array([0, 2, 50, 1])
    memory = tf.zeros([model.config.model.num_layers, 4, model.config.model.mem_len, 22])
    task.inputs.update(memory=memory, memory_length=tf.constant(length_B, tf.int32))
    found = {name: value.numpy() for name, value in _contexts(task).items()}
    order = task.inputs["order"].numpy()
    place = task.inputs.get("target_positions", task.inputs.get("content_positions")).numpy()
    is_text = task.inputs["token_ids"].numpy() != MASK_ID
    for b, p in np.argwhere(task.mask_BP.numpy() > 0):
        t = place[b, p]
        sees = order[b] < order[b, t] if kind == "permutation" else order[b] <= order[b, t]
        sees &= is_text[b]
        num_memory = min(length_B[b], model.config.model.mem_len)
        assert found["visible_tokens"][b, p] == sees.sum() + num_memory
        assert found["position"][b, p] == t
        targets = {*place[b, task.mask_BP.numpy()[b] > 0]}
        assert found["rank"][b, p] == sum(sees[n] for n in targets)


@pytest.mark.parametrize("kind", ["permutation", "absorbing_diffusion"])
def test_bins_add_up_to_the_loss(kind, world, tmp_path):
    settings = [f"objective.kind={kind}", "training.jit_compile=false"]
    config = XLNetConfig.load(world.config, settings)
    save_pretrained(XLNetPretrainer(config), str(tmp_path / "m"), f"{world.vocab}/spiece.model")
    output = tmp_path / "report"
    metrics = xlnet.evaluate(str(tmp_path / "m"), world.data, by="context", output=str(output))
    for bins in metrics["by_context"].values():
        counts = np.array([bin_["targets"] for bin_ in bins])
        assert counts.sum() == pytest.approx(metrics["targets"], rel=1e-4)
        mean = np.average([bin_["loss"] for bin_ in bins], weights=counts)
        assert mean == pytest.approx(metrics["loss"], rel=1e-4)
        limits = [x for bin_ in bins for x in (bin_["from"], bin_["to"])]
        assert limits == sorted(limits)
    assert len(metrics["by_context"]["visible_tokens"]) > 1
    assert json.loads((output / "context.json").read_text()) == metrics["by_context"]
    assert (output / "context.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ConfigError, match="by"):
        xlnet.evaluate(world.task("classification").model, [("a", "b")], by="context")
