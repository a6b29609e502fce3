"""Small models with random weights, and what Keras says of texts, for tests of serving."""

import functools
import random

import tensorflow as tf

from official.xlnet.checkpoints.model_directory import create_model_dir
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.serving.client.prediction import padded
from official.xlnet.tasks.multiple_choice import ChoiceExample
from official.xlnet.tasks.question_answering import QuestionExample
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tasks.token_classification import TaggedExample
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.package.of_projects import entries
from tests.helpers.task_corpora import sentence, task_config
from tests.helpers.tiny import randomize


def random_task(name, seed=0, **task):
    """(model, task) with random weights."""
    if name in ("classification", "multi_label", "token_classification"):
        task.setdefault("labels", ("bad", "fair", "good"))
    task = entries("RANDOM_TASKS").get(name, {}) | task
    mem_len = 29 if task.get("long_texts") == "memory" else 0
    config = task_config(name=name, mem_len=mem_len, **task)
    config.check()
    model = XLNetTaskModel(config)
    randomize(model.encoder.variables + model.head.variables, seed)
    tokenizer = Tokenizer(f"{vocabulary_dir()}/spiece.model")
    return model, TASKS[name](config, tokenizer)


def save_task(model, directory):
    """Writes a model directory."""
    create_model_dir(directory, model.config, f"{vocabulary_dir()}/spiece.model")
    tf.train.CheckpointManager(tf.train.Checkpoint(model=model), directory, 1).save()
    return directory


def mixed_texts(number, seed=0):
    """Texts of all lengths, among them none, emoji, other scripts and bad manners."""
    rng = random.Random(seed)
    texts = [sentence(rng, 1, 40) for _ in range(number)]
    texts[:9] = [
        "",
        " \t\n",
        "😀😀 the 🏳️‍🌈 time",
        "naïve Zürich ﬁnd 1,000 ``words''",
        "时间 한국어 Привет",
        " ".join(map(str, range(90))),
        "a\0b",
        "\u0301 e\u0301",
        "<sep> <cls> of",
    ]
    return texts


def examples_of(name, number, seed=0):
    """Examples without labels, for every kind of task."""
    rng = random.Random(seed)
    texts = mixed_texts(number, seed)
    if name == "multiple_choice":
        questions = ["what is _ ?", "the _ and _", "", "who", "a\\1 _ \\0"]
        return [
            ChoiceExample(
                str(n),
                (text, rng.choice(questions)),
                tuple(sentence(rng, 1, 4) * (n % 3 != k) for k in range(rng.randint(2, 4))),
            )
            for n, text in enumerate(texts)
        ]
    if name.startswith("question_answering"):
        return [QuestionExample(str(n), sentence(rng, 1, 9), text) for n, text in enumerate(texts)]
    if name == "token_classification":
        return [
            TaggedExample(str(n), tuple(text.replace("\0", "").split()))
            for n, text in enumerate(texts)
            if text.split()
        ]
    if name == "letters":
        return [TaggedExample(str(n), tuple(x), separator="") for n, x in enumerate(texts)]
    if name == "ranking":
        return [
            RankingExample(str(n), "q", sentence(rng, 1, 9), text) for n, text in enumerate(texts)
        ]
    subtask = entries("SUBTASKS").get(name, "")
    return [TextExample(str(n), (text,), subtask=subtask) for n, text in enumerate(texts)]


def inputs_of(examples):
    """Text inputs of examples, as a service with one text column takes them."""
    names = {QuestionExample: ("question", "context"), RankingExample: ("query", "document")}
    rows = [e.inputs(names.get(type(e), ("text",))) for e in examples]
    return {name: padded([row[name] for row in rows]) for name in rows[0]}


def as_example(row):
    """A serialized tf.Example of {input: text or texts}."""
    feature = {}
    for name, value in row.items():
        texts = map(tf.compat.as_bytes, [value] if isinstance(value, str | bytes) else value)
        feature[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=texts))
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


@functools.cache
def tokenizers():
    """(Python's, the graph's) of the small vocabulary; the latter takes seconds to make."""
    tokenizer = Tokenizer(f"{vocabulary_dir()}/spiece.model")
    return tokenizer, GraphTokenizer(tokenizer)
