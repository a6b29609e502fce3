"""Memory, open files and CPU time of verbs by what they read; a save by the number of replicas.

Measured at two sizes a factor of eight apart, each in a new process.
"""

import resource
import sys

import pytest

from benchmarks.data.prepare_memory import peaks
from official.xlnet.checkpoints.saving import save_pretrained
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import VERBS
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from tests.helpers.package.budgets import FACTOR, Budget, of_rows, write_rows
from tests.helpers.package.of_projects import entries
from tests.helpers.replicas.clusters import finish, recipe_of_replicas, start_cluster

OTHER_MEGABYTES, OTHER_FILES = 40, 8  # Chance: when memory is given back and files are closed.


def labelled(number):
    return {"text": f"The cat sat on the water {number % 7}.", "label": "ab"[number % 2]}


def training(world, folder, number):
    """Flags of `finetune` with a training file of some rows."""
    train = write_rows(folder / "train.jsonl", number, labelled)
    dev = write_rows(folder / "dev.jsonl", 8, labelled)
    flags = ["--task=classification", f"--init_from={world.pretrained}", f"--train={train}"]
    settings = ["max_length=23", "num_buckets=1", "num_steps=2", "warmup_steps=0"]
    flags += [f"--dev={dev}", f"--output={folder}/model"]
    return [*flags, *(f"--set={setting}" for setting in settings)]


def evaluation(world, folder, number):
    model = world.task("classification").model
    rows = write_rows(
        folder / "dev.jsonl", number, lambda n: labelled(n) | {"label": ["bad", "good"][n % 2]}
    )
    return [f"--model={model}", f"--data={rows}", f"--output={folder}/report"]


def text_of(folder, megabytes):
    path = folder / "text.txt"
    with path.open("w") as file:
        for number in range(megabytes * 40_000):
            file.write(f"the water was made {number % 97}\n")
    return path


def vocabulary(world, folder, megabytes):
    flags = ["--size=45", "--sample_bytes=100000", f"--output={folder}/vocab"]
    return [f"--input={text_of(folder, megabytes)}", *flags]


def model_of(world, folder, megabytes):
    """A model directory with weights of some megabytes."""
    config = XLNetConfig.load(world.config)
    matrices = 2 * config.model.num_layers * config.model.d_model
    config.set(f"model.d_inner={megabytes * 250_000 // matrices}")
    path = str(folder / "model")
    save_pretrained(XLNetPretrainer(config), path, f"{world.vocab}/spiece.model")
    return path


def export(world, folder, megabytes):
    return [f"--model={model_of(world, folder, megabytes)}", f"--output={folder}/exported"]


def conversion(world, folder, megabytes):
    source = model_of(world, folder, megabytes)
    return [f"--source={source}", f"--output={folder}/hf", "--to=hf"]


BUDGETS = {
    "score": of_rows(),
    "embed": of_rows(suffix=".npy"),
    "predict": of_rows(model="classification"),
    "generate": of_rows("--num_tokens=1", few=500),
    "evaluate": Budget(evaluation, few=1500),
    "finetune": Budget(training, few=1500),
    "vocab": Budget(vocabulary, few=20, bytes_of_one=4e5),
    "export": Budget(export, few=10, bytes_of_one=3.5e6),
    "convert": Budget(conversion, few=10, bytes_of_one=3.5e6),
} | entries("BUDGETS")
ELSEWHERE = {
    "prepare": "tests/unit/data_prep/test_budgets_of_text.py",
    "pretrain": "tests/unit/data/test_budgets_of_rows.py, and below",
}


def test_each_verb_has_a_budget():
    assert sorted([*BUDGETS, *ELSEWHERE]) == sorted(VERBS.names())


@pytest.mark.nightly
@pytest.mark.parametrize("verb", BUDGETS)
def test_memory_open_files_and_time(verb, world, tmp_path):
    budget, measured = BUDGETS[verb], []
    many = FACTOR * budget.few
    for size in (budget.few, many):
        folder = tmp_path / str(size)
        folder.mkdir()
        flags = budget.flags(world, folder, size)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        peak = peaks([sys.executable, "-m", "official.xlnet.cli", *verb.split(), *flags])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        measured.append((*peak, seconds))
    (megabytes, files, seconds), (more_megabytes, more_files, more_seconds) = measured
    growth = budget.bytes_of_one * (many - budget.few) / 1e6
    assert more_megabytes - megabytes <= growth + OTHER_MEGABYTES, measured
    assert more_files - files <= OTHER_FILES, measured
    assert more_seconds <= FACTOR * seconds, measured  # Start and work: at most proportional.


@pytest.mark.nightly
def test_the_size_of_a_save_does_not_grow_with_replicas(world, tmp_path, tmp_path_factory):
    """The same batch, on one device and dealt out to eight."""
    recipe = recipe_of_replicas(world, tmp_path_factory, ["num_lanes=16", "batch_size=16"])
    sizes = []
    for replicas in (1, 8):
        output = tmp_path / str(replicas)
        flags = ["pretrain", f"--config={recipe}", f"--data={recipe}/data", f"--output={output}"]
        finish(start_cluster("mirrored", [*flags, "--steps=2"], replicas=replicas))
        files = [path for path in output.iterdir() if path.name.startswith("ckpt-2.data")]
        sizes.append(sum(path.stat().st_size for path in files))
    assert sizes[0] <= sizes[1] <= 1.01 * sizes[0], sizes
