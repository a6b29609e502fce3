"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

from official.xlnet.configs.registry import ANSWER_MODULES
from official.xlnet.data.examples import TextExample
from tests.helpers.oracles.metrics import METRICS, loss_of_pairs, of_some

# That of MT-DNN, where the project that has it is not deleted.
ANSWER_MODULE = "san" if ANSWER_MODULES.is_listed("san") else "summary"


def _labelled_example(label):
    return TextExample("1", ("a",), label, "tone")


def _data_of_effects(rng, path, folder):
    # These have rows from here.
    from tests.conformance.effects import data_of
    from tests.helpers.task_corpora import sentence, write_table

    marks = [(n // 3, sentence(rng), sentence(rng), n % 3, n % 3) for n in range(9)]
    header = ("query_id", "query", "document", "label", "relevance")
    table = write_table(f"{path}_marks.tsv", header, marks)
    return f"marks={table},tone={data_of('tone', folder)}"


SUBTASKS = {"multitask": "tone"}
LABELLED_EXAMPLES = {"multitask": _labelled_example}
SETTINGS_OF_LABELS = {"multitask": {"subtasks": ["tone"]}}
PREFIXES_OF_LABELS = {"multitask": "tone/"}
READ_LONG_TEXTS = ["multitask"]
WITH_GAIN = ["multitask"]
WITHOUT_A_HEAD_IN_OTHER_FORMATS = [
    ("multitask", {"subtasks": ("a",)}, "no head for multitask", "no head for multitask")
]
# {task: {data set: kind of its file}}
FILES_OF_SEVERAL = {"multitask": {"tone": "classification", "stsb": "pairs with scores"}}
RANDOM_TASKS = {
    "multitask": {"subtasks": ("tone", "length"), "labels": ("tone/bad", "tone/good")},
}
TASKS_OF_BOTH_KERASES = {
    "multitask": {
        "subtasks": ("nli", "tone", "like"),
        "labels": ("nli/no", "nli/so", "tone/bad", "tone/good"),
        "text_columns": ("nli/a", "nli/b", "tone/a", "like/a", "like/b"),
        "answer_module": ANSWER_MODULE,
    },
}
DATA_OF_EFFECTS = {"multitask": _data_of_effects}
EFFECTS = [
    ("units", "task.subtasks=[tone,marks] task.name=multitask"),
    ("units", "task.regressions=[marks] task.name=multitask"),
    ("units", "task.rankings=[marks] task.name=multitask"),
]
KEYS_OF_TASKS = {"subtasks": ({"multitask"}, (), ("a", "b"))}
TASKS_WITH_KEYS = {
    "multitask": {"answer_steps", "label_smoothing", "num_candidates", "query_length"},
}


def _oracles():
    """Of the two data sets of `MultiTask.typical`."""
    oracles = {"loss": loss_of_pairs}  # Where all data sets are ranked.
    for subtask, task in (("tone", "classification"), ("stsb", "regression")):
        for metric, oracle in METRICS[task].items():
            oracles[f"{subtask}/{metric}"] = of_some("subtask", subtask, oracle)

    def mean(examples, predictions):
        accuracy = oracles["tone/accuracy"](examples, predictions)
        return (accuracy + oracles["stsb/pearson"](examples, predictions)) / 2

    return {"mean": mean, **oracles}


ORACLES = {"multitask": _oracles()}
