"""A job imports what it uses: statements of our modules that it has imported when it ends.

The limits are of local files, one device and Keras 3. A job that exceeds its limit imports
something that it does not need, at the top of a module that it does need: see the largest modules.
"""

import pydoc_data.topics

import pytest

from tests.helpers.package.statements import imported_by, statements

# {job: most statements}. 75 of each are for starting in half the time (`runtime.start`).
LIMITS = {
    "vocab": 2010,
    "prepare": 4358,
    "pretrain": 6724,
    "finetune": 8538,
    "export": 6068,
    "score": 6051,
    "embed": 5898,
}
# For those who call `fit` of Keras.
OF_FIT = ("checked_data", "checked_labels", "label_rule", "user_arrays")
# For bad steps, generation, and files of Keras.
OF_FEW_RUNS = ("bad_steps", "key_value_cache", "keras_files")
# Parts of names of modules that a job has no use for.
UNUSED = {
    "vocab": ("modeling.layers", "training.", "checkpoints.", "configs.experiment", ".tokenizer"),
    "prepare": ("modeling.layers", "modeling.networks", "modeling.models", "xlnet.tasks."),
    "pretrain": (
        "xlnet.tasks.",
        "inference.",
        "serving.",
        "checkpoints.convert",
        "checkpoints.restoring",
        "stored_matrix",
        "xlnet_task_model",
        *OF_FIT,
        *OF_FEW_RUNS,
    ),
    "finetune": ("serving.", "checkpoints.convert", "xlnet_pretrainer", *OF_FIT, *OF_FEW_RUNS),
    "export": ("training.", "trainable_model", "checkpoints.convert"),
    "score": ("training.", "trainable_model", "checkpoints.convert", "serving.", "xlnet.tasks."),
    "embed": ("training.", "trainable_model", "checkpoints.convert", "serving."),
}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def modules_of_jobs(tmp_path_factory):
    """{job: {module: number of statements}}, of jobs that work on each other's results."""
    folder = tmp_path_factory.mktemp("jobs")
    text = "\n\n".join(pydoc_data.topics.topics.values())[:250_000]
    (folder / "text.txt").write_text(text, encoding="utf-8")
    (folder / "lines.txt").write_text("The cat sat.\nSo did the dog.\n", encoding="utf-8")
    rows = [f"{('bad', 'good')[i % 2]}\tIt is {('bad', 'good')[i % 2]} {i}." for i in range(64)]
    (folder / "rows.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    vocab, data, model, task = (folder / name for name in ("vocab", "data", "model", "task"))
    recipe, rows = "configs/tiny.yaml", folder / "rows.tsv"
    found = {}
    found["vocab"] = imported_by("vocab", input=folder / "text.txt", output=vocab, size=500)
    found["prepare"] = imported_by(
        "prepare", input=folder / "text.txt", vocab=vocab, config=recipe, output=data
    )
    found["pretrain"] = imported_by("pretrain", config=recipe, data=data, output=model, steps=4)
    settings = {"init_from": model, "output": task, "set": "task.epochs=1"}
    found["finetune"] = imported_by(
        "finetune", task="classification", train=rows, dev=rows, **settings
    )
    found["export"] = imported_by("export", model=task, output=folder / "served")
    found["score"] = imported_by("score", model=model, text="The cat sat.")
    found["embed"] = imported_by(
        "embed", model=model, input=folder / "lines.txt", output=folder / "vectors.npy"
    )
    return found


@pytest.mark.parametrize("job", LIMITS)
def test_a_job_imports_what_it_uses(job, modules_of_jobs):
    modules = modules_of_jobs[job]
    unused = [name for name in modules if any(part in name for part in UNUSED[job])]
    assert not unused, f"{job} imports {', '.join(unused)}"
    total = sum(modules.values())
    largest = sorted(modules, key=modules.get, reverse=True)[:20]
    lines = ", ".join(f"{name} {modules[name]}" for name in largest)
    assert total <= LIMITS[job], f"{job}: {total} statements in {len(modules)} files: {lines}"


def test_docstrings_and_imports_are_not_counted():
    text = '"""A module."""\nimport os\n\n\ndef f():\n    """Returns 1."""\n    return 1\n'
    assert statements(text) == 2
    assert statements("if x:\n    y = 1\nelse:\n    y = 2\n") == 3
