"""Ours against committed numbers; `python -m tools.make_golden` writes them."""

import json

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.layers.losses import cross_entropy_sum
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from tests.golden import runs
from tests.helpers.compare import path_of


def read_hf(case):
    """One case of the file of HF's numbers: {name: array}, `inputs` and `outputs` nested."""
    with np.load(runs.HF_FILE, allow_pickle=False) as file:
        names = [name.split("/")[1:] for name in file.files if name.startswith(f"{case}/")]
        golden = {"inputs": {}, "outputs": {}}
        for *parent, name in names:
            array = file["/".join([case, *parent, name])]
            (golden[parent[0]] if parent else golden)[name] = array
    return golden


def by_name(golden, kind, variables):
    """{name of a variable: its weights or gradients}; the file has them as one vector."""
    shapes = {name: variables[name].shape for name in golden["names"].tolist()}
    ends = np.cumsum([shape.num_elements() for shape in shapes.values()])
    assert ends[-1] == len(golden[kind])
    parts = np.split(golden[kind], ends[:-1])
    return {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}


@pytest.mark.parametrize("case", ["bi", "uni"])
def test_hf_outputs_and_gradients(case):
    """What PyTorch computed: content, query, memory, logits, loss and every gradient."""
    golden = read_hf(case)
    inputs, outputs = golden["inputs"], golden["outputs"]
    tree = json.loads(str(golden["config"]))
    del tree["task"]  # It has the keys of all projects, and is not read.
    model = XLNetPretrainer(tree)
    variables = {f"{path_of(variable)}:0": variable for variable in model.trainable_variables}
    assert set(variables) == set(golden["names"].tolist())
    for name, value in by_name(golden, "weights", variables).items():
        variables[name].assign(value)

    labels = tf.constant(golden["labels"])
    with tf.GradientTape() as tape:
        got = model(inputs)
        loss_sum = cross_entropy_sum(got["logits"], labels, tf.ones(labels.shape))
        loss = loss_sum / labels.shape.num_elements()
    np.testing.assert_allclose(loss, outputs["loss"], atol=1e-4)
    for name in ("query", "logits"):
        np.testing.assert_allclose(got[name], outputs[name], atol=1e-4)
    is_real = ~inputs.get("is_padding", np.zeros(inputs["order"].shape, bool))
    content = got["content"].numpy()
    np.testing.assert_allclose(content[is_real], outputs["content"][is_real], atol=1e-4)
    # Of the first layer all memory, of the others what padding did not leave there.
    np.testing.assert_allclose(got["memory"][0], outputs["memory"][0], atol=1e-4)
    reused = is_real[:, : model.config.data.reuse_len]
    filled = np.concatenate([np.ones([len(reused), 5], bool), reused], axis=1)[:, -5:]
    np.testing.assert_allclose(
        got["memory"].numpy()[:, filled], outputs["memory"][:, filled], atol=1e-4
    )
    gradients = tape.gradient(loss, variables)
    for name, wanted in by_name(golden, "gradients", variables).items():
        gradient = tf.convert_to_tensor(gradients[name])
        np.testing.assert_allclose(gradient, wanted, atol=1e-4, err_msg=name)


def test_training_losses():
    """A refactoring changes nothing; a change of numbers says why in its commit."""
    with open(runs.LOSSES_FILE, encoding="utf-8") as file:
        wanted = json.load(file)
    np.testing.assert_allclose(runs.training_losses(len(wanted)), wanted, atol=1e-4)
