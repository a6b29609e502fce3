"""What the conformance tests are there for: each fault, made in a copy of the sources, is red."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.helpers.documents import ROOT

pytestmark = pytest.mark.slow

FOLDERS = ("official", "data_prep", "configs", "docs", "tests", "tools", "benchmarks")
CHOICE, GENERATE = "official/xlnet/tasks/multiple_choice", "official/xlnet/api/generate.py"
TRAINING = "official/xlnet/configs/training.py"
# {fault: (file, old text, new text, the narrow test, what it says)}
FAULTS = {
    "a task with inverted predictions": (
        f"{CHOICE}/task.py",
        '"choice": int(np.argmax(',
        '"choice": int(np.argmin(',
        ("tests/conformance/test_tasks.py", "complete and multiple_choice and True"),
        "expected a better accuracy of what is learned",
    ),
    "a task without a loss": (
        f"{CHOICE}/graph.py",
        "return tf.nn.sparse_softmax_cross_entropy_with_logits(",
        "return 0.0 * tf.nn.sparse_softmax_cross_entropy_with_logits(",
        ("tests/conformance/test_tasks.py", "complete and multiple_choice and True"),
        "expected a loss that falls",
    ),
    "a head with a weight that is not trained": (
        "official/xlnet/modeling/heads/summary_head.py",
        "return getattr(self, self.logits_name)(summary)",
        "return summary[..., :1] + 0.0 * getattr(self, self.logits_name)(summary)",
        ("tests/conformance/test_tasks.py", "complete and multiple_choice and True"),
        "there is no gradient",
    ),
    "a task that the documentation lacks": (
        "docs/tasks.md",
        "| `multiple_choice` |",
        "| `several_choices` |",
        ("tests/conformance/test_tasks.py", "complete and multiple_choice and True"),
        "no row in docs/tasks.md",
    ),
    "a metric that is not what its name says": (
        f"{CHOICE}/task.py",
        'results = {"accuracy": float(np.mean(is_correct))}',
        'results = {"accuracy": float(np.mean(is_correct)) ** 0.5}',
        ("tests/conformance/test_tasks.py", "complete and multiple_choice and True"),
        "accuracy of random labels: expected",
    ),
    "a metric without an oracle": (
        f"{CHOICE}/task.py",
        'metrics = ("accuracy", "accuracy_*")',
        'metrics = ("accuracy", "accuracy_*", "kendall")',
        ("tests/conformance/test_tasks.py", "complete and multiple_choice and True"),
        "write check_task('multiple_choice', oracles={'kendall': FUNCTION})",
    ),
    "a key that nothing reads": (
        TRAINING,
        "    optimizer: Annotated",
        "    polyak: float = 0.0\n    optimizer: Annotated",
        ("tests/conformance/test_keys.py", "is_read and polyak"),
        "training.polyak: nothing outside of `configs` reads it, as `config.training.polyak`",
    ),
    "a key without a range": (
        TRAINING,
        "    optimizer: Annotated",
        "    polyak: float = 0.0\n    optimizer: Annotated",
        ("tests/conformance/test_keys.py", "range and polyak"),
        f"write in {TRAINING}: polyak: Annotated[float, Range(low, high)] = 0.0",
    ),
    "a format that the documentation lacks": (
        "docs/data_preparation.md",
        "| `warc` |",
        "| `archives` |",
        ("tests/conformance/test_formats.py", "table_of_the_documentation"),
        "warc: write a row in docs/data_preparation.md, the table of formats: | `warc` | begin",
    ),
    "a flag without a test": (
        GENERATE,
        "    seed: Annotated",
        "    mumbling: Annotated[int, Range(0, 11)] = 3,\n    seed: Annotated",
        ("tests/conformance/test_verbs.py", "in_a_test and generate"),
        "--mumbling is in no test",
    ),
    "a verb that its page describes otherwise": (
        GENERATE,
        "continues prompts or fills in blanks.",
        "continues prompts.",
        ("tests/conformance/test_verbs.py", "reference"),
        "run python -m tools.api_page",
    ),
    "a flag without a line in the changelog": (
        GENERATE,
        "    seed: Annotated",
        "    shouting: Annotated[int, Range(0, 11)] = 3,\n    seed: Annotated",
        ("tests/unit/test_changelog.py", "since"),
        "CHANGELOG.md, Unreleased, Added: expected an item with `shouting` of `generate` (flag)",
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy")
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "images", pathlib.Path(__file__).name)
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in filter(os.path.isfile, ROOT.iterdir()):
        shutil.copy(path, folder)
    return folder


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=[pytest.mark.nightly] * (number % 3 > 0))
        for number, fault in enumerate(FAULTS)
    ],
)
def test_a_fault_is_noticed(fault, copy):
    path, old, new, (test, selected), sentence = FAULTS[fault]
    source = (copy / path).read_text()
    assert source.count(old) == 1
    (copy / path).write_text(source.replace(old, new))
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    every = ("-p", "no:cacheprovider", "-m", "slow or not slow")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *every, test, "-k", selected],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
    )
    (copy / path).write_text(source)
    assert done.returncode == 1 and sentence in done.stdout, done.stdout[-3000:] + done.stderr
