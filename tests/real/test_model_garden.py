"""tf-models' own trainer: it runs our experiments from YAML, and its BERT checkpoints are read."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import yaml
from official.core import exp_factory, task_factory, train_lib
from official.legacy.bert import bert_models, configs
from official.modeling import hyperparams
from official.nlp.configs import pretraining_experiments  # noqa: F401 (registers bert/pretraining)

from data_prep.tasks.task_data import read_task
from official import xlnet
from official.xlnet.errors import DataError
from official.xlnet.garden import bert_config, load_bert, restore_bert
from official.xlnet.inference.ensemble import Ensemble
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
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


def run(name, task, directory):
    """Writes the YAML of an experiment and runs it: (parameters, task, model, metrics)."""
    path = pathlib.Path(directory, "experiment.yaml")
    path.write_text(yaml.safe_dump({"task": task, "trainer": TRAINER}))
    params = exp_factory.get_exp_config(name)
    params = hyperparams.override_params_dict(params, str(path), is_strict=True)
    tf_keras.utils.set_random_seed(SEED)
    strategy = tf.distribute.OneDeviceStrategy("cpu:0")
    with strategy.scope():
        task = task_factory.get_task(params.task, logging_dir=str(directory))
    mode = "train_and_eval" if name.startswith("xlnet") else "train"
    args = (strategy, task, mode, params, str(directory))
    return params, task, *train_lib.run_experiment(*args, run_post_eval=mode != "train")


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
    tf_keras.utils.set_random_seed(SEED)
    model = task.build_model()
    task.initialize(model)
    variables = getattr(model, "tuned_variables", model.trainable_variables)
    first = [variable.numpy() for variable in variables]
    model.compile(task.create_optimizer(params.trainer.optimizer_config), run_eagerly=True)
    data = task.build_inputs(params.task.train_data)
    if name == "xlnet/pretraining":
        data = xlnet.pretraining_dataset(world.data, BATCH, config=model.config)
    model.fit(data, steps_per_epoch=STEPS, verbose=0)
    ours = getattr(found, "tuned_variables", found.trainable_variables)
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


def bert_examples(path):
    """Records as the garden's `create_pretraining_data` writes them."""
    rng = np.random.default_rng(0)
    with tf.io.TFRecordWriter(path) as file:
        for _ in range(BATCH):
            columns = {"input_ids": rng.integers(0, 53, 13), "input_mask": [1] * 13}
            columns |= {"segment_ids": [0] * 7 + [1] * 6, "next_sentence_labels": [1]}
            columns |= {"masked_lm_positions": [1, 5, 8], "masked_lm_ids": rng.integers(0, 53, 3)}
            features = tf.train.Features()
            for name, values in columns.items():
                features.feature[name].int64_list.value.extend(values)
            features.feature["masked_lm_weights"].float_list.value.extend([1.0] * 3)
            file.write(tf.train.Example(features=features).SerializeToString())


def check_content(folder, theirs):
    rng = np.random.default_rng(1)
    is_real = np.arange(13) < np.array([[13], [5], [9]])
    ids, types = rng.integers(0, 53, [3, 13]), np.sort(rng.integers(0, 2, [3, 13]))
    inputs = {"input_word_ids": ids, "input_type_ids": types, "input_mask": is_real.astype(int)}
    expected = theirs(inputs)
    ours = {"token_ids": ids, "segment_ids": types, "is_padding": ~is_real}
    content = load_bert(str(folder))(ours)["content"]
    np.testing.assert_allclose(content[is_real], expected[is_real], atol=1e-5)
    return inputs, ours


@pytest.mark.slow
def test_outputs_are_those_of_a_model_that_the_garden_trained(tmp_path):
    config = configs.BertConfig(num_hidden_layers=3, **SIZES)
    (tmp_path / "bert_config.json").write_text(config.to_json_string())
    bert_examples(f"{tmp_path}/train.tfrecord")
    data = {"input_path": f"{tmp_path}/train.tfrecord", "global_batch_size": BATCH}
    data |= {"seq_length": 13, "max_predictions_per_seq": 3}
    encoder = {"num_layers": 3, **SIZES}
    task = {"model": {"encoder": {"type": "bert", "bert": encoder}}, "train_data": data}
    _, _, theirs, _ = run("bert/pretraining", task, tmp_path)
    inputs, ours = check_content(tmp_path, lambda x: theirs.encoder_network(x)["sequence_output"])
    model = XLNetPretrainer(bert_config(f"{tmp_path}/bert_config.json"))
    restore_bert(tf.train.latest_checkpoint(str(tmp_path)), model.encoder, model.lm_head)
    places = np.array([[1, 4], [3, 0], [8, 8]])
    logits = model({**ours, "content_positions": places})["logits"]
    expected = theirs({**inputs, "masked_lm_positions": places})["mlm_logits"]
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_outputs_of_a_published_folder_and_what_does_not_fit(tmp_path):
    """A published checkpoint is that of the garden's encoder alone."""
    config = configs.BertConfig(num_hidden_layers=3, **SIZES)
    encoder = bert_models.get_transformer_encoder(config)
    randomize(encoder.variables, seed=1)
    pathlib.Path(tmp_path, "bert_config.json").write_text(config.to_json_string())
    path = tf.train.Checkpoint(encoder=encoder).save(f"{tmp_path}/bert_model.ckpt")
    check_content(tmp_path, lambda x: encoder(x)[0])
    model = XLNetPretrainer(bert_config(f"{tmp_path}/bert_config.json"))
    with pytest.raises(DataError, match="expected variables below encoder and masked_lm"):
        restore_bert(path, model.encoder, model.lm_head)
    for change, sentence in (
        ({"num_hidden_layers": 5}, "cannot be used"),
        ({"hidden_act": "swish"}, "hidden_act: expected one of gelu, relu, got 'swish'"),
    ):
        changed = configs.BertConfig.from_dict({**config.to_dict(), **change})
        pathlib.Path(tmp_path, "bert_config.json").write_text(changed.to_json_string())
        with pytest.raises(DataError, match=sentence):
            load_bert(str(tmp_path))
