"""A step of pre-training: loss, memory, and every form of it against the plain one."""

import functools
import glob

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.training import TrainingConfig
from official.xlnet.errors import DataError
from official.xlnet.modeling.kernels import attention, xla_kernels
from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.models.gradient_accumulation import accumulated
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.objectives.base import ObjectiveBatch
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.runtime.distribution import limit_threads
from tests.helpers.compare import assert_all_close, assert_all_equal, values
from tests.helpers.compiled import make_model, state
from tests.helpers.graphs import above
from tests.helpers.tiny import MEMORY, VOCAB, random_windows, randomize, stacked, tiny_config

# What `xlnet.testing.check_objective` leaves out: forms for each device, dropout, and many settings
# together; slices are those in turn x those in parallel. Those with * are slow.
COLUMNS = ["kind", "mem_len", "attention_type", "num_layers", "dropatt", "untie_r"]
FORMS = """
    denoising   0 bi  2 0.0 true  none      2x2 bfloat16 GPU eager
    permutation 7 uni 2 0.3 true  block     2x1 bfloat16 CPU eager*
    permutation 7 uni 1 0.0 false attention 2x2 bfloat16 TPU eager
    permutation 0 bi  2 0.3 false block     1x2 float32  GPU eager*
    causal      0 bi  2 0.3 true  attention 1x1 float32  TPU eager*
    causal      7 uni 1 0.0 true  none      1x2 float32  CPU eager*
    denoising   7 bi  1 0.0 false block     2x1 float32  TPU eager*
    permutation 7 bi  1 0.3 true  none      2x1 float32  CPU graph
    permutation 7 bi  1 0.3 true  attention 1x1 float32  GPU xla*
"""


def step_of(settings, device="CPU", run="eager"):
    """The loss of one step of gradient descent, the weights' changes, the memory, the model."""
    model = XLNetPretrainer(tiny_config(**settings))
    randomize(model.trainable_variables, seed=3, scale=0.1)
    before = values(model.trainable_variables)
    memory = [model.memory.states] if model.memory else []
    randomize(memory, seed=5)
    model.compile(keras.optimizers.SGD(1.0))
    with built_for(device):
        step = model.train_step
        if run != "eager":
            step = tf.function(step, jit_compile=run == "xla")
        metrics = step(random_windows(1))
    pairs = zip(model.trainable_variables, before, strict=True)
    changes = [new.numpy() - old for new, old in pairs]
    return float(metrics["loss"]), changes, values(memory), model


@functools.cache
def plain_step_of(items):
    """In float32, by the reference of attention, operation by operation, all rows at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "_has_static_sizes", lambda mask: False)
        return step_of(dict(items))[:3]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row.strip("*"), marks=[pytest.mark.slow] * row.endswith("*"))
        for row in map(str.strip, FORMS.strip().splitlines())
    ],
)
def test_every_form_of_a_step_does_what_the_plain_one_does(row):
    """The loss, all gradients and the memory."""
    *values, recompute, slices, precision, device, run = row.split()
    settings = dict(zip(COLUMNS, values, strict=True))
    # Dropout of positions has other masks on a TPU; see `FactoredSinusoids.with_dropout`.
    settings["dropout"] = 0.0 if device == "TPU" else settings["dropatt"]
    in_turn, in_parallel = map(int, slices.split("x"))
    # Slices have masks of their own, in parallel those that they have one after the other.
    plain_slices = in_turn * in_parallel if float(settings["dropatt"]) else 1
    plain = plain_step_of((*settings.items(), ("accumulate_steps", plain_slices)))
    settings |= {"recompute": recompute, "accumulate_steps": in_turn}
    settings |= {"parallel_slices": in_parallel, "precision": precision.replace("b", "mixed_b")}
    loss, changes, memory, model = step_of(settings, device, run)
    is_exact = precision == "float32"
    assert model.encoder.compute_dtype == precision
    assert keras.mixed_precision.global_policy().name == "float32"
    assert loss == pytest.approx(plain[0], abs=1e-5 if is_exact else 0.03)
    for found, wanted in zip([*changes, *memory], [*plain[1], *plain[2]], strict=True):
        error = np.linalg.norm(found.astype(np.float32) - wanted)
        assert error <= (1e-4 if is_exact else 0.05) * np.linalg.norm(wanted) + 1e-5


def test_loss_is_the_mean_over_real_targets_and_memory_is_carried():
    """By hand; rows that a batch lacks keep their memory."""
    model = make_model(num_predict=9, num_layers=1)
    memory = model.memory.states.numpy()
    for number, rows in enumerate((4, 4, 3)):
        batch = random_windows(number, batch=rows)
        task = model.objective(batch)
        mask = task.mask_BP.numpy()
        assert 0 < mask.sum() < mask.size, "some target slots should be unused"
        read = {"memory": memory[:, :rows], "memory_length": batch["context_length"]}
        outputs = model({**task.inputs, **read})
        log_p = tf.nn.log_softmax(outputs["logits"]).numpy()
        losses = -np.take_along_axis(log_p, task.labels_BP.numpy()[..., None], axis=-1)[..., 0]
        model.reset_metrics()
        loss = model.train_step(batch)["loss"]
        np.testing.assert_allclose(loss, (losses * mask).sum() / mask.sum(), rtol=1e-5)
        memory[:, :rows] = outputs["memory"]
        np.testing.assert_allclose(model.memory.states, memory, atol=1e-5)
    with pytest.raises(ValueError, match=r"4 rows.*batch of 5"):
        model.train_step(random_windows(1, batch=5))


def test_overfits_a_batch_and_evaluates_with_a_memory_of_its_own():
    model = make_model(
        num_layers=1, is_random=False, learning_rate=0.02, num_steps=120, warmup_steps=10
    )
    data = stacked(*(random_windows(number, context_length=0) for number in range(2)))
    before = model.evaluate(data, verbose=0)
    assert abs(before - np.log(VOCAB)) < 0.05
    assert not model.memory.states.numpy().any(), "evaluation writes to its own memory"
    model.fit(data.repeat(), steps_per_epoch=120, verbose=0)
    trained = state(model)
    after = model.evaluate(data, verbose=0)
    assert after < 0.3
    assert model.evaluate(data, verbose=0) == after, "and does not see the last evaluation's"
    assert_all_equal(state(model), trained)


@pytest.mark.slow
def test_other_windows_compile_nothing(tmp_path):
    """XLA takes some arguments for constants, and compiles again when such a one changes."""
    xla_kernels.compiled.cache_clear()
    xla_kernels.fused.cache_clear()
    model = make_model(num_layers=1)
    model.make_train_function()
    compilations = []
    for number in range(2):
        tf.profiler.experimental.start(f"{tmp_path}/{number}")
        model.train_function(iter(tf.data.Dataset.from_tensors(random_windows(number))))
        tf.profiler.experimental.stop()
        (trace,) = glob.glob(f"{tmp_path}/{number}/plugins/profile/*/*.xplane.pb")
        with open(trace, "rb") as file:
            compilations.append(file.read().count(b"CpuCompiler"))
    assert compilations[0] and not compilations[1]


def test_parallel_slices_share_the_cores(monkeypatch, caplog):
    """In a notebook, the second run of a process finds TensorFlow initialized: no warning."""
    tf.constant(0)
    caplog.set_level("INFO", "absl")
    limit_threads(TrainingConfig(parallel_slices=2))
    assert "TensorFlow is already initialized" in caplog.text
    assert {record.levelname for record in caplog.records} == {"INFO"}
    threads = []
    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", threads.append)
    limit_threads(TrainingConfig(parallel_slices=1000))
    assert threads == [1]


def test_a_slice_begins_when_the_one_before_is_done():
    """Else their activations would be in memory together, and nothing would be saved."""
    kernel = tf.Variable(tf.random.normal([5, 3]))

    def gradients(task, seed):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(task.mask_BP @ kernel))
        return tape.gradient(loss, [kernel]), loss, None

    @tf.function
    def step(mask_BP):
        task = ObjectiveBatch({}, tf.zeros([6, 5], tf.int32), mask_BP)
        training = TrainingConfig(accumulate_steps=3)
        return accumulated(gradients, 6, training)(task, tf.zeros([2], tf.int32))

    operations = step.get_concrete_function(tf.TensorSpec([6, 5])).graph.get_operations()
    (loop,) = (op for op in operations if op.type in ("While", "StatelessWhile"))
    *_, gradient_of_first = (op for op in operations if op.type == "MatMul")
    scalars = [x.op for x in loop.inputs if x.dtype == tf.int32 and x.shape.rank == 0]
    assert any(gradient_of_first in above(op) for op in scalars)


@pytest.mark.slow
def test_a_mask_of_ones_own_trains_as_the_order_that_it_was_made_from():
    """Two steps with dropout and memory: the same losses, gradient norms, weights and memory."""
    settings = {"num_layers": 1, "adam_epsilon": 1e-3, "dropout": 0.2, "dropatt": 0.3}
    drawn, own = make_model(**settings), make_model(**settings)
    for seed, context_length in ((0, 0), (1, MEMORY)):
        windows = random_windows(seed, context_length=context_length)
        task = drawn.make_permutation(windows)
        order_BT = task.inputs["order"].numpy()
        names = "token_ids", "segment_ids", "is_reversed", "context_length"
        batch = {name: windows[name] for name in names} | {
            "perm_mask": tf.constant(order_BT[:, :, None] < order_BT[:, None, :]),
            "target_positions": task.inputs["target_positions"],
            "target_mask": task.mask_BP,
        }
        wanted, got = drawn.train_step(windows), own.train_step(batch)
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-5, err_msg=name)
    assert_all_close(state(own), state(drawn), atol=1e-5)
    del batch["target_mask"], batch["context_length"]
    model = make_model(num_layers=1, mem_len=0)
    rows = tf.data.Dataset.from_tensor_slices(batch)
    # A graph does not know the number of rows. XLA compiles for each, so all batches have two.
    before = model.evaluate(rows.batch(2), verbose=0)
    model.run_eagerly = True
    data = rows.batch(3)  # The last batch has one row.
    assert model.fit(data, epochs=2, verbose=0).history["loss"][1] < before
    with pytest.raises(DataError, match=r"known number of rows.*drop_remainder=True"):
        make_model(num_layers=1).fit(
            tf.data.Dataset.from_tensor_slices(random_windows(0)).batch(4), verbose=0
        )
