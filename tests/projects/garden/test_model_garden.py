"""tf-models' own trainer runs our experiments from YAML; its BERT and ours are the same."""

import functools
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import yaml
from official.core import exp_factory, task_factory, train_lib
from official.modeling import hyperparams
from official.nlp.configs.encoders import BertEncoderConfig, EncoderConfig, build_encoder
from official.nlp.modeling.models import BertPretrainerV2

import official.xlnet.projects.garden  # noqa: F401 (registers the experiments)
from data_prep.tasks.task_data import read_task
from official import xlnet
from official.xlnet.inference.ensemble import Ensemble
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.keras import keras
from tests.helpers.tiny import randomize

BATCH, STEPS, SEED = 6, 4, 3
TRAINER = {
    **{"train_steps": STEPS, "steps_per_loop": 2, "summary_interval": 2, "validation_steps": -1},
    **{"validation_interval": STEPS, "checkpoint_interval": STEPS},
    "optimizer_config": {
        "learning_rate": {"polynomial": {"initial_learning_rate": 0.01, "decay_steps": 9}},
        "warmup": {"polynomial": {"warmup_steps": 1}},
    },
}
SIZES = {"hidden_size": 22, "intermediate_size": 29, "num_attention_heads": 2, "vocab_size": 53}
SIZES |= {"max_position_embeddings": 31, "type_vocab_size": 2}
OURS = {
    "model": {
        **{"network": "bert", "num_layers": 3, "d_model": 22, "d_inner": 29, "num_heads": 2},
        **{"vocab_size": 53, "max_positions": 31, "num_segments": 2, "mem_len": 0},
        "activation": "gelu",
    },
    "data": {"bidirectional": False, "seq_len": 31, "reuse_len": 0, "num_predict": 5},
    "objective": {"kind": "denoising"},
}


def run(name, task, directory):
    """Writes the YAML of an experiment and runs it: (parameters, task, model, metrics)."""
    path = pathlib.Path(directory, "experiment.yaml")
    path.write_text(yaml.safe_dump({"task": task, "trainer": TRAINER}))
    params = exp_factory.get_exp_config(name)
    params = hyperparams.override_params_dict(params, str(path), is_strict=True)
    keras.utils.set_random_seed(SEED)
    strategy = tf.distribute.OneDeviceStrategy("cpu:0")
    with strategy.scope():
        task = task_factory.get_task(params.task, logging_dir=str(directory))
    args = (strategy, task, "train_and_eval", params, str(directory))
    return params, task, *train_lib.run_experiment(*args, run_post_eval=True)


def settings(world, name):
    files = world.files("classification")
    paths = files.values() if name == "xlnet/classification" else 2 * [world.data]
    data = [{"input_path": path, "global_batch_size": BATCH} for path in paths]
    task = {"init_checkpoint": world.pretrained, "train_data": data[0], "validation_data": data[1]}
    if name == "xlnet/pretraining":
        return {**task, "recipe": world.config}
    return {**task, "overrides": ["task.max_length=19", "task.summary=mean"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xlnet/pretraining", "xlnet/classification"])
def test_an_experiment_takes_the_steps_of_keras_is_resumed_and_becomes_a_model(
    world, name, tmp_path
):
    params, task, found, metrics = run(name, settings(world, name), tmp_path)
    keras.utils.set_random_seed(SEED)
    model = task.build_model()
    task.initialize(model)
    variables = model.trainable_variables
    first = [variable.numpy() for variable in variables]
    model.compile(task.create_optimizer(params.trainer.optimizer_config), run_eagerly=True)
    data = task.build_inputs(params.task.train_data)
    if name == "xlnet/pretraining":
        data = xlnet.pretraining_dataset(world.data, BATCH, config=model.config)
    model.fit(data, steps_per_epoch=STEPS, verbose=0)
    ours = found.trainable_variables
    for variable, expected, start in zip(ours, variables, first, strict=True):
        np.testing.assert_allclose(variable, expected, atol=2e-5, err_msg=expected.name)
        assert np.abs(variable - start).max() > 1e-4, expected.name
    embedding = xlnet.load_encoder(world.pretrained).word_embedding.embeddings
    assert any(np.array_equal(start, embedding) for start in first)

    *_, again, _ = run(name, settings(world, name), tmp_path)
    pairs = zip(again.trainable_variables, found.trainable_variables, strict=True)
    assert all(np.array_equal(*pair) for pair in pairs)
    assert f"ckpt-{STEPS}.index" in {path.name for path in tmp_path.iterdir()}
    xlnet.save_pretrained(again, str(tmp_path / "model"), f"{world.vocab}/spiece.model")
    if name == "xlnet/pretraining":
        assert 3 < metrics["validation_loss"] < 7
        assert xlnet.score(str(tmp_path / "model"), "the water").total < 0
        return
    examples, _ = read_task(world.files("classification")["dev"], found.config.task)
    wanted = Ensemble([str(tmp_path / "model")]).evaluate(examples)
    assert wanted["examples"] == 41  # The last batch holds 5.
    assert metrics["accuracy"] == pytest.approx(wanted["accuracy"])
    assert metrics["validation_loss"] == pytest.approx(wanted["loss"], rel=1e-4)


def test_the_network_bert_is_that_of_the_garden(tmp_path):
    """Content and logits, with the weights of a model of the garden."""
    theirs = BertPretrainerV2(
        build_encoder(EncoderConfig(type="bert", bert=BertEncoderConfig(num_layers=3, **SIZES))),
        mlm_activation=functools.partial(tf.nn.gelu, approximate=True),
    )
    rng = np.random.default_rng(1)
    is_real = np.arange(13) < np.array([[13], [5], [9]])
    ids, types = rng.integers(0, 53, [3, 13]), np.sort(rng.integers(0, 2, [3, 13]))
    places = np.array([[1, 4], [3, 0], [8, 8]])
    inputs = {"input_word_ids": ids, "input_type_ids": types, "input_mask": is_real.astype(int)}
    theirs({**inputs, "masked_lm_positions": places})  # Builds it.
    randomize(theirs.variables, seed=1)
    expected = theirs({**inputs, "masked_lm_positions": places})

    model = XLNetPretrainer(xlnet.XLNetConfig.from_dict(OURS))
    own = tf.train.Checkpoint(encoder_network=model.encoder, masked_lm=model.lm_head)
    path = tf.train.Checkpoint(theirs).save(f"{tmp_path}/ckpt")
    own.restore(path).expect_partial().assert_existing_objects_matched()
    ours = {"token_ids": ids, "segment_ids": types, "is_padding": ~is_real}
    content = model.encoder(ours)["content"]
    np.testing.assert_allclose(content[is_real], expected["sequence_output"][is_real], atol=1e-5)
    logits = model({**ours, "content_positions": places})["logits"]
    np.testing.assert_allclose(logits, expected["mlm_logits"], atol=1e-4)
