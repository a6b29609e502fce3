"""One trained world for the whole test run: text, records, a pre-trained run, models of all tasks.

Each part is made when a test first asks for it, once for all workers of xdist: they share a folder,
and a lock holds the others until the part is there. Tests read from it and change nothing in it.
"""

import contextlib
import dataclasses
import functools
import io
import json
import pathlib
import random
import shutil

import filelock
import yaml

from official.xlnet import cli
from tests.helpers.corpora import as_text, random_documents, recipe, vocabulary_dir
from tests.helpers.task_corpora import KINDS, task_file

NUM_STEPS = 60
TASK_SETTINGS = ("task.max_length=23", "task.num_buckets=1", "training.batch_size=7")


@dataclasses.dataclass(frozen=True)
class TrainedTask:
    """Files of a task and the model that was fine-tuned on them."""

    train: str
    dev: str
    model: str

    def json(self, name):
        return json.loads(pathlib.Path(self.model, name).read_text())

    def predictions(self):
        lines = pathlib.Path(self.model, "predictions.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def command(verb, *arguments, status=0, **flags):
    """Runs a verb in this process; returns its last line of standard output, parsed."""
    output = io.StringIO()
    flags = [f"--{name}={value}" for name, value in flags.items()]
    with contextlib.redirect_stdout(output):
        found = cli.main([*verb.split(), *flags, *arguments])
    assert found == status, f"{verb}: status {found}"
    return json.loads(output.getvalue().splitlines()[-1]) if status == 0 else None


class World:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def part(self, name, make):
        """The path `root/name`, which `make(path)` writes if nobody has yet."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{path}.lock"):
            if not (done := pathlib.Path(f"{path}.done")).exists():
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(path)
                make(str(path))
                done.touch()
        return str(path)

    @functools.cached_property
    def vocab(self):
        """A directory with `spiece.model`, 211 pieces."""
        return self.part("vocab", lambda path: shutil.copytree(vocabulary_dir(), path))

    @functools.cached_property
    def text(self):
        """A file of 30 documents."""
        text = as_text(random_documents(random.Random(1), 30))
        return self.part("text.txt", lambda path: pathlib.Path(path).write_text(text))

    @functools.cached_property
    def config(self):
        """The recipe, a YAML file."""
        tree = recipe(num_steps=NUM_STEPS, warmup_steps=5, checkpoint_steps=7)
        return self.part(
            "recipe.yaml", lambda path: pathlib.Path(path).write_text(yaml.safe_dump(tree))
        )

    @functools.cached_property
    def data(self):
        """Records of the text, whose lanes end before a run of `NUM_STEPS` does."""
        return self.part(
            "data",
            lambda path: command(
                "prepare", input=self.text, vocab=self.vocab, config=self.config, output=path
            ),
        )

    @functools.cached_property
    def pretrained(self):
        """The model directory of a run of `NUM_STEPS`, evaluated each 20 steps."""
        return self.part(
            "pretrained",
            lambda path: command(
                *("pretrain", "--set=evaluation_steps=20", "--set=json_log=true"),
                **{"config": self.config, "data": self.data, "model_dir": path},
            ),
        )

    def files(self, kind):
        """{split: file} of a kind of task; of multitask, NAME=FILE,NAME=FILE."""
        sizes = {"train": 150, "dev": 41} if kind == "classification" else {"train": 19, "dev": 11}
        names = {}

        def write(path):
            pathlib.Path(path).mkdir()
            for split, number in sizes.items():
                rng = random.Random(f"{kind} {split}")
                task_file(kind, f"{path}/{split}{KINDS[kind]}", rng, number)

        folder = self.part(f"files/{kind}", write)
        for split in sizes:
            names[split] = f"{folder}/{split}{KINDS[kind]}"
        if kind == "multitask":
            names = {
                split: f"tone={path}_tone.tsv,stsb={path}_stsb.tsv" for split, path in names.items()
            }
        return names

    def task(self, kind):
        """Files and a fine-tuned model of a kind of task; classification learns its data."""

        def tune(path):
            command("finetune", *self.finetune_flags(kind), output=path)

        return TrainedTask(model=self.part(f"models/{kind}", tune), **self.files(kind))

    def finetune_flags(self, kind):
        """Flags of `xlnet finetune` that made the model of a kind, all but `--output`."""
        steps = NUM_STEPS if kind == "classification" else 3
        settings = (*TASK_SETTINGS, f"num_steps={steps}", "warmup_steps=0", "learning_rate=0.01")
        settings += ("checkpoint_steps=20", "model.dropout=0", "model.dropatt=0")
        if kind == "question_answering":
            settings += ("query_length=7",)
        files = [f"--{split}={path}" for split, path in self.files(kind).items()]
        start = [f"--task={kind}", f"--init_from={self.pretrained}"]
        return [*start, *files, *(f"--set={setting}" for setting in settings)]

    def export(self, kind):
        """The base path of an exported model of a kind of task; version 1 is in it."""
        model = self.task(kind).model
        return self.part(
            f"exports/{kind}", lambda path: command("export", model=model, output=path)
        )
