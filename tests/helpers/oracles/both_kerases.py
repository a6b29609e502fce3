"""What has to be the same with both Kerases, as a program: `both_kerases FILE [CHECKPOINT]`.

It writes a JSON file: the keys of a checkpoint of every model, and losses and weights of steps.
They go on from CHECKPOINT; without one, they leave checkpoints, and compiled models in files of
Keras, beside FILE.
"""

import json
import os
import sys
import tempfile

import tensorflow as tf

from official.xlnet.configs.registry import OPTIMIZERS
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.models.lora import add_lora
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.package.of_projects import entries
from tests.helpers.task_corpora import KINDS, task_config
from tests.helpers.tiny import random_windows, randomize, tiny_config

CAUSAL = {"kind": "causal", "mem_len": 0, "bidirectional": False}
PRETRAINERS = {
    "tied biases": {"untie_r": False},
    "next sentence": {"objective.next_sentence": True},
    "auxiliary": {"objective.auxiliary": ["capitalization"], "auxiliary_steps": [0]},
    "shared": {"depth": "shared"},
    "adaptive": {"depth": "adaptive"},
    **{name: {"optimizer": name} for name in OPTIMIZERS.names()},
    "float16": {"precision": "mixed_float16"},
    "bert": {"network": "bert", **CAUSAL, "kind": "denoising"},
    **{name: {"network": name, "attention_type": "uni", **CAUSAL} for name in ("gpt", "gpt2")},
}
TASK = {"labels": ("a", "b", "c"), "summary": "attn"}
TASKS = dict.fromkeys(KINDS, TASK) | entries("TASKS_OF_BOTH_KERASES")


def keys(config, model):
    """{key of a checkpoint: shape}."""
    optimizer = create_optimizer(config.training, config.model.num_layers)
    optimizer.build(model.trainable_variables)
    model.compile(optimizer)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(f"{folder}/ckpt")
        return {name: list(shape) for name, shape in tf.train.list_variables(path)}


def all_keys():
    """{name of a model: keys}."""
    found = {}
    for name, changes in PRETRAINERS.items():
        config = tiny_config(**changes)
        found[name] = keys(config, XLNetPretrainer(config))
    for name, settings in TASKS.items():
        config = task_config(name=name, **settings)
        found[f"task {name}"] = keys(config, XLNetTaskModel(config))
    model = XLNetPretrainer(tiny_config())
    add_lora(model, 3)
    found["adapters"] = keys(model.config, model)
    return found


def steps(optimizer, path, is_begun):
    """Losses and sums of weights of steps 0, 1, or of 2, 3 of a run in `path`."""
    config = tiny_config(
        dropout=0.1, dropatt=0.1, layer_decay=0.7, optimizer=optimizer, num_steps=9, warmup_steps=2
    )
    model = XLNetPretrainer(config)
    randomize(model.trainable_variables, seed=5, scale=0.1)
    model.compile(create_optimizer(config.training, config.model.num_layers), run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    state = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    if is_begun:
        state.read(path).assert_consumed()
    found = []
    for step in (2, 3) if is_begun else (0, 1):
        model.reset_metrics()
        metrics = model.train_step(random_windows(step))
        found.append({name: float(value) for name, value in metrics.items()})
    if not is_begun:
        state.write(path)
    weights = [variable.numpy().tolist() for variable in model.trainable_variables]
    return found, weights


def compiled_models():
    """{name: (model, the batch that it is trained with)}, with our optimizers and one of Keras."""
    config = tiny_config(num_layers=1)
    pretrainer = XLNetPretrainer(config)
    pretrainer.compile(create_optimizer(config.training, 1))
    by_keras = XLNetPretrainer(config)
    by_keras.compile(keras.optimizers.Adam(0.01))
    config = task_config(name="classification", labels=("a", "b", "c"))
    task = XLNetTaskModel(config)
    task.compile(create_optimizer(config.training, config.model.num_layers))
    ids = tf.random.stateless_uniform([4, 7], [0, 1], 9, 53, tf.int32)
    return {
        "pretrainer": (pretrainer, random_windows(0, context_length=0)),
        "optimizer of Keras": (by_keras, random_windows(0, context_length=0)),
        "task": (task, {"token_ids": ids, "label": tf.constant([0, 1, 2, 1])}),
    }


def whole_files(path, is_begun):
    """Losses of an evaluation and of two epochs of models that are saved, or loaded, compiled."""
    tf.config.run_functions_eagerly(True)
    found = {}
    for name, (model, batch) in compiled_models().items():
        data, file = tf.data.Dataset.from_tensors(batch), f"{path}-{name}.keras"
        if is_begun:
            model = keras.models.load_model(file)
        else:
            model.fit(data, verbose=0)
            model.save(file)
        loss = float(model.evaluate(data, verbose=0, return_dict=True)["loss"])
        found[name] = [loss, *model.fit(data, epochs=2, verbose=0).history["loss"]]
    return found


def classifier():
    """A new classifier."""
    return XLNetClassifier(XLNetEncoder(tiny_config(num_layers=1), mem_len=0), 2)


def save_classifier(path):
    """Saves a classifier in both formats of Keras."""
    model = classifier()
    model.save(f"{path}-classifier.keras")
    model.save_weights(f"{path}-classifier.weights.h5")


def refused(path):
    """{name of a file of the other Keras: the error of loading it}."""
    folder, other = os.path.dirname(path), 3 if keras.__name__ == "tf_keras" else 2
    loads = {f"{name}.keras": keras.models.load_model for name in ("pretrainer", "classifier")}
    loads["classifier.weights.h5"] = classifier().load_weights
    found = {}
    for name, load in loads.items():
        try:
            load(f"{folder}/{other}-{name}")
        except ConfigError as error:
            found[name] = str(error)
    return found


if __name__ == "__main__":
    file, *begun = sys.argv[1:]
    (path,) = begun or [file]
    names = OPTIMIZERS.names()
    results = {name: steps(name, f"{path}-{name}", bool(begun)) for name in names}
    files = whole_files(path, bool(begun))
    if not begun:
        save_classifier(path)
    with open(file, "w", encoding="utf-8") as output:
        values = {"keys": {} if begun else all_keys(), "steps": results, "files": files}
        if begun:
            values["refused"] = refused(path)
        json.dump(values, output)
