"""The recipes of the package and of projects load, say how they are run, and hold their figures."""

import copy
import dataclasses
import pathlib
import pickle

import numpy as np
import pytest

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.pretraining_dataset import _check_batch_size
from official.xlnet.data.schema import SplitManifest
from official.xlnet.errors import ConfigError
from official.xlnet.tasks.ranking import RankingConfig
from tests.helpers.package.of_projects import entries, rows
from tests.helpers.package.recipes import recipes

DIRECTORY = pathlib.Path(__file__).parents[3] / "configs"
TABLE_6 = recipes("ablation/base/*.yaml")
RECIPES = recipes() | TABLE_6
OF_PRETRAINING = [path for path in RECIPES.values() if "xlnet prepare" in path.read_text()]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_loads_and_has_its_commands_and_a_lane_for_every_row(name):
    path = RECIPES[name]
    config = XLNetConfig.load(f"configs/{name}.yaml")
    text = path.read_text()
    head = text.split("\nmodel:")[0]
    in_table = "--config=configs/NAME.yaml" in head  # Of the data sets that share a recipe.
    own = f"--config=configs/{name}.yaml"
    assert (f"\n#   {path.stem} " if in_table else own) in head
    if config.model.vocab_size and "xlnet vocab" in head:
        assert f"--size={config.model.vocab_size}" in head
    if "xlnet prepare" in text:
        data, rows = config.data, config.training.batch_size
        lanes = SplitManifest(1, 0, 0, 0, data.num_lanes, 1, {})
        _check_batch_size(lanes, data.bidirectional, str(path), rows, epochs=None)
        assert data.num_lanes % (1 + data.bidirectional) == 0


# Hyperparameters of the paper: table 7, and BERT-base's for table 6.
LARGE = [
    *("num_layers=24", "d_model=1024", "num_heads=16", "d_inner=4096"),
    *("vocab_size=32000", "mem_len=384", "model.dropout=0.1", "activation_dropout=0.0"),
    *("dropatt=0.1", "seq_len=512", "reuse_len=256", "num_predict=85", "target_ratio=6"),
    *("bidirectional=true", "training.batch_size=8192", "learning_rate=4.0e-4"),
    *("num_steps=500000", "warmup_steps=40000", "adam_epsilon=1.0e-6", "weight_decay=0.01"),
    "decay_power=1.0",
]
ABLATION = [
    *("num_layers=12", "d_model=768", "num_heads=12", "d_inner=3072", "vocab_size=32000"),
    *("seq_len=512", "training.batch_size=256", "num_steps=1000000", "learning_rate=1.0e-4"),
    "warmup_steps=10000",
]


def test_recipes_have_the_hyperparameters_of_the_paper():
    toy = {path.stem for path in recipes("ablation/*.yaml").values()}
    assert {path.stem for path in TABLE_6.values()} == toy - {
        "absorbing_diffusion",
        "bert_equal_compute",
        "dae_equal_compute",
        "dae_single_tokens",
        "dae_single_tokens_equal_compute",
        "roberta",
        "xlnet_k1",
        "xlnet_k2",
    }
    for path in [DIRECTORY / "large.yaml", *TABLE_6.values()]:
        config = XLNetConfig.load(str(path)).as_dict()
        paper = LARGE if path.stem == "large" else ABLATION
        assert XLNetConfig.load(str(path), paper).as_dict() == config
    row = XLNetConfig.load(str(DIRECTORY / "ablation/base/xlnet_k6.yaml"))
    assert row.data.target_ratio == 6 and row.data.max_span == 5


def test_a_dropout_of_its_own_behind_the_activation_may_be_left_open(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("model:\n  dropout: 0.2\n")  # As saved before there was the key.
    assert XLNetConfig.load(str(path)).model.activation_dropout is None
    for setting, value in (("0.3", 0.3), ("null", None)):
        XLNetConfig.load(str(path), [f"activation_dropout={setting}"]).save(str(tmp_path))
        assert XLNetConfig.load(str(path)).model.activation_dropout == value


HUGE = "0x" + 5000 * "f"
OF_EACH_TYPE = ("num_steps", "learning_rate", "task.labels", "optimizer", "jit_compile")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("activation_dropout=some", "activation_dropout: expected a number or None"),
        ("activation_dropout=1.0", r"activation_dropout: expected in \[0, 1\)"),
        ("task.labels=[NO, YES]", r"expected a list of strings, .* in quotes"),
        # Python writes no integers of so many digits.
        *((f"{key}={HUGE}", "got an integer of thousands of digits") for key in OF_EACH_TYPE),
        (f"task.labels=[{HUGE}]", "expected a list of strings, got an integer of thousands"),
    ],
    ids=range(9),
)
def test_values_of_another_type_are_refused(setting, sentence):
    with pytest.raises(ConfigError, match=sentence):
        XLNetConfig().apply([setting])
    config = XLNetConfig()
    config.set("task.labels=['NO', 'YES', 2]")
    assert config.task.labels == ("NO", "YES", "2")


TEXTS = {"classification", "multi_label", "regression"}
# {key of some tasks: (these, its default, another value)}
ANSWERS = {"question_answering", "question_answering_simple"}
KEYS_OF_TASKS = {
    "class_weights": (TEXTS, "none", "balanced"),
    "label_smoothing": (TEXTS, 0.0, 0.1),
    "null_threshold": (ANSWERS, 0.0, -2.5),
    "num_choices": ({"multiple_choice"}, 4, 7),
    "num_candidates": ({"ranking"}, 2, 3),
    "query_length": ({*ANSWERS, "ranking"}, 64, 11),
    "scoring": ({"ranking"}, "kernel", "summary"),
} | entries("KEYS_OF_TASKS")
for task, keys in entries("TASKS_WITH_KEYS").items():
    for key in keys & KEYS_OF_TASKS.keys():
        tasks, default, other = KEYS_OF_TASKS[key]
        KEYS_OF_TASKS[key] = (tasks | {task}, default, other)


@pytest.mark.parametrize("name", TASKS.names())
def test_a_key_of_another_task_is_left_out_or_says_whose_it_is(name, tmp_path):
    """Directories of earlier versions have the keys of all tasks."""
    defaults = {key: default for key, (_, default, _) in KEYS_OF_TASKS.items()}
    config = XLNetConfig.from_dict({"task": {**defaults, "name": name}})
    config.save(str(tmp_path))
    saved = XLNetConfig.load(str(tmp_path)).task.as_dict()
    assert {key for key in defaults if key in saved} <= {
        key for key, (tasks, *_) in KEYS_OF_TASKS.items() if name in tasks
    }
    for key, (tasks, _, value) in KEYS_OF_TASKS.items():
        config = XLNetConfig.from_dict({"task": {key: value, "name": name}})
        assert config.task.as_dict()[key] == value
        if name in tasks:
            config.check()
        else:
            owners = ", ".join(task for task in TASKS.names() if task in tasks)
            sentence = f"^task.{key}: a key of {owners}; task.name is {name}$"
            with pytest.raises(ConfigError, match=sentence):
                config.check()


UNREAD = [
    ("task.class_weights=balanced", "task.name=multi_label", "task.name=classification"),
    ("training.muon_scale=0.5", "training.optimizer=adamw", "training.optimizer=muon"),
    ("objective.mask_share=0.5", "objective.kind=permutation", "objective.kind=denoising"),
    ("objective.left_to_right_share=0.5", "objective.kind=causal", "objective.kind=permutation"),
    *rows("UNREAD"),
]


@pytest.mark.parametrize(("setting", "unread", "read"), UNREAD)
def test_a_key_that_nothing_reads_is_refused(setting, unread, read, tmp_path):
    """Except in a model of an earlier version, or in a recipe whose choice is replaced."""
    sentence = f"^{setting.split('=')[0]}: expected .*, as nothing reads it with {unread}, got"
    for settings in ([setting, unread], [unread, setting]):
        with pytest.raises(ConfigError, match=sentence):
            XLNetConfig().apply(settings)
    XLNetConfig().apply([read, setting])
    config = XLNetConfig()
    file = f"{tmp_path}/config.yaml"
    for choice, path, overrides in ((read, file, [unread]), (unread, str(tmp_path), [])):
        config.set(setting)
        config.set(choice)
        config.save(str(tmp_path))
        XLNetConfig.load(path, overrides)
    with pytest.raises(ConfigError, match=sentence):
        XLNetConfig.load(file)


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        (
            "training",
            "learning_rte",
            1.0,
            "unknown key 'learning_rte'; did you mean 'learning_rate'",
        ),
        *rows("CHOOSES_ANOTHER_CLASS"),
        ("task", "class_weights", "balanced", r"config\.set\('task\.class_weights=balanced'\)"),
    ],
)
def test_an_attribute_that_would_have_no_effect_is_an_error(section, key, value, message):
    with pytest.raises(AttributeError, match=message):
        setattr(getattr(XLNetConfig(), section), key, value)


def test_a_section_has_the_class_that_its_name_registers_and_copies_of_it_too():
    config = XLNetConfig.from_dict({"task": {"scoring": "summary", "num_choices": 3}})
    assert type(config.task) is TaskConfig and set(config.task.keys_of_other_classes) == {
        "scoring",
        "num_choices",
    }
    config.set("task.name=ranking")
    for task in (config.task, copy.deepcopy(config.task), pickle.loads(pickle.dumps(config.task))):
        assert type(task) is RankingConfig and task == config.task
        assert task.scoring == "summary" and task.keys_of_other_classes == {"num_choices": 3}
        assert dataclasses.replace(task, max_length=7).keys_of_other_classes == {"num_choices": 3}
    other = TaskConfig(max_length=7).updated({"name": "ranking", "scoring": "summary"}, "")
    assert type(other) is RankingConfig and (other.max_length, other.scoring) == (7, "summary")
    assert other == TaskConfig.create(name="ranking", max_length=7, scoring="summary")
    with pytest.raises(AttributeError, match=r"config\.set\('task\.name=classification'\)"):
        other.name = "classification"


def test_a_class_is_not_created_with_a_name_that_chooses_another_one():
    """`dataclasses.replace` creates a section of the same class; `updated` chooses the class."""
    with pytest.raises(ConfigError, match=r"expected TaskConfig\.create\(name='ranking', …\), got"):
        TaskConfig(name="ranking")
    ranking = TaskConfig.create(name="ranking")
    for section in (ranking, TaskConfig()):
        with pytest.raises(ConfigError, match=r"^task\.name: expected TaskConfig\.create\(name="):
            dataclasses.replace(section, name="classification")
    assert "keys_of_other_classes" not in repr(ranking)


@pytest.mark.parametrize("value", ["high", None, [0.1], True])
def test_an_attribute_of_another_type_is_an_error(value):
    config = XLNetConfig()
    with pytest.raises(ConfigError, match=r"^model\.dropout: expected a number, got "):
        config.model.dropout = value
    assert config.model.dropout == XLNetConfig().model.dropout
    config.model.dropout, config.model.num_layers = np.float32(0.25), np.int64(3)
    config.task.labels = ["a", 1]
    assert config.model.dropout == 0.25 and type(config.model.num_layers) is int
    assert config.task.labels == ("a", "1")
    config.training.learning_rate = 1
    assert type(config.training.learning_rate) is float


def test_a_recipe_of_the_package_is_found_by_its_name(tmp_path, monkeypatch):
    expected = XLNetConfig.load("configs/tiny.yaml")
    monkeypatch.chdir(tmp_path)
    assert XLNetConfig.load("tiny") == XLNetConfig.load("configs/tiny.yaml") == expected
    expected.save(str(tmp_path / "tiny"))
    expected.model.mem_len = 0
    expected.save(str(tmp_path / "tiny"))  # A folder of the user's comes first.
    assert XLNetConfig.load("tiny").model.mem_len == 0
    with pytest.raises(ConfigError, match="no configuration at 'base'"):
        load_config("base")  # Where a model is asked for.
