"""One trained world for all tests: text, records, a pre-trained run, models of all tasks.

Each part is made when a test first asks for it, once for all workers of xdist: they share a folder,
and a lock holds the others until the part is there. The folder stays for later runs with the same
sources and packages. Tests read from it; a changed file is an error.
"""

import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import io
import json
import os
import pathlib
import platform
import random
import shutil
import sys
import sysconfig

import filelock
import yaml

from official.xlnet import cli
from official.xlnet.commands.declarations import declaration
from official.xlnet.configs.registry import VERBS
from tests.cpu_meter import METER
from tests.helpers.corpora import as_text, random_documents, recipe, vocabulary_dir
from tests.helpers.package.of_projects import entries
from tests.helpers.task_corpora import KINDS, several_files, task_file

ROOT = pathlib.Path(__file__).parents[2]
NUM_KEPT = 2
MIXED = "mixed"  # A file in a world that was made while its sources were edited.
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


def with_last_values(words):
    """A command in which a later flag replaces an earlier one, where it holds one value."""
    verb = " ".join(words[:2]) if words[0] == "inspect" else words[0]
    if not VERBS.is_known(verb):
        return words
    single = {f"--{flag.name}" for flag in declaration(verb).flags if flag.container is None}
    kept = {}
    for place, word in enumerate(words):
        name, equals, _ = word.partition("=")
        kept[name if equals and name in single else place] = word
    return list(kept.values())


def command(verb, *arguments, status=0, **flags):
    """Runs a verb in this process; returns its last line of standard output, parsed."""
    output = io.StringIO()
    flags = [f"--{name}={value}" for name, value in flags.items()]
    with contextlib.redirect_stdout(output):
        found = cli.main(with_last_values([*verb.split(), *flags, *arguments]))
    assert found == status, f"{verb}: status {found}"
    return json.loads(output.getvalue().splitlines()[-1]) if status == 0 else None


@contextlib.contextmanager
def eagerly(is_eager=True):
    """Functions of TensorFlow run operation by operation: short runs compile nothing."""
    import tensorflow as tf  # Not needed by all tests.

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(is_eager)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


@contextlib.contextmanager
def compiled_kernels(are_compiled):
    """Whether element-wise work in graphs is compiled with XLA, as it is in the product.

    Each shape is a kernel, which takes a second and 10 MB until the process ends.
    """
    xla_kernels = sys.modules.get("official.xlnet.modeling.kernels.xla_kernels")
    if xla_kernels is None:  # A test that does not import TensorFlow, or is the first.
        yield
        return
    before = xla_kernels.are_compiled
    xla_kernels.are_compiled = are_compiled
    try:
        yield
    finally:
        xla_kernels.are_compiled = before


def _sources():
    """A digest of all that makes a world: sources, packages, Python, machine and place."""
    packages = sorted(pathlib.Path(sysconfig.get_path("purelib")).glob("*.dist-info"))
    digest = hashlib.sha256(repr([ROOT, platform.node(), packages]).encode())
    for folder in ("official", "data_prep", "configs", "tests/helpers"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".yaml"):
                digest.update(f"{path} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


_LOADED = _sources()


def _listing(path):
    """Names, sizes and times of the files of a part."""
    files = [path, *path.rglob("*")]
    return "\n".join(
        f"{file.relative_to(path.parent)} {file.stat().st_size} {file.stat().st_mtime_ns}"
        for file in sorted(files)
        if file.is_file()
    )


def kept_world(folder=ROOT / "build/worlds"):
    """The world of the loaded sources. It and the one before it stay, and all in use."""
    root = folder / _LOADED
    folder.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder / "lock"):
        while (root / MIXED).exists():
            root = root.with_name(f"{root.name}-")
        world = World(root, _LOADED)
        os.utime(root)
        others = (path for path in folder.iterdir() if path.is_dir())
        for old in sorted(others, key=lambda path: -path.stat().st_mtime_ns)[NUM_KEPT:]:
            with open(old / "used", "a") as file, contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old)
    return world


class World:
    """Parts in `root`, the world of `sources` if it is kept."""

    def __init__(self, root, sources=""):
        self.root, self.sources = pathlib.Path(root), sources
        self.root.mkdir(parents=True, exist_ok=True)
        self._parts = []
        self.used = open(self.root / "used", "a")  # noqa: SIM115 - Locked until the process ends.
        fcntl.flock(self.used, fcntl.LOCK_SH)

    def _part(self, name, make):
        """The path `root/name`, which `make(path)` writes if nobody has yet."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{path}.lock"):
            if not (done := pathlib.Path(f"{path}.done")).exists():
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    shutil.rmtree(path)
                with METER.charge_to(f"world {name}"), eagerly(False), compiled_kernels(True):
                    make(str(path))
                if self.sources not in ("", _sources()):
                    (self.root / MIXED).touch()
                (made := pathlib.Path(f"{path}.made")).write_text(_listing(path))
                made.rename(done)
            self._check(path)
        self._parts.append(path)
        return str(path)

    def _check(self, path):
        recorded = pathlib.Path(f"{path}.done").read_text()
        if (current := _listing(path)) != recorded:
            for done in self.root.rglob("*.done"):
                done.unlink(missing_ok=True)
            changed = sorted({*recorded.splitlines()} ^ {*current.splitlines()})
            raise AssertionError(f"{path} has been changed, and is made anew next time: {changed}")

    def check(self):
        """Raises an error where a part that this process used has been changed."""
        for path in self._parts:
            self._check(path)

    @functools.cached_property
    def vocab(self):
        """A directory with `spiece.model`, 211 pieces."""
        return self._part("vocab", lambda path: shutil.copytree(vocabulary_dir(), path))

    @functools.cached_property
    def text(self):
        """A file of 30 documents."""
        text = as_text(random_documents(random.Random(1), 30))
        return self._part("text.txt", lambda path: pathlib.Path(path).write_text(text))

    @functools.cached_property
    def config(self):
        """The recipe, a YAML file."""
        tree = recipe(num_steps=NUM_STEPS, warmup_steps=5, checkpoint_steps=7)
        return self._part(
            "recipe.yaml", lambda path: pathlib.Path(path).write_text(yaml.safe_dump(tree))
        )

    @functools.cached_property
    def data(self):
        """Records of the text, whose lanes end before a run of `NUM_STEPS` does."""
        return self._part(
            "data",
            lambda path: command(
                *("prepare", "--num_workers=1"),
                **{"input": self.text, "vocab": self.vocab, "config": self.config, "output": path},
            ),
        )

    @functools.cached_property
    def pretrained(self):
        """The model directory of a run of `NUM_STEPS`, evaluated each 20 steps."""
        return self._part(
            "pretrained",
            lambda path: command(
                *("pretrain", "--set=evaluation_steps=20", "--set=json_log=true"),
                **{"config": self.config, "data": self.data, "output": path},
            ),
        )

    def files(self, kind):
        """{split: file} of a kind of task; NAME=FILE,NAME=FILE of several data sets."""
        sizes = {"train": 150, "dev": 41} if kind == "classification" else {"train": 19, "dev": 11}
        names = {}

        def write(path):
            pathlib.Path(path).mkdir()
            for split, number in sizes.items():
                rng = random.Random(f"{kind} {split}")
                task_file(kind, f"{path}/{split}{KINDS[kind]}", rng, number)

        folder = self._part(f"files/{kind}", write)
        for split in sizes:
            names[split] = f"{folder}/{split}{KINDS[kind]}"
        if entries("FILES_OF_SEVERAL").get(kind):
            names = {split: several_files(kind, path) for split, path in names.items()}
        return names

    def task(self, kind):
        """Files and a fine-tuned model of a kind of task; classification learns its data."""

        def tune(path):
            with eagerly(kind != "classification"):  # Three steps.
                command("finetune", *self.finetune_flags(kind), output=path)

        return TrainedTask(model=self._part(f"models/{kind}", tune), **self.files(kind))

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
        """The base path of an exported model, of a kind of task, the encoder or the lm.

        Each Keras has its own, while all else is read with both.
        """
        flags = {"head": kind, "model": self.pretrained}
        if kind in KINDS:
            flags = {"model": self.task(kind).model}
        from official.xlnet.modeling.ops.keras import IS_KERAS_3

        name = f"exports_of_keras_{3 if IS_KERAS_3 else 2}/{kind}"
        return self._part(name, lambda path: command("export", output=path, **flags))
