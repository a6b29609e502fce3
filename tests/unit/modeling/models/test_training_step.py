"""`train_step` and `test_step`: loss, memory, accumulation, recomputation, precision, XLA."""

import glob
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official.xlnet.configs.training import TrainingConfig
from official.xlnet.modeling.kernels import xla_kernels
from official.xlnet.runtime.distribution import limit_threads
from tests.helpers.compiled import make_model, state
from tests.helpers.tiny import (
    LAYERS,
    MEMORY,
    TARGETS,
    VOCAB,
    WIDTH,
    random_windows,
)

ROWS = 4
DROPOUT = {"dropout": 0.2, "dropatt": 0.3}


@pytest.fixture
def bfloat16():
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    yield
    tf_keras.mixed_precision.set_global_policy("float32")


def train(model, steps=3, step=None):
    """The loss of each of some steps, on another batch each; eagerly by default."""
    losses = []
    for number in range(steps):
        model.reset_metrics()
        losses.append(float((step or model.train_step)(random_windows(number))["loss"]))
    return losses


def assert_same_state(model, other, atol):
    for ours, theirs in zip(state(model), state(other), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=atol)


def test_loss_is_the_mean_over_real_targets_and_memory_is_carried():
    model = make_model(num_predict=9)
    memory = np.zeros([LAYERS, ROWS, MEMORY, WIDTH], np.float32)
    for number in range(3):
        batch = random_windows(number)
        task = model.objective(batch)
        mask = task.mask_BP.numpy()
        assert 0 < mask.sum() < mask.size, "some target slots should be unused"
        inputs = {**task.inputs, "memory": memory, "memory_length": batch["context_length"]}
        outputs = model(inputs)
        log_p = tf.nn.log_softmax(outputs["logits"]).numpy()
        losses = -np.take_along_axis(log_p, task.labels_BP.numpy()[..., None], axis=-1)[..., 0]
        model.reset_metrics()
        loss = model.train_step(batch)["loss"]
        np.testing.assert_allclose(loss, (losses * mask).sum() / mask.sum(), rtol=1e-5)
        memory = outputs["memory"].numpy()
        np.testing.assert_allclose(model.memory.states, memory, atol=1e-5)


def test_fewer_rows_leave_the_memory_of_the_others_alone():
    model = make_model()
    train(model, steps=1)
    before = model.memory.states.numpy()
    model.train_step(random_windows(1, batch=3))
    after = model.memory.states.numpy()
    np.testing.assert_array_equal(after[:, 3], before[:, 3])
    assert np.all(np.abs(after - before)[:, :3].max(axis=(0, 2, 3)) > 0)
    with pytest.raises(ValueError, match=r"4 rows.*batch of 5"):
        model.train_step(random_windows(1, batch=5))


def test_slices_equal_one_batch():
    # A large epsilon, so that where a gradient is 0 but for rounding, no step is made of it.
    settings = {"adam_epsilon": 1e-3, "clip_norm": 0.01, "num_layers": 1}
    model = make_model(**settings)
    losses = train(model, steps=2)
    for slices in (
        {"accumulate_steps": 4},
        {"parallel_slices": 2},
        {"accumulate_steps": 2, "parallel_slices": 2},
    ):
        other = make_model(**settings, **slices)
        np.testing.assert_allclose(train(other, steps=2), losses, atol=1e-5)
        assert_same_state(other, model, atol=1e-5)


SLICED = pytest.mark.parametrize("kind", ["accumulate_steps", "parallel_slices"])


def test_slices_side_by_side_have_the_dropout_of_those_one_after_the_other():
    settings = {**DROPOUT, "adam_epsilon": 1e-3, "num_layers": 1}
    model, other = (make_model(**settings, **{kind: 2}) for kind in SLICED.args[1])
    np.testing.assert_allclose(train(model, steps=2), train(other, steps=2), atol=1e-5)
    assert_same_state(other, model, atol=1e-5)


def test_recomputation_changes_nothing():
    """With dropout: masks come from seeds, so the second pass draws the same."""
    settings = {**DROPOUT, "untie_r": False, "adam_epsilon": 1e-3}
    model = make_model(**settings)
    losses = train(model, steps=1)
    for recompute in ("attention", "block"):
        other = make_model(**settings, recompute=recompute)
        np.testing.assert_allclose(train(other, steps=1), losses, atol=1e-6)
        assert_same_state(other, model, atol=1e-6)


def test_equal_seeds_give_equal_runs():
    model, again, other = (
        make_model(**DROPOUT, **{"num_layers": 1, "training.seed": seed}) for seed in (1, 1, 2)
    )
    assert train(model, steps=2) == train(again, steps=2)
    for ours, theirs in zip(state(model), state(again), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    train(other, steps=2)
    assert np.abs(state(other)[-1] - state(model)[-1]).max() > 1e-3


def test_targets_are_new_in_every_epoch():
    model = make_model()
    tasks = [model.objective(random_windows(0, epoch=epoch)) for epoch in (0, 0, 1)]
    orders = [task.inputs["order"].numpy() for task in tasks]
    np.testing.assert_array_equal(orders[0], orders[1])
    assert np.any(orders[0] != orders[2])


@pytest.mark.slow
@pytest.mark.parametrize(("recompute", "num_layers"), [("none", 2), ("attention", 1), ("block", 1)])
def test_compiled_steps_equal_eager_ones(recompute, num_layers):
    """The step as `fit` runs it: a graph with kernels; dropout, accumulation and memory on."""
    settings = {**DROPOUT, "accumulate_steps": 2, "recompute": recompute, "adam_epsilon": 1e-3}
    settings["num_layers"] = num_layers
    wanted, model = make_model(**settings), make_model(**settings)
    losses = train(model, steps=2, step=tf.function(model.train_step))
    np.testing.assert_allclose(losses, train(wanted, steps=2), atol=1e-5)
    assert_same_state(model, wanted, atol=1e-5)


def as_dataset(batches):
    stacked = {name: tf.stack([batch[name] for batch in batches]) for name in batches[0]}
    return tf.data.Dataset.from_tensor_slices(stacked)


@pytest.mark.slow
def test_fit_with_xla():
    settings = {**DROPOUT, "adam_epsilon": 1e-3, "num_layers": 1}
    wanted, model = make_model(**settings), make_model(**settings, jit_compile=True)
    losses = train(wanted, steps=2)
    history = model.fit(as_dataset([random_windows(number) for number in range(2)]), verbose=0)
    np.testing.assert_allclose(history.history["loss"][0], np.mean(losses), rtol=1e-3)
    assert_same_state(model, wanted, atol=1e-4)


def test_bfloat16(bfloat16):
    settings = {**DROPOUT, "num_layers": 1}
    model = make_model(**settings)
    assert {variable.dtype for variable in model.trainable_variables} == {tf.float32}
    assert model.memory.states.dtype == tf.bfloat16
    losses = train(model, steps=2, step=tf.function(model.train_step))
    tf_keras.mixed_precision.set_global_policy("float32")
    np.testing.assert_allclose(losses, train(make_model(**settings), steps=2), atol=0.03)
    assert np.all(np.isfinite(np.concatenate([values.ravel() for values in state(model)])))


def test_bfloat16_outputs_are_near_float32(bfloat16):
    """Padding, memory of another document and rows that see nothing make no NaN either."""
    from tests.helpers.tiny import random_inputs, tiny_encoder

    inputs = random_inputs(0, order="all", padding=True, memory=MEMORY, directions=True)
    inputs["memory_length"] = [0, 3, MEMORY]
    inputs["order"] += inputs["is_padding"] * 10
    low = tiny_encoder()(inputs)
    tf_keras.mixed_precision.set_global_policy("float32")
    high = tiny_encoder()(inputs)
    for name in ("content", "query", "memory"):
        assert low[name].dtype == tf.bfloat16 and high[name].dtype == tf.float32
        error = np.abs(tf.cast(low[name], tf.float32) - high[name])
        assert error.mean() < 0.02 and error.max() < 0.2, name


def test_shapes_are_static():
    model = make_model()
    batch = random_windows(0)

    @tf.function
    def outputs(batch):
        task = model.objective(batch)
        memory = model.memory.read(ROWS)
        inputs = {**task.inputs, "memory": memory, "memory_length": batch["context_length"]}
        return model(inputs)

    shapes = {
        name: spec.shape.as_list()
        for name, spec in outputs.get_concrete_function(batch).structured_outputs.items()
    }
    assert shapes == {
        "content": [ROWS, 13, WIDTH],
        "query": [ROWS, TARGETS, WIDTH],
        "memory": [LAYERS, ROWS, MEMORY, WIDTH],
        "logits": [ROWS, TARGETS, VOCAB],
    }


def test_overfits_a_batch_and_evaluates_with_a_memory_of_its_own():
    model = make_model(is_random=False, learning_rate=0.02, num_steps=90, warmup_steps=10)
    data = as_dataset([random_windows(number, context_length=0) for number in range(2)])
    before = model.evaluate(data, verbose=0)
    assert abs(before - np.log(VOCAB)) < 0.05
    assert not model.memory.states.numpy().any(), "evaluation writes to its own memory"

    model.fit(data.repeat(), steps_per_epoch=90, verbose=0)
    trained = state(model)
    after = model.evaluate(data, verbose=0)
    assert after < 0.3
    assert model.evaluate(data, verbose=0) == after, "and does not see the last evaluation's"
    for ours, theirs in zip(state(model), trained, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_other_windows_compile_nothing(tmp_path):
    """XLA takes some arguments for constants, and compiles again when such a one changes."""
    xla_kernels.compiled.cache_clear()
    xla_kernels.fused.cache_clear()
    model = make_model(num_layers=1)
    step = model.make_train_function()

    def compilations(number):
        directory = str(tmp_path / str(number))
        tf.profiler.experimental.start(directory)
        step(iter(tf.data.Dataset.from_tensors(random_windows(number))))
        tf.profiler.experimental.stop()
        (trace,) = glob.glob(f"{directory}/plugins/profile/*/*.xplane.pb")
        with open(trace, "rb") as file:
            return file.read().count(b"CpuCompiler")

    assert compilations(0)
    assert not compilations(1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["denoising", "causal"])
def test_slices_of_other_objectives(kind, caplog):
    """Some have no query stream, so not every variable has a gradient: no reason to warn."""
    settings = {"objective.kind": kind, "adam_epsilon": 1e-3, "num_layers": 1}
    model = make_model(**settings)
    losses = train(model, steps=1)
    for name in SLICED.args[1]:
        other = make_model(**settings, **{name: 2})
        np.testing.assert_allclose(train(other, steps=1), losses, atol=1e-5)
        assert_same_state(other, model, atol=1e-5)
    assert "Gradients do not exist" not in caplog.text


@pytest.mark.slow
def test_threads_are_set_before_tensorflow_starts(caplog):
    tf.constant(0)
    limit_threads(TrainingConfig(parallel_slices=2))
    assert "TensorFlow is already initialized" in caplog.text
    script = (
        "import tensorflow as tf\n"
        "from official.xlnet.configs.experiment import TrainingConfig\n"
        "from official.xlnet.runtime.distribution import limit_threads\n"
        "limit_threads(TrainingConfig(parallel_slices=1000))\n"
        "print(tf.config.threading.get_intra_op_parallelism_threads())"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert run.stdout.split()[-1] == b"1"
