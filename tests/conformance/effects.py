"""What a configuration gives, by functions that tell the effect of a key.

None of them reads the key itself: they call what a verb calls, on tiny shapes, without graphs. A
generator yields parts, the cheapest first: where a first part shows the effect of a key, nobody
asks for the others.
"""

import ctypes
import functools
import hashlib
import json
import os
import pathlib
import random
import tempfile
import types
from unittest import mock

import numpy as np
import tensorflow as tf

from data_prep.tasks.task_data import read_task
from official.xlnet.api.prepare import prepare
from official.xlnet.api.pretrain import pretrain
from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint
from official.xlnet.checkpoints.convert.variable_map import shapes_of, variables_of
from official.xlnet.checkpoints.xlnet_format import MEMORY, CheckpointFile
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.errors import DataError, DivergedError
from official.xlnet.inference.task_prediction import evaluate_examples, unit_lengths
from official.xlnet.jobs import prediction
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.runtime.distribution import prepare_devices
from official.xlnet.tasks.batching import TrainingBatches
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.training.finetuning import Start, run_finetuning
from official.xlnet.training.finetuning_loop import metric_of
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.corpora import as_text, random_documents, recipe, vocabulary_dir
from tests.helpers.package.of_projects import entries
from tests.helpers.task_corpora import sentence, task_file, write_table
from tests.helpers.tiny import random_windows, randomize
from tests.helpers.world import eagerly


def updates(config, folder):
    """Weights after four updates, of every kind of variable."""
    names = "word_embedding", "layer_0/inner_kernel", "layer_1/inner_kernel", "lm_head/bias"
    rng = np.random.default_rng(0)
    variables = [tf.Variable(rng.standard_normal([5, 3]), name=x, dtype=tf.float32) for x in names]
    optimizer, history = create_optimizer(config.training, 2), []
    for _ in range(4):
        gradients = [tf.constant(rng.standard_normal([5, 3]), tf.float32) for _ in names]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        history.append([variable.numpy() for variable in variables])
    return history


def draws(config, folder):
    """Inputs and labels of the objective in the second epoch."""
    return create_objective(ObjectiveSections.of(config))(random_windows(2, epoch=1))


def step(config, folder):
    """Weights; metrics of a step, how often it calls the first block, and the weights after it."""
    keras.utils.set_random_seed(0)
    model = XLNetPretrainer(config)
    yield variables_with_memory(model)
    keras.utils.set_random_seed(0)
    block = model.encoder.blocks[0]
    with mock.patch.object(block, "call", wraps=block.call) as calls:
        model.compile(keras.optimizers.SGD(0.1))  # `updates` are of our own optimizers.
        metrics = model.train_step(random_windows(2))
    yield metrics, calls.call_count, variables_with_memory(model)


def variables_with_memory(model):
    """(name, whether it is trained, value) of each variable of a model."""
    variables = [*model.variables, *getattr(model.memory, "variables", ())]  # Keras 3 lacks these.
    return [(v.name, v.trainable, v.numpy()) for v in variables]


def records(config, folder):
    """Files of records, or why there are none."""
    documents = random_documents(random.Random(1), 20)
    documents = [[f"{line} the water ☃" for line in lines] for lines in documents]
    path = pathlib.Path(folder, "text.txt")
    path.write_text(as_text(documents), encoding="utf-8")
    try:
        prepare(str(path), vocabulary(), config, f"{folder}/data", num_workers=1)
    except DataError as error:
        return str(error).rpartition(":")[2]
    return [(p.name, p.read_bytes()) for p in sorted(pathlib.Path(folder, "data").glob("*.tfr*"))]


def reading(config, folder):
    """The first batch of a data set."""
    return next(iter(pretraining_dataset(data_set(), 6, config=config)))


def run(config, folder):
    """What a run of pre-training, without graphs, writes and how it is compiled."""
    compile_model = XLNetPretrainer.compile
    with mock.patch.object(XLNetPretrainer, "compile", autospec=True) as compiled, eagerly():
        compiled.side_effect = compile_model
        try:
            pretrain(config, data_set(), f"{folder}/model")
        except DivergedError:
            return "stopped"
    history = pathlib.Path(folder, "model/history.jsonl").read_text().splitlines()
    checkpoints = [
        (path.name, {name: x for name, x in json.loads(path.read_text()).items() if "loss" in name})
        for path in sorted(pathlib.Path(folder, "model").glob("ckpt-*.json"))
    ]
    logs = [path.suffix for path in pathlib.Path(folder, "model/logs").iterdir()]
    has_memory = MEMORY in CheckpointFile(newest_checkpoint(f"{folder}/model").prefix).shapes
    return history, checkpoints, sorted(set(logs)), compiled.call_args.kwargs, has_memory


def devices(config, folder):
    """Calls of the C library."""
    with mock.patch.object(ctypes, "CDLL") as library, mock.patch.dict(os.environ):
        prepare_devices(config.training)
    return library.mock_calls


def task_of(config, folder):
    """The examples of a task, the task, and its batches."""
    examples, _ = read_task(data_of(config.task.name, folder), config.task)
    TASKS[config.task.name].complete_settings(config, examples)
    task = TASKS[config.task.name](config, Tokenizer(vocabulary()))
    lengths, training = unit_lengths(config), config.training
    units = task.training_units(examples)
    batches = TrainingBatches(units, lengths[-1], lengths, training.batch_size, training.seed)
    return examples, task, batches


def units(config, folder):
    """Examples and batches."""
    try:
        examples, _, batches = task_of(config, folder)
    except DataError as error:
        yield str(error)
        return
    yield list(map(repr, examples)), batches.steps_per_epoch
    some = batches(0)
    yield [next(some) for _ in range(2)]


def fine_tuning(config, folder):
    """Names of weights; predictions and metrics; weights after a step of fine-tuning."""
    examples, task, batches = task_of(config, folder)
    model = XLNetTaskModel(config)
    randomize(model.variables, seed=3, scale=0.2)
    model.compile(keras.optimizers.SGD(0.1))
    yield [(variable.name, variable.shape) for variable in model.variables]
    with eagerly():
        predictions = evaluate_examples(model, task, examples)
    yield predictions, metric_of(task, predictions[1])
    with eagerly():
        loss = model.train_step(next(batches(0)))
    yield loss, [variable.numpy() for variable in model.variables]


def finetuned(config, folder):
    """Result of a run of fine-tuning, without graphs."""
    examples, _ = read_task(data_of(config.task.name, folder), config.task)
    with eagerly():
        start = Start(tf.distribute.get_strategy(), vocab=vocabulary())
        return run_finetuning(config, examples, examples, f"{folder}/model", start)


def predicted(config, folder):
    """Predictions of a model, in Python."""
    with mock.patch.object(prediction, "Ensemble") as ensemble:
        ensemble.return_value.task.config = config
        ensemble.return_value.predict.return_value = [{"label": "1"}]
        return prediction.predict("model", ["text"])


def variables(config, folder):
    """Names of weights in the format of the TF1 release."""
    shapes = shapes_of(config)
    weights = types.SimpleNamespace(
        config=config, shapes=shapes, read=lambda name: np.zeros(shapes[name], np.float32)
    )
    return [name for name, _ in variables_of("tf1", weights)]


def vocabulary():
    """A file of a vocabulary."""
    return f"{vocabulary_dir()}/spiece.model"


@functools.cache
def data_set():
    """Directory of records, made once."""
    folder = tempfile.mkdtemp()
    records(XLNetConfig.from_dict(recipe()), folder)
    return f"{folder}/data"


def data_of(kind, folder):
    """A small file or folder of a kind of task."""
    rng = random.Random(kind)
    path = pathlib.Path(folder, "data")
    other = entries("DATA_OF_EFFECTS").get(kind)
    if other:
        return other(rng, path, folder)
    if kind in ("question_answering", "multiple_choice"):
        return task_file(kind, f"{path}.{'json' if kind[0] == 'q' else 'csv'}", rng, 9)
    if kind == "ranking":
        queries, documents = ([sentence(rng) for _ in range(number)] for number in (3, 4))
        rows = [
            (f"q{q}", f"d{d}", query, document, (q + d) % 4)
            for q, query in enumerate(queries)
            for d, document in enumerate(documents)
        ]
        header = ("query_id", "document_id", "query", "document", "relevance")
        return write_table(f"{path}.tsv", header, rows)
    labels = {"regression": [0.5, 2, 1.5], "multi_label": ["a", "b", "a,b"]}
    labels = labels.get(kind, ["good", "bad", "good"])
    rows = [
        (sentence(rng, 1, 40), sentence(rng), labels[n % 3], "xy"[n % 2], f"g{n // 2}")
        for n in range(9)
    ]
    return write_table(f"{path}.tsv", ("text", "other", "label", "kind", "group"), rows)


def plain(value):
    """A value of NumPy, TensorFlow or Python as JSON."""
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value.tolist() if hasattr(value, "tolist") else repr(value)
