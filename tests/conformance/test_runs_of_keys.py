"""Every key of training in runs: one that is killed and resumed ends as one that is not.

Nor do two steps an execution change what a run ends with. So the state that a key brings is in the
checkpoints, and is updated once a step. The rows are all keys of the section, with the second value
that `key_rows` has of each, and all names of their tables; as many as go together are in one run.
"""

import dataclasses
import json
import pathlib
import re
import sys
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from data_prep.tasks.task_data import read_task
from official.xlnet.api.pretrain import pretrain
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.finetuning_defaults import finetuning_configuration
from official.xlnet.configs.key_marks import OF_FINETUNING, OF_PRETRAINING
from official.xlnet.configs.registry import OPTIMIZERS, SCHEDULES
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.errors import ConfigError, DivergedError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.history import read_history
from official.xlnet.training.finetuning import Start, run_finetuning
from official.xlnet.training.loop import Loop
from official.xlnet.training.pretraining_loop import PretrainingLoop
from tests.conformance.effects import data_of, data_set, vocabulary
from tests.conformance.key_rows import ROWS, TASK
from tests.helpers.corpora import recipe
from tests.helpers.world import eagerly

# A step after the first checkpoint shows a lost state. Without warm-up the first step changes
# weights, so that a state that is updated once in two steps differs.
STEPS = {"num_steps": 3, "warmup_steps": 0, "checkpoint_steps": 2}
PRE_TRAINING = recipe(**STEPS)
FINE_TUNING = TASK | {
    "training": TASK["training"] | STEPS,
    "task": TASK["task"] | {"name": "classification", "text_columns": ["text"]},
}


def keys_of(mark):
    """Keys that one kind of training reads."""
    return {f"training.{key}" for key in TrainingConfig.marked_keys(mark)}


OF_FINE_TUNING, OF_PRE_TRAINING = keys_of(OF_FINETUNING), keys_of(OF_PRETRAINING)
# Where a key freezes weights or lets no update happen, other keys would show less: these rows are
# not together with others. An evaluation takes longer than steps, and more steps take longer.
SEPARATE = {
    "training.num_steps": "of more steps",
    "training.warmup_steps": "of more steps",
    "training.accumulate_steps": "of more steps",
    "training.checkpoint_steps": "of more steps",
    "training.evaluation_steps": "evaluated",
    "training.json_log": "evaluated",
    "training.freeze_embeddings": "frozen",
    "training.freeze_layers": "frozen",
    "training.freeze_network": "frozen",
    "training.on_bad_step": "without updates",
}
# What is due is due after two or four steps, as executions have two.
OTHER_VALUES = {
    # False is the one value with which a resumed run is another, see `test_run_data`.
    "training.checkpoint_memory": ["training.checkpoint_memory=true"],
    "training.num_steps": ["training.num_steps=5"],
    "training.checkpoint_steps": ["training.num_steps=5", "training.checkpoint_steps=4"],
    "training.evaluation_steps": ["training.evaluation_steps=2"],
    "training.on_bad_step": [
        "training.on_bad_step=skip",
        "training.learning_rate=1e30",
        "training.warmup_steps=1",  # So that an execution of two steps has no bad one.
    ],
    "training.json_log": ["training.json_log=true", "training.evaluation_steps=2"],
}
OTHER_NAMES = [
    *(f"training.optimizer={name}" for name in OPTIMIZERS.names()),
    *(f"training.schedule={name}" for name in SCHEDULES.names()),
    "training.precision=mixed_float16",
]


def settings_of(key):
    """Settings of `training` in the row of a key: its second value, and what else it needs."""
    _, _, *settings = ROWS[key]
    settings = [setting for setting in settings if setting.startswith("training.")]
    return OTHER_VALUES.get(key, settings)


# {name of a row: its settings}
ALL = {key: settings_of(key) for key in ROWS if key.startswith("training.")}
ALL |= {setting: [setting] for setting in OTHER_NAMES}


def are_possible(base, settings):
    """Whether settings go together: one value of each key, and every key is read."""
    if len({setting.partition("=")[0] for setting in settings}) < len({*settings}):
        return False
    try:
        XLNetConfig.from_dict(base).apply(settings)
    except ConfigError:
        return False
    return True


def groups(base, rows):
    """Yields lists of settings that go together, until each row has been in one."""
    left = dict(rows)
    while left:
        names, settings = [], []
        for name in left:
            together = [*settings, *left[name]]
            is_alike = not names or SEPARATE.get(name) == SEPARATE.get(names[0])
            if is_alike and are_possible(base, together):
                names.append(name)
                settings = list(dict.fromkeys(together))
        for name in names:
            del left[name]
        yield settings


ROWS_OF_PRE_TRAINING = {name: row for name, row in ALL.items() if name not in OF_FINE_TUNING}
# Weights with which each further step is bad cannot be evaluated; `test_bad_steps` has better ones.
NOT_OF_FINE_TUNING = {*OF_PRE_TRAINING, "training.on_bad_step"}
ROWS_OF_FINE_TUNING = {name: row for name, row in ALL.items() if name not in NOT_OF_FINE_TUNING}
GROUPS_OF_PRE_TRAINING = sorted(groups(PRE_TRAINING, ROWS_OF_PRE_TRAINING), key=len, reverse=True)
GROUPS_OF_FINE_TUNING = sorted(groups(FINE_TUNING, ROWS_OF_FINE_TUNING), key=len, reverse=True)


# Runs.


class KilledError(BaseException):
    """Ends a run at once."""


def is_killed(run, config, folder):
    """Whether a run has ended at once, in the execution after its first checkpoint."""
    on_train_batch_end = Loop.on_train_batch_end

    def end(self, batch, logs=None):
        if self._saved_step > self.start:
            self._writer.wait()
            raise KilledError
        on_train_batch_end(self, batch, logs)

    with mock.patch.object(Loop, "on_train_batch_end", end):
        try:
            run(config, folder)
        except (KilledError, DivergedError):
            return True
    return False


def pre_training(config, folder):
    pretrain(config, data_set(), f"{folder}/model", strategy=tf.distribute.get_strategy())
    return f"{folder}/model"


def fine_tuning(config, folder):
    examples, _ = read_task(data_of(config.task.name, folder), config.task)
    start = Start(tf.distribute.get_strategy(), vocab=vocabulary())
    run_finetuning(config, examples, examples, f"{folder}/model", start)
    return f"{folder}/model/run"


@dataclasses.dataclass
class Ending:
    """What a run ends with.

    Attributes:
      error: its error; empty without one.
      state: arrays of the newest checkpoint, by name.
      losses: {step: mean loss of the steps since the last line} of the history.
      files: {name: what depends on steps alone} of the files.
    """

    error: str = ""
    state: dict = dataclasses.field(default_factory=dict)
    losses: dict = dataclasses.field(default_factory=dict)
    files: dict = dataclasses.field(default_factory=dict)

    def difference(self, other):
        """In which part another run has ended otherwise; empty: in none."""
        if self.error != other.error:
            return f"errors, {self.error or 'none'!r} and {other.error or 'none'!r}"
        if self.files != other.files:
            names = sorted({*self.files, *other.files})
            return f"files {[x for x in names if self.files.get(x) != other.files.get(x)]}"
        if self.state.keys() != other.state.keys():
            return f"names in the checkpoint {sorted(self.state.keys() ^ other.state.keys())}"
        for name, value in self.state.items():
            if not np.allclose(value, other.state[name], rtol=1e-4, atol=1e-6, equal_nan=True):
                return f"values of {name} in the checkpoint"
        steps = sorted(self.losses.keys() & other.losses.keys())
        if bool(steps) != bool(self.losses) or bool(steps) != bool(other.losses):
            return f"steps in history.jsonl, {[*self.losses]} and {[*other.losses]}"
        for before, step in zip([0, *steps], steps, strict=False):
            means = [
                np.mean([loss for at, loss in losses.items() if before < at <= step])
                for losses in (self.losses, other.losses)
            ]
            if not np.isclose(*means, rtol=0.01):
                return f"losses in history.jsonl, at step {step}"
        return ""


# Files that have times, the settings of the run, or numbers of several steps.
OTHER_FILES = {"config.yaml", "checkpoint", "history.jsonl", "report.html"}
# In a checkpoint: the number of saves, and metrics, which begin at 0 in each execution.
OTHER_STATE = re.compile(r"^save_counter/|/(total|count)/\.ATTRIBUTES/VARIABLE_VALUE$")


def steady_content(path):
    """What depends on steps alone in a file: all, the names of events, or nothing."""
    if path.name in OTHER_FILES:
        return b""
    if path.name == "events.jsonl":
        # An execution has one event, with the number of its last step: the names remain.
        return sorted({json.loads(line)["event"] for line in path.read_text().splitlines()})
    return path.read_bytes()


def ending(run, config, folder):
    """The ending of a run in a folder."""
    found = Ending()
    try:
        run_folder = run(config, folder)
    except DivergedError as error:
        # It names the last step of the execution, so another one with two steps an execution.
        found.error = re.sub(r"^step \d+", "step", str(error).replace(folder, ""))
        return found
    reader = tf.train.load_checkpoint(newest_checkpoint(run_folder).prefix)
    for name, data_type in reader.get_variable_to_dtype_map().items():
        if not OTHER_STATE.search(name) and data_type != tf.string:
            found.state[name] = reader.get_tensor(name)
    found.losses = {line["step"]: line["loss"] for line in read_history(f"{folder}/model")}
    for path in pathlib.Path(folder, "model").rglob("*"):
        is_checkpoint = path.name.startswith("ckpt-")
        if path.is_file() and not is_checkpoint and path.parent.name != "logs":
            name = str(path.relative_to(folder))
            found.files[name] = steady_content(path)
    return found


def check_runs(run, base, settings, folder):
    """Raises `AssertionError` if a run ends otherwise when it is killed and resumed, or in pairs.

    A run that does both tells that neither changes anything; if it differs, each is tried.
    """
    config = XLNetConfig.from_dict(base).changed(settings)
    num_steps = 1 if config.training.steps_per_execution > 1 else 2
    other = config.changed([f"training.steps_per_execution={num_steps}"])
    expected = ending(run, config, make_folder(folder, "whole"))

    def resumed(new, name):
        place = make_folder(folder, name)
        assert is_killed(run, new.changed([]), place), "expected more steps, after a checkpoint"
        return ending(run, new, place)

    if not expected.difference(resumed(other, "both")):
        return
    sentences = []
    if difference := expected.difference(resumed(config, "resumed")):
        sentences.append(
            f"a run that is killed and resumed ends with other {difference}: is the state of "
            "each key in the checkpoint (`Loop.parts`, or variables of the optimizer)?"
        )
    if difference := expected.difference(ending(run, other, make_folder(folder, "pairs"))):
        sentences.append(
            f"with training.steps_per_execution={num_steps}, a run ends with other {difference}: "
            "is the state of each key updated once a step (in the step, not after an execution)?"
        )
    together = sentences or ["a run that is resumed with another steps_per_execution differs"]
    one_key = "`pytest -m nightly tests/conformance/test_runs_of_keys.py` tries each key alone"
    advice = f" ({one_key})" if len(settings) > 2 else ""
    raise AssertionError(f"{' '.join(settings)}: {'; '.join(together)}{advice}")


def make_folder(parent, name):
    folder = pathlib.Path(parent, name)
    folder.mkdir()
    return str(folder)


# Tests.


@pytest.mark.parametrize(
    "settings",
    [
        # The first group has the most keys.
        pytest.param(
            group, marks=pytest.mark.nightly if number else pytest.mark.slow, id=f"{number}"
        )
        for number, group in enumerate(GROUPS_OF_PRE_TRAINING)
    ],
)
def test_runs_of_pre_training_with_many_keys(settings, tmp_path):
    with eagerly():
        check_runs(pre_training, PRE_TRAINING, settings, tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            group, marks=pytest.mark.nightly if number else pytest.mark.slow, id=f"{number}"
        )
        for number, group in enumerate(GROUPS_OF_FINE_TUNING)
    ],
)
def test_runs_of_fine_tuning_with_many_keys(settings, tmp_path):
    with eagerly():
        check_runs(fine_tuning, FINE_TUNING, settings, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("row", ROWS_OF_PRE_TRAINING)
def test_runs_of_pre_training_with_one_key(row, tmp_path):
    with eagerly():
        check_runs(pre_training, PRE_TRAINING, ALL[row], tmp_path)


@pytest.mark.nightly
def test_runs_of_compiled_steps(tmp_path):
    """In a graph, Python runs once for many steps."""
    settings = ["training.optimizer=lamb", "training.accumulate_steps=2"]
    check_runs(pre_training, PRE_TRAINING, settings, tmp_path)


# What each kind of training reads.


def keys_read_by(run, base, folder):
    """Keys of `training` that code outside of the sections reads in a run."""
    found = set()
    get = TrainingConfig.__getattribute__
    keys = {*TrainingConfig.own_keys()}
    not_readers = {"base.py", "experiment.py"}  # They copy, compare, check and save all keys.

    def recorded(self, name):
        code = sys._getframe(1).f_code
        path = pathlib.Path(code.co_filename)
        is_check = code.co_name in ("check", "check_with", "unused_keys")
        is_reader = path.name not in not_readers and not is_check
        if name in keys and is_reader:
            found.add(f"training.{name}")
        return get(self, name)

    with mock.patch.object(TrainingConfig, "__getattribute__", recorded):
        run(XLNetConfig.from_dict(base), folder)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "base", "of_others"),
    [
        (pre_training, PRE_TRAINING, OF_FINE_TUNING),
        (fine_tuning, FINE_TUNING, OF_PRE_TRAINING),
    ],
)
def test_what_a_kind_of_training_does_not_read_is_marked(run, base, of_others, tmp_path):
    """Then it is refused (`unused_keys`), rather than without effect."""
    choices = {"schedule": "constant_with_cooldown", "optimizer": "muon"}
    base = base | {"training": base["training"] | choices | {"num_steps": 1}}
    with eagerly():
        found = keys_read_by(run, base, str(tmp_path))
    keys = {f"training.{key}" for key in TrainingConfig.own_keys()}
    # By another schedule, by `prepare_devices`, and after a bad step; alike in both.
    keys -= {"training.decay_power", "training.release_memory", "training.on_bad_step"}
    assert keys - found == of_others


@pytest.mark.parametrize("key", sorted(OF_PRE_TRAINING))
def test_fine_tuning_refuses_a_key_of_pre_training(key, tmp_path, caplog):
    (override,) = [row for row in settings_of(key) if row.startswith(key)]
    sentence = f"^{key}: expected .*, as only pre-training reads it, got "
    with pytest.raises(ConfigError, match=sentence):
        finetuning_configuration(None, None, [override.partition(".")[2]], None, load_config)
    # A recipe may be of both.
    recipe_file = tmp_path / "recipe.yaml"
    name, value = key.partition(".")[2], override.partition("=")[2]
    recipe_file.write_text(f"training: {{{name}: {value}, clip_norm: 2}}")
    config = finetuning_configuration(None, str(recipe_file), [], None, load_config)
    assert config.training.clip_norm == 2
    assert f"recipe.yaml: {key} has no effect, as only pre-training reads it" in caplog.text


@pytest.mark.parametrize("key", sorted(OF_FINE_TUNING))
def test_pre_training_refuses_a_key_of_fine_tuning(key, tmp_path):
    config = XLNetConfig.from_dict(PRE_TRAINING).changed(settings_of(key))
    with pytest.raises(ConfigError, match=f"^{key}: expected 0, as only fine-tuning reads it, got"):
        pretrain(config, str(tmp_path / "data"), str(tmp_path / "model"))


# Planted faults: averages of weights, as somebody might add them.


def plant(monkeypatch, *, is_saved, is_each_step):
    """Adds averages of the weights, which the run writes at its end, to pre-training."""
    create_model, accept = PretrainingLoop.create_model, PretrainingLoop.accept
    on_train_end, update = PretrainingLoop.on_train_end, XLNetPretrainer.update
    averages = {}

    def average(model):
        for variable, mean in zip(model.trainable_variables, averages[model.name], strict=True):
            mean.assign(0.5 * mean + 0.5 * variable)

    def create(self, init_from):
        model = create_model(self, init_from)
        means = [tf.Variable(variable.numpy()) for variable in model.trainable_variables]
        averages[model.name] = means
        if is_saved:
            self.parts["averages"] = tf.train.Checkpoint(means=means)
        return model

    def updated(self, gradients):
        found = update(self, gradients)
        if is_each_step:
            average(self)
        return found

    def accepted(self, before, metrics):
        accept(self, before, metrics)
        if not is_each_step:
            average(self.state.model)

    def ended(self, logs=None):
        on_train_end(self, logs)
        sums = [float(tf.reduce_sum(mean)) for mean in averages[self.state.model.name]]
        rounded = [round(value, 3) for value in sums]
        pathlib.Path(self.output, "averages.json").write_text(json.dumps(rounded))

    monkeypatch.setattr(PretrainingLoop, "create_model", create)
    monkeypatch.setattr(PretrainingLoop, "accept", accepted)
    monkeypatch.setattr(PretrainingLoop, "on_train_end", ended)
    monkeypatch.setattr(XLNetPretrainer, "update", updated)


RESUMED = r"killed and resumed ends with other files \['model/averages\.json'\]: is the state"
PAIRS = r"steps_per_execution=2, a run ends with other files \['model/averages\.json'\]: is the"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_saved", "is_each_step", "sentence", "other_sentence"),
    [
        pytest.param(True, True, None, None, id="right", marks=pytest.mark.nightly),
        pytest.param(False, True, RESUMED, PAIRS, id="not saved"),
        pytest.param(True, False, PAIRS, RESUMED, id="not each step", marks=pytest.mark.nightly),
    ],
)
def test_a_state_outside_of_the_checkpoint_or_of_the_step_is_found(
    is_saved, is_each_step, sentence, other_sentence, monkeypatch, tmp_path
):
    plant(monkeypatch, is_saved=is_saved, is_each_step=is_each_step)
    settings = ["training.learning_rate=0.1"]
    with eagerly():
        if sentence is None:
            check_runs(pre_training, PRE_TRAINING, settings, tmp_path)
            return
        with pytest.raises(AssertionError, match=sentence) as found:
            check_runs(pre_training, PRE_TRAINING, settings, tmp_path)
    assert not re.search(other_sentence, str(found.value))
