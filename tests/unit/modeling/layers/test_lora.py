"""Adapters: equal to the full product, trained, saved and loaded alone, and merged."""

import os

import numpy as np
import pytest
import tensorflow as tf

from official import xlnet
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.kernels.matrix_products import from_heads, product, to_heads
from official.xlnet.modeling.layers.adapted_kernel import AdaptedKernel, adapter_dropout
from official.xlnet.modeling.layers.feed_forward import FeedForward
from official.xlnet.modeling.layers.lora import Lora
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.networks.stored_encoder import stored_encoder
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from official.xlnet.training.optimization import layer_of
from tests.helpers.compare import (
    assert_all_close,
    assert_all_differ,
    assert_all_equal,
    path_of,
    values,
)
from tests.helpers.compiled import make_model
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.package.of_projects import entries, rows
from tests.helpers.tiny import (
    LAYERS,
    MEMORY,
    VOCAB,
    random_inputs,
    random_windows,
    randomize,
    tiny_config,
    tiny_encoder,
)

RANK = 3
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
IDS = np.random.default_rng(0).integers(9, VOCAB, (4, 11)).astype(np.int32)
LABELS = np.array([1, 0, 1, 1])
DEPTHS = entries("ADAPTED_DEPTHS")
FORMATS = ["model.weights.h5", *([] if IS_KERAS_3 else ["weights.h5", "weights"])]


@pytest.mark.parametrize(
    ("multiply", "equation", "shapes"),
    [
        (product, "bxi,io->bxo", ([2, 5, 7], [7, 11])),
        (to_heads, "bxd,dnh->bnxh", ([2, 5, 7], [7, 3, 11])),
        (from_heads, "bnxh,dnh->bxd", ([2, 3, 5, 11], [7, 3, 11])),
    ],
    ids=["product", "to_heads", "from_heads"],
)
def test_products_and_gradients_are_those_of_the_full_kernel(multiply, equation, shapes):
    rng = np.random.default_rng(0)
    x, kernel = map(rng.standard_normal, shapes)
    num_columns = kernel[0].size
    left, right = rng.standard_normal([7, RANK]), rng.standard_normal([RANK, num_columns])
    x, kernel, left, right = map(tf.constant, (x, kernel, left, right))
    adapted, results = AdaptedKernel(kernel, left, right), []
    for forward in (
        lambda: multiply(x, adapted),
        lambda: tf.einsum(equation, x, adapted),
        lambda: tf.einsum(equation, x, kernel + 2 * tf.reshape(left @ right, kernel.shape)),
    ):
        with tf.GradientTape() as tape:
            tape.watch([x, left, right])
            y = forward()
            loss = tf.reduce_sum(y**2)
        results.append([y, *tape.gradient(loss, [x, left, right])])
    for found in results[:2]:
        assert_all_close(found, results[2], rtol=1e-11)


@pytest.mark.parametrize(
    "case", ["static", "dynamic", "TPU", "recompute", "scores", "training", *DEPTHS]
)
def test_a_network_is_the_one_with_full_kernels(case):
    changes = {"recompute": {"recompute": "block"}, **DEPTHS}.get(case, {})
    encoder, full = tiny_encoder(**changes), tiny_encoder(**changes)
    inputs, wanted = random_inputs(1, memory=MEMORY, padding=True, directions=True), {}
    randomize(xlnet.add_lora(encoder, RANK).variables, 5)
    for block, target in dict(zip(encoder.blocks, full.blocks, strict=True)).items():
        for part, names in (
            ("attention", ["query_kernel", "key_kernel", "value_kernel", "output_kernel"]),
            ("feed_forward", ["inner_kernel", "outer_kernel"]),
        ):
            for name in names:
                adapted, kernel = getattr(getattr(block, part), name), getattr(target, part)
                change = np.einsum("ir,ro->io", adapted.left, adapted.right)
                kernel = getattr(kernel, name)
                kernel.assign_add(2 * change.reshape(kernel.shape))
    found, wanted = [], []
    for network, outputs in ((encoder, found), (full, wanted)):
        if case == "dynamic":
            ids = tf.TensorSpec([None, None], tf.int32)
            outputs += tf.function(network, input_signature=[ids])(inputs["token_ids"]).values()
        elif case == "TPU":
            with built_for("TPU"):
                outputs += network(inputs).values()
        else:
            how = {"return_attention_scores": case == "scores", "training": case == "training"}
            outputs += network(inputs, **how).values()
    assert_all_close(found, wanted, rtol=1e-6, atol=6e-6)


def test_inner_rows_that_are_padded_in_training():
    layer, x = FeedForward(1024), np.random.default_rng(1).standard_normal([2, 5, 7], np.float32)
    wanted = layer(x, training=True)
    adapters = Lora([layer], RANK)
    np.testing.assert_allclose(layer(x, training=True), wanted, atol=1e-6)
    randomize([*adapters.variables, layer.inner_bias, layer.outer_bias], 3)
    found, full = layer(x, training=True), FeedForward(1024)
    full(x)
    parts = layer.inner_kernel.merged(), layer.inner_bias, layer.outer_kernel.merged()
    full.set_weights([*parts, layer.outer_bias])
    np.testing.assert_allclose(found, full(x), rtol=1e-5, atol=1e-5)


def pretrainer(**changes):
    model = make_model(**changes)
    return model, lambda: model.train_step(random_windows(1, batch=4))


def classifier(**changes):
    model = XLNetClassifier(tiny_encoder(mem_len=0, dropout=0.1), 2)
    return model, lambda: model.train_on_batch(IDS, LABELS)


def task_model(**changes):
    config = tiny_config(name="classification", labels="[a, b]", mem_len=0, **changes)
    model = XLNetTaskModel(config)
    return model, lambda: model.train_step({"token_ids": IDS, "label": LABELS})


def compiled(model, rate=0.1):
    is_ours = isinstance(model, xlnet.XLNetPretrainer | XLNetTaskModel)
    model.compile(keras.optimizers.SGD(rate), **({} if is_ours else {"loss": LOSS}))
    model.run_eagerly = True


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (pretrainer, {}),
        *((pretrainer, changes) for changes in rows("ADAPTED_NETWORKS")),
        pytest.param(task_model, {}, marks=pytest.mark.slow),
        pytest.param(task_model, {"precision": "mixed_bfloat16"}, marks=pytest.mark.slow),
        (classifier, {}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_adapters_and_the_head_are_trained_alone_until_they_are_merged(make, changes):
    model, step = make(**changes)
    encoder, trained = model.encoder, {*map(id, model.trainable_variables)}
    adapters, head = xlnet.add_lora(model, RANK), getattr(model, "head", None)
    kernels = [x for x in encoder.blocks[0].variables if "kernel" in x.name]
    kernels = [x for x in kernels if "position" not in x.name]
    assert len(adapters.trainable_variables) == 2 * 6 * LAYERS and len(kernels) == 6
    factors = {layer_of(path_of(variable), LAYERS) for variable in adapters.variables}
    assert factors == {1, 2}
    wanted = [*adapters.trainable_variables, *(head.trainable_variables if head else [])]
    assert {*map(id, model.trainable_variables)} == {*map(id, wanted)}
    switched = [
        model,
        encoder,
        encoder.word_embedding,
        *encoder.blocks[0]._flatten_layers(),
    ]
    for layer in [*switched, getattr(model, "lm_head", model)]:
        layer.trainable = False
        layer.trainable = True
        assert {*map(id, model.trainable_variables)} == {*map(id, wanted)}
        assert {*map(id, encoder.trainable_weights)} == {*map(id, adapters.variables)}
    for part in (model, encoder):
        lists = part.trainable_weights, part.non_trainable_weights
        ids = [id(weight) for weights in lists for weight in weights]
        assert sorted(ids) == sorted({*map(id, part.weights)}) and len(ids) == len({*ids})
    randomize(adapters.variables, 3, scale=0.1)
    others = [x for x in encoder.variables + getattr(model, "lm_head", encoder).variables]
    others = [x for x in others if id(x) not in {*map(id, wanted)}]
    assert {*map(id, kernels)} <= {*map(id, others)} & {*map(id, model.weights)}
    compiled(model)
    before, kept = values(wanted), values(others)
    step()
    assert_all_differ(before, values(wanted))
    assert_all_equal(values(others), kept)
    graph = tf.function(lambda ids: encoder(ids)["content"])
    content = graph(tf.constant(IDS))
    xlnet.merge_lora(model)
    np.testing.assert_array_equal(adapters.weights[1], 0)  # Or graphs would add it again.
    assert np.abs(graph(tf.constant(IDS)) - content).max() < 0.1
    tolerance = 0.05 if "precision" in changes else 1e-5
    np.testing.assert_allclose(encoder(IDS)["content"], content, atol=tolerance)
    assert {*map(id, model.trainable_variables)} == trained
    with pytest.raises((RuntimeError, ValueError), match=r"must (call `)?compile"):
        model.train_on_batch({"token_ids": IDS})
    compiled(model)
    step()
    assert_all_differ(kept[1:2], values(others)[1:2])


def test_adapters_of_trainable_blocks_and_wrong_calls():
    encoder, frozen = tiny_encoder(), tiny_encoder()
    encoder.blocks[0].trainable = frozen.trainable = False
    parts = xlnet.add_lora(encoder)._flatten_layers(include_self=False)
    assert [part.name for part in parts] == ["layer_1"]
    for call, message in (
        (lambda: xlnet.add_lora(encoder), "model: expected a model without adapters"),
        (lambda: xlnet.merge_lora(tiny_encoder()), "model: expected a model with adapters"),
        (lambda: xlnet.add_lora(tiny_encoder(), 0), "rank: expected at least 1"),
        (lambda: xlnet.add_lora(frozen), "blocks: expected trainable ones"),
        (lambda: xlnet.add_lora(tiny_encoder(), 10**6), "rank: expected at most .*smaller side of"),
        (lambda: xlnet.add_lora(tiny_encoder(), alpha=0), "alpha: expected .* 0"),
        (lambda: xlnet.add_lora(tiny_encoder(), dropout=1.0), "dropout: expected"),
        (lambda: xlnet.add_lora(tiny_encoder(), targets=["q_proj"]), "targets: expected names of"),
        (lambda: xlnet.add_lora(tiny_encoder(), targets="layer_9.*"), "targets: expected names of"),
    ):
        with pytest.raises(ConfigError, match=message):
            call()
    xlnet.merge_lora(encoder)
    assert [block.trainable for block in encoder.blocks] == [False, True]


def test_every_form_of_saving(tmp_path):
    model, step = classifier()
    adapters = xlnet.add_lora(model, RANK)
    randomize(adapters.variables, 3)
    compiled(model)
    step()
    wanted = model(IDS)
    model.save(tmp_path / "model.keras")
    files = ["model.weights.h5"] if IS_KERAS_3 else ["weights.h5", "weights"]
    for name in files:
        model.save_weights(tmp_path / name)
    tf.train.Checkpoint(model=model).write(str(tmp_path / "whole"))
    tf.train.Checkpoint(lora=adapters, head=model.head).write(str(tmp_path / "alone"))
    sizes = [
        os.path.getsize(tmp_path / f"{name}.data-00000-of-00001") for name in ("alone", "whole")
    ]
    assert sizes[0] < sizes[1] / 2
    loaded = [keras.models.load_model(tmp_path / "model.keras")]
    for name in files:
        again, _ = classifier()
        xlnet.add_lora(again, RANK)
        again.load_weights(tmp_path / name)
        loaded.append(again)
    again, _ = classifier()
    [lora, head] = xlnet.add_lora(again, RANK), again.head
    state = tf.train.Checkpoint(lora=lora, head=head)
    state.read(str(tmp_path / "alone")).assert_consumed()
    for same in (*loaded, again):
        np.testing.assert_allclose(same(IDS), wanted, atol=1e-5)
        assert same.encoder.lora_rank == RANK
    pretrained, _ = pretrainer()
    randomize(xlnet.add_lora(pretrained, RANK).variables, 3)
    pretrained.save(tmp_path / "pretrained.keras")
    again = keras.models.load_model(tmp_path / "pretrained.keras")
    np.testing.assert_allclose(again(IDS)["content"], pretrained(IDS)["content"], atol=1e-5)


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_model_directory_has_no_adapters(is_merged, tmp_path):
    vocabulary = os.path.join(vocabulary_dir(), "spiece.model")
    encoder = tiny_encoder(vocab_size=211)
    adapters = xlnet.add_lora(encoder, RANK)
    randomize(adapters.variables, 3)
    content, kernels = encoder(IDS)["content"], values(encoder.blocks[0].variables)
    stored, _ = stored_encoder(encoder, IDS.shape[1])
    np.testing.assert_allclose(stored(IDS)["content"], content, atol=1e-5)
    if is_merged:
        xlnet.merge_lora(encoder)
    xlnet.save_pretrained(encoder, tmp_path / "model", vocabulary)
    assert not any("lora" in name for name, _ in tf.train.list_variables(str(tmp_path / "model")))
    loaded = xlnet.load_encoder(tmp_path / "model")
    for network in (encoder, loaded):
        np.testing.assert_allclose(network(IDS)["content"], content, atol=1e-5)
    assert loaded.lora is None
    if not is_merged:
        assert encoder.lora is adapters
        assert_all_equal(values(encoder.blocks[0].variables), kernels)
        names = [
            name
            for name, _ in tf.train.list_variables(
                tf.train.Checkpoint(encoder=encoder).write(str(tmp_path / "state"))
            )
        ]
        assert any("lora" in name for name in names)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("is_saved_with", [True, False])
def test_weights_are_loaded_with_the_adapters_that_they_were_saved_with(
    file_format, is_saved_with, tmp_path
):
    saved, loaded = classifier()[0], classifier()[0]
    inside = keras.Sequential([keras.Input([11], dtype="int32"), loaded])
    around = keras.Sequential([keras.Input([11], dtype="int32"), saved])
    randomize(xlnet.add_lora(saved if is_saved_with else loaded, RANK).variables, 3)
    for name, model in (("model", saved), ("around", around)):
        os.makedirs(tmp_path / name)
        model.save_weights(tmp_path / name / file_format)
    before = values(loaded.weights)
    expected = "with adapters" if is_saved_with else "adapters of the model"
    with pytest.raises(ValueError, match=f"{expected}|Weight count mismatch"):
        loaded.load_weights(tmp_path / "model" / file_format)
    if file_format == "model.weights.h5":
        with pytest.raises(ValueError, match=expected):
            inside.load_weights(tmp_path / "around" / file_format)
    assert_all_equal(values(loaded.encoder.weights[:1]), before[:1])


def test_adapters_before_the_encoder_is_built():
    encoder, later = (type(tiny_encoder())(tiny_config(), name="same") for _ in range(2))
    adapters = xlnet.add_lora(encoder, RANK)
    later(IDS)
    names = {path_of(variable) for variable in later.variables}
    factors = {path_of(variable) for variable in adapters.variables}
    assert {path_of(variable) for variable in encoder.variables} - factors == names
    assert {*map(id, encoder.trainable_variables)} == {*map(id, adapters.variables)}


def test_alpha_and_targets():
    encoder, other = tiny_encoder(), tiny_encoder()
    adapters = xlnet.add_lora(encoder, RANK, alpha=7.5, targets=["query", "feed_forward/inner"])
    wanted = [
        f"layer_{layer}/{name}"
        for layer in range(LAYERS)
        for name in ("attention/query", "feed_forward/inner")
    ]
    assert [*adapters.kernels] == wanted
    pattern = r"layer_1/.*/(key|outer)"
    paths = [*xlnet.add_lora(other, RANK, targets=pattern).kernels]
    assert paths == ["layer_1/attention/key", "layer_1/feed_forward/outer"]
    randomize(adapters.variables, 3)
    again = type(encoder).from_config(encoder.get_config())
    again.build()
    again.set_weights(encoder.get_weights())
    content = encoder(IDS)["content"]
    np.testing.assert_allclose(again(IDS)["content"], content, atol=1e-6)
    assert again.lora.settings == adapters.settings
    kernels = {path: kernel.kernel.numpy() for path, kernel in adapters.kernels.items()}
    factors = {
        path: (kernel.left.numpy(), kernel.right.numpy())
        for path, kernel in adapters.kernels.items()
    }
    merged = dict(adapters.kernels)
    xlnet.merge_lora(encoder)
    for path, (left, right) in factors.items():
        change = (7.5 / RANK * left @ right).reshape(kernels[path].shape)
        np.testing.assert_allclose(merged[path].kernel, kernels[path] + change, atol=1e-6)


def test_dropout_of_adapters():
    encoder = tiny_encoder(dropout=0.0, dropatt=0.0)
    adapters = xlnet.add_lora(encoder, RANK, dropout=0.5, targets=["inner"])
    randomize(adapters.variables, 3)
    seeds = tf.constant([[1, 2], [1, 2], [3, 4]])
    draws = [
        encoder({"token_ids": IDS, "dropout_seed": seed}, training=True)["content"]
        for seed in seeds
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert np.abs(draws[0] - draws[2]).max() > 1e-3
    plain = encoder(IDS)["content"]
    np.testing.assert_array_equal(plain, encoder(IDS, training=False)["content"])
    assert np.abs(draws[0] - plain).max() > 1e-3
    # By hand, of one product: half of the inputs are dropped, the others doubled.
    kernel, x = adapters.kernels["layer_0/feed_forward/inner"], tf.random.normal([3, 5, 1000])
    wide = AdaptedKernel(
        tf.zeros([1000, 2]), tf.eye(1000), tf.ones([1000, 2]), scale=1.0, dropout_rate=0.5
    )
    assert kernel.dropout_rate == 0.5
    with adapter_dropout(tf.constant([5, 6])):
        first, second = wide.multiply(x), wide.multiply(x)
    assert np.abs(first - second).min() > 0
    np.testing.assert_allclose(wide.multiply(x)[..., 0], tf.reduce_sum(x, -1), atol=1e-3)
    other = tiny_encoder()
    xlnet.add_lora(other, RANK, dropout=0.5)
    with pytest.raises(ConfigError, match="dropout of adapters"):
        other(IDS, training=True, return_attention_scores=True)
    xlnet.merge_lora(encoder)
    merged = encoder(IDS, training=True)["content"]
    np.testing.assert_allclose(merged, plain, atol=1e-5)
