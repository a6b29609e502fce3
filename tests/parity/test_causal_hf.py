"""Our causal objective against HF's XLNet in `uni` mode, with the same weights."""

import numpy as np
import pytest

from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.layers.losses import cross_entropy_sum
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.objectives import create_objective
from tests.helpers.tiny import MEMORY, TOKENS, random_inputs, random_windows

pytest.importorskip("torch")
pytest.importorskip("transformers")
from tests.parity import hf_weights

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("memory", [0, MEMORY])
def test_causal_logits_and_loss_equal(memory):
    import torch

    hf = hf_weights.hf_model(attn_type="uni", mem_len=MEMORY, reuse_len=7)
    config = hf_weights.our_config(hf.config)
    # The objective's order does what HF's `uni` does; ours needs no mode of its own for it.
    config.model.attention_type, config.objective.kind = "bi", "causal"
    config.data.bidirectional = False
    ours = XLNetPretrainer(config)
    hf_weights.copy_weights(hf, ours)
    batch = random_windows(0, batch=3, tokens=TOKENS)
    task = create_objective(ObjectiveSections.of(config))(batch)
    inputs = dict(task.inputs)
    states = random_inputs(0, memory=memory)["memory"] if memory else None
    if memory:
        inputs["memory"] = states
    logits = ours(inputs)["logits"]
    token_ids = torch.tensor(task.inputs["token_ids"].numpy()).long()
    assert token_ids.shape == (3, 7)
    mems = [torch.tensor(layer).transpose(0, 1) for layer in states] if memory else None
    with torch.no_grad():
        wanted = hf(input_ids=token_ids, mems=mems, use_mems=True).logits
    np.testing.assert_allclose(logits, wanted.numpy(), atol=1e-4)
    losses = torch.nn.functional.cross_entropy(
        wanted.reshape(-1, wanted.shape[-1]),
        torch.tensor(task.labels_BP.numpy()).long().reshape(-1),
        reduction="none",
    )
    wanted_sum = float((losses * torch.tensor(task.mask_BP.numpy()).reshape(-1)).sum())
    ours_sum = float(cross_entropy_sum(logits, task.labels_BP, task.mask_BP))
    np.testing.assert_allclose(ours_sum, wanted_sum, rtol=1e-4)
