"""The models as Keras users train them: optimizers, precision, forms of a batch, wrong batches."""

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.data.random_records import write_data_set
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.compare import assert_all_close, values
from tests.helpers.compiled import make_model, state
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import MEMORY, random_windows, randomize, tiny_config

LossScaleOptimizer = keras.mixed_precision.LossScaleOptimizer
OPTIMIZERS = {
    "by name": lambda: "adam",
    "of Keras": lambda: keras.optimizers.Adafactor(),
    "own": lambda: create_optimizer(tiny_config().training, 1),
}
MODULES = [keras.optimizers]
if not IS_KERAS_3:
    from official.nlp import optimization

    garden = optimization.create_optimizer
    MODULES += [keras.optimizers.legacy]
    OPTIMIZERS |= {
        "legacy": lambda: keras.optimizers.legacy.Ftrl(),
        "official.nlp adamw": lambda: garden(1e-2, 10, 0),
        "official.nlp lamb": lambda: garden(1e-2, 10, 0, optimizer_type="lamb"),
    }


@pytest.fixture(scope="module")
def pretrainer():
    """Shared, as it is compiled anew by each test."""
    return XLNetPretrainer(tiny_config(num_layers=1))


def losses_of(model, optimizer, steps=2, **arguments):
    """Losses of steps on one batch, from the same weights each time."""
    randomize(model.trainable_variables, seed=3, scale=0.1)
    model.compile(optimizer, **arguments)
    data = tf.data.Dataset.from_tensors(random_windows(0, context_length=0))
    return model.fit(data, epochs=steps, verbose=0).history["loss"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_kind_of_optimizer_lowers_the_loss(pretrainer, name):
    losses = losses_of(pretrainer, OPTIMIZERS[name](), run_eagerly=True)
    assert losses[1] < losses[0]


@pytest.mark.parametrize("module", MODULES)
def test_loss_scaling_changes_nothing_but_the_range(pretrainer, module):
    """The loss is multiplied, the gradients are divided: the same update, and the same norm."""
    runs = []
    for wrap in (lambda x: x, LossScaleOptimizer):
        losses = losses_of(pretrainer, wrap(module.SGD(0.1, clipnorm=0.01)), run_eagerly=True)
        norm = pretrainer.gradient_norm_metric.result()
        runs.append([*losses, norm, *values(pretrainer.trainable_variables)])
    assert_all_close(*runs, rtol=1e-4, atol=1e-5)


def task_batch(seed=0, units=4, tokens=11):
    """Three classes; the first unit is padded, the weights differ."""
    rng = np.random.default_rng(seed)
    token_ids = rng.integers(9, 211, (units, 1, tokens)).astype(np.int32)
    token_ids[..., -2:] = 4, 3  # SEP CLS
    token_ids[0, 0, :3] = 5  # PAD
    segment_ids = np.zeros_like(token_ids)
    segment_ids[..., -1] = 2
    return {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "is_padding": token_ids == 5,
        "label": rng.integers(0, 3, units),
        "weight": rng.random(units).astype(np.float32),
    }


@pytest.fixture(scope="module")
def classifying():
    """A model of a task; shared, as it is compiled anew by each test."""
    config = task_config(name="classification", labels=("a", "b", "c"), batch_size=4, num_buckets=1)
    model = XLNetTaskModel(config)
    randomize(model.trainable_variables, seed=3, scale=0.1)
    return model


@pytest.fixture(scope="module")
def windows_of_documents(tmp_path_factory):
    """Windows, a model, its step as one graph for all tests, and the memory that it begins with."""
    folder = str(tmp_path_factory.mktemp("windows"))
    write_data_set(folder, 13, 5, 8, 23, seed=1)
    config = tiny_config(vocab_size=97, num_layers=1, batch_size=8, kind="causal")
    model = XLNetPretrainer(config)
    model.compile(keras.optimizers.SGD(0.1))
    data = pretraining_dataset(folder, 8, config=config)
    return data, model, tf.function(model.train_step), values(model.memory.variables)


def rolled(number, batch):
    """The batch with its rows one further in every second step."""
    shift = tf.cast(number % 2, tf.int32)
    return {name: tf.roll(value, shift, axis=0) for name, value in batch.items()}


@pytest.mark.parametrize(
    ("change", "is_seen"),
    [
        (lambda data: data.skip(3), True),
        (lambda data: data.shuffle(23, seed=3), False),
        (lambda data: data.enumerate().map(rolled), False),
        (lambda data: data.unbatch().shuffle(97, seed=3).batch(8, drop_remainder=True), False),
    ],
    ids=["from a later step on", "steps shuffled", "rows rolled", "rows shuffled"],
)
def test_a_row_sees_no_memory_of_another_window(windows_of_documents, change, is_seen):
    data, model, step, starts = windows_of_documents
    for variable, start in zip(model.memory.variables, starts, strict=True):
        variable.assign(start)
    windows = np.full(8, -2)
    seen = []
    for batch in change(data).take(9):
        model.reset_metrics()
        is_next = batch["window_id"].numpy() == windows + 1
        length = np.minimum(batch["context_length"].numpy(), MEMORY) * is_next
        metrics = {name: float(value) for name, value in step(batch).items()}
        assert metrics["memory_valid"] == pytest.approx(length.mean() / MEMORY, abs=1e-6)
        windows = batch["window_id"].numpy()
        seen.append(metrics["memory_valid"])
    assert seen[0] == 0
    # By chance, one step may follow the one before it.
    assert np.mean(seen) > 0.3 if is_seen else np.mean(seen) < 0.15


def without(batch, *names):
    return {name: value for name, value in batch.items() if name not in names}


WINDOWS = random_windows(0)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            without(WINDOWS, "can_be_target"),
            "expected the feature 'can_be_target'.*got context_len",
        ),
        (without(WINDOWS, "context_length"), "expected the feature 'context_length'"),
        (without(WINDOWS, "token_ids"), "expected the feature 'token_ids'"),
        ({**WINDOWS, "perm_mask": 0}, "expected the feature 'target_positions'"),
        (([WINDOWS], None), "expected a dictionary of features.*got a list"),
    ],
)
def test_a_batch_that_lacks_a_feature(pretrainer, batch, message):
    pretrainer.compile("sgd", run_eagerly=True)
    with pytest.raises(DataError, match=message):
        pretrainer.train_step(batch)


# Each gives Keras the batch of a task in another form.
FORMS = {
    "features": lambda x: {"x": x},
    "labels beside them": lambda x: {"x": without(x, "label"), "y": x["label"]},
    "weights beside them": lambda x: {
        "x": without(x, "label", "weight"),
        "y": x["label"],
        "sample_weight": x["weight"],
    },
    "token ids": lambda x: {"x": x["token_ids"], "y": x["label"], "sample_weight": x["weight"]},
    "without a sequence axis": lambda x: {
        "x": {name: x[name][:, 0] for name in ("token_ids", "segment_ids", "is_padding")},
        "y": {"label": x["label"]},
        "sample_weight": x["weight"],
    },
    "int64": lambda x: {
        "x": {k: v.astype(np.int64) if v.dtype == np.int32 else v for k, v in x.items()}
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_batch_gives_the_same_loss(classifying, form):
    batch, given = task_batch(), FORMS[form](task_batch())
    classifying.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    logits = classifying(batch)["logits"]
    log_p = tf.nn.log_softmax(logits).numpy()[np.arange(4), batch["label"]]
    wanted = -(batch["weight"] * log_p).sum() / batch["weight"].sum()
    runs = {
        "fit": classifying.fit(**given, batch_size=4, shuffle=False, verbose=0).history["loss"][0],
        "evaluate": classifying.evaluate(**given, batch_size=4, verbose=0),
        "train_on_batch": classifying.train_on_batch(**given, return_dict=True)["loss"],
        "test_on_batch": classifying.test_on_batch(**given),
    }
    assert runs == pytest.approx(dict.fromkeys(runs, wanted), rel=1e-5)
    for predict in (classifying.predict_on_batch, lambda x: classifying.predict(x, verbose=0)):
        np.testing.assert_allclose(predict(given["x"])["logits"], logits, atol=1e-5)


@pytest.mark.parametrize("method", ["train_on_batch", "test_on_batch"])
@pytest.mark.parametrize("given", [{}, {"sample_weight": np.ones(4)}], ids=["", "weights"])
def test_a_pretrainer_takes_no_labels(pretrainer, method, given):
    pretrainer.compile("sgd", run_eagerly=True)
    with pytest.raises(ConfigError, match="draws its own targets, got labels or sample"):
        getattr(pretrainer, method)({k: x.numpy() for k, x in WINDOWS.items()}, np.ones(4), **given)


RATE_CALLBACKS = [
    keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.5),
    keras.callbacks.ReduceLROnPlateau("loss"),
]


@pytest.mark.parametrize("callback", RATE_CALLBACKS, ids=lambda callback: type(callback).__name__)
def test_a_callback_that_sets_a_scheduled_rate(pretrainer, callback):
    data = tf.data.Dataset.from_tensors(random_windows(0, context_length=0))
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    for optimizer in (
        OPTIMIZERS["own"](),
        LossScaleOptimizer(OPTIMIZERS["own"]()),
        *(module.SGD(schedule) for module in MODULES),
    ):
        pretrainer.compile(optimizer)
        with pytest.raises(ConfigError, match="expected an optimizer with a constant learning"):
            pretrainer.fit(data, callbacks=[callback])
    pretrainer.compile("sgd", run_eagerly=True)
    history = pretrainer.fit(data, callbacks=[callback], verbose=0).history
    rates = history["learning_rate" if IS_KERAS_3 else "lr"]
    assert rates == pytest.approx([0.5 if callback is RATE_CALLBACKS[0] else 0.01])


def test_a_training_loop_of_your_own_does_what_fit_does():
    """Weights and memory after two steps of plain gradient descent."""
    windows = [random_windows(seed, context_length=MEMORY * seed) for seed in range(2)]
    fitted, own = make_model(num_layers=1), make_model(num_layers=1)
    fitted.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    optimizer = keras.optimizers.SGD(0.1)
    for batch in windows:
        fitted.train_on_batch(batch)
        task = own.make_permutation(batch)
        with tf.GradientTape() as tape:
            outputs = own({**task.inputs, **own.memory_inputs(batch)}, training=True)
            loss = keras.losses.sparse_categorical_crossentropy(
                task.labels_BP, outputs["logits"], from_logits=True
            )
            loss = tf.reduce_sum(task.mask_BP * loss) / tf.reduce_sum(task.mask_BP)
        own.update_memory(outputs, batch)
        gradients = tape.gradient(loss, own.trainable_variables)
        optimizer.apply_gradients(zip(gradients, own.trainable_variables, strict=True))
    assert_all_close(state(fitted), state(own), atol=1e-5)
    assert own.memory.states.numpy().any()
