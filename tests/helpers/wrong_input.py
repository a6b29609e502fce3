"""What every verb promises of wrong input: a documented status, few words, nothing else changed."""

import atexit
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import tempfile

import tensorflow as tf
import yaml

from data_prep.pipelines.prepare import prepare
from official.xlnet import cli
from official.xlnet.checkpoints.model_directory import create_model_dir
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from tests.helpers.corpora import as_text, random_documents, recipe, vocabulary_dir
from tests.helpers.served_models import random_task, save_task
from tests.helpers.task_corpora import labelled, task_config, write_table

STATUSES = {0, 2, 70, 75}
MOST_LINES = 3  # On standard error, of a run that fails.

PRETRAINING = recipe(num_steps=4, warmup_steps=1, checkpoint_steps=2)


@dataclasses.dataclass
class Outcome:
    """How a run of the command line ended."""

    status: int
    out: str
    err: str

    @property
    def result(self):
        """The JSON object of the last line."""
        return strict_json(self.out.splitlines()[-1])


def run(capfd, *arguments) -> Outcome:
    """Runs a verb in this process; what it prints is captured, TensorFlow's words too."""
    capfd.readouterr()
    status = cli.main([str(argument) for argument in arguments])
    return Outcome(status, *capfd.readouterr())


_SAID_BEFORE = re.compile(r": texts are read from |^training on [\d,]+ characters: ")


def refused(outcome: Outcome) -> str:
    """The sentence of a run that ended with status 2.

    All of standard error is that sentence, after what was said of a file that could be read, and
    the progress of a vocabulary.
    """
    assert outcome.status == 2, outcome
    assert "Traceback" not in outcome.err
    (sentence,) = (x for x in outcome.err.splitlines() if not _SAID_BEFORE.search(x))
    assert len(sentence) < 1200
    return sentence


def strict_json(text):
    """The tree of a text that holds no NaN."""

    def no_number(word):
        raise AssertionError(f"{word} in {text}")

    return json.loads(text, parse_constant=no_number)


def digest(folder) -> str:
    """Checksum of the names and contents of all files in a folder."""
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(folder)}\0".encode("utf-8", "surrogateescape"))
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def make_world(root):
    """Small good inputs of every kind, in a folder.

    Returns the folder, with `config.yaml`, `recipe.yaml`, `text.txt`, `text.jsonl`, `vocab/`,
    `data/` (records), `train.tsv`, `dev.tsv`, `texts.txt`, and the models `language/` and `task/`.
    """
    return shutil.copytree(_world(), root, dirs_exist_ok=True)


@functools.cache
def _world():
    """The folder that `make_world` copies, made once a process."""
    root = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    rng = random.Random(1)
    documents = random_documents(rng, 30)
    (root / "text.txt").write_text(as_text(documents), encoding="utf-8")
    lines = [json.dumps({"text": "\n".join(document)}) for document in documents]
    (root / "text.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (root / "texts.txt").write_text("the water was made first\nbut not now\n")
    (root / "vocab").mkdir()
    vocab = os.path.join(vocabulary_dir(), "spiece.model")
    shutil.copy(vocab, root / "vocab/spiece.model")
    (root / "config.yaml").write_text(yaml.safe_dump(PRETRAINING))
    config = XLNetConfig.load(str(root / "config.yaml"))
    prepare([str(root / "text.txt")], vocab, config, str(root / "data"), num_workers=1)
    write_table(root / "train.tsv", ("label", "text"), labelled(rng, 30))
    write_table(root / "dev.tsv", ("label", "text"), labelled(rng, 12))
    recipe = task_config(num_steps=3, checkpoint_steps=2).as_dict()
    recipe["task"] = {"max_length": 23, "num_buckets": 1}
    (root / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    model, _ = random_task("classification")
    save_task(model, str(root / "task"))
    language = XLNetPretrainer(config)
    create_model_dir(str(root / "language"), config, vocab)
    tf.train.Checkpoint(model=language).save(str(root / "language/ckpt"))
    return root
