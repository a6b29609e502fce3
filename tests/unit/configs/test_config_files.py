"""The recipes in configs/ load, say how they are run, and hold the figures they claim."""

import pathlib
import random

import pytest

from data_prep.pipelines.prepare import prepare
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.pretraining_dataset import _check_batch_size, pretraining_dataset
from official.xlnet.data.schema import SplitManifest
from official.xlnet.errors import ConfigError

DIRECTORY = pathlib.Path(__file__).parents[3] / "configs"
CONFIGS = sorted(DIRECTORY.glob("*.yaml"))
TABLE_6 = sorted((DIRECTORY / "ablation/base").glob("*.yaml"))
OF_PRETRAINING = [path for path in CONFIGS + TABLE_6 if "xlnet prepare" in path.read_text()]


@pytest.mark.parametrize("path", CONFIGS + TABLE_6, ids=lambda path: path.name)
def test_recipe_loads_and_opens_with_its_commands(path):
    config = XLNetConfig.load(str(path))
    head = path.read_text().split("\nmodel:")[0]
    if "--config=configs/NAME.yaml" in head:  # A table of the data sets that share a recipe.
        assert f"\n#   {path.stem} " in head
    else:
        assert f"--config=configs/{path.relative_to(DIRECTORY)}" in head
    if config.model.vocab_size and "xlnet vocab" in head:
        assert f"--size={config.model.vocab_size}" in head


@pytest.mark.parametrize("path", OF_PRETRAINING, ids=lambda path: path.name)
def test_recipe_has_a_lane_for_every_row(path):
    """A data set that is prepared with the recipe can be trained on with it."""
    config = XLNetConfig.load(str(path))
    data, rows = config.data, config.training.batch_size
    lanes = SplitManifest(1, 0, 0, 0, data.num_lanes, 1, {})
    _check_batch_size(lanes, data.bidirectional, str(path), rows, epochs=None)
    assert data.num_lanes % (1 + data.bidirectional) == 0


@pytest.mark.slow
@pytest.mark.parametrize("path", OF_PRETRAINING, ids=lambda path: path.name)
def test_a_corpus_that_is_prepared_with_a_recipe_is_read_with_it(path, tmp_path, vocab_file):
    """Shorter windows of a small corpus, with the recipe's own numbers of lanes and rows."""
    lengths = ["seq_len=24", "reuse_len=8", "num_predict=3", "heldout_fraction=0", "max_unknown=1"]
    config = XLNetConfig.load(str(path), [f"data.{setting}" for setting in lengths])
    rng, words = random.Random(3), ["the", "value", "of", "a", "name", "is", "not", "what"]
    documents = [" ".join(rng.choices(words, k=1500)) for _ in range(200)]
    (tmp_path / "text.txt").write_text("\n\n".join(documents))
    data = str(tmp_path / "data")
    prepare([str(tmp_path / "text.txt")], vocab_file, config, data, num_workers=1)
    batch = next(iter(pretraining_dataset(data, config.training.batch_size, config=config)))
    assert batch["token_ids"].shape == (config.training.batch_size, 24)


def test_large_is_table_7_of_the_paper():
    config = XLNetConfig.load(str(next(path for path in CONFIGS if path.name == "large.yaml")))
    model, data, training = config.model, config.data, config.training
    assert (model.num_layers, model.d_model, model.num_heads, model.d_head) == (24, 1024, 16, 64)
    assert (model.d_inner, model.vocab_size, model.mem_len) == (4096, 32000, 384)
    assert (model.dropout, model.activation_dropout, model.dropatt) == (0.1, 0.0, 0.1)
    assert (data.seq_len, data.reuse_len, data.num_predict, data.target_ratio) == (512, 256, 85, 6)
    assert data.bidirectional
    assert (training.batch_size, training.learning_rate, training.num_steps) == (8192, 4e-4, 500000)
    assert (training.warmup_steps, training.adam_epsilon) == (40000, 1e-6)
    assert (training.weight_decay, training.decay_power) == (0.01, 1.0)


def test_a_dropout_of_its_own_behind_the_activation_may_be_left_open(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("model:\n  dropout: 0.2\n")  # As saved before there was the key.
    old = XLNetConfig.load(str(path))
    assert old.model.activation_dropout is None
    old.set("activation_dropout=0.3")
    old.save(str(tmp_path))
    assert XLNetConfig.load(str(path)).model.activation_dropout == 0.3
    open_again = XLNetConfig.load(str(path), ["activation_dropout=null"])
    open_again.save(str(tmp_path))
    assert XLNetConfig.load(str(path)).model.activation_dropout is None
    for wrong, sentence in (("some", "expected float"), ("1.0", r"expected in \[0, 1\)")):
        with pytest.raises(ConfigError, match=f"activation_dropout: {sentence}"):
            XLNetConfig.load(str(path), [f"activation_dropout={wrong}"])


def test_table_6_is_bert_base_in_size_and_hyperparameters():
    rows = {path.stem: XLNetConfig.load(str(path)) for path in TABLE_6}
    toy = {path.stem for path in (DIRECTORY / "ablation").glob("*.yaml")}
    assert set(rows) == toy - {"dae_equal_compute", "roberta"}
    for config in rows.values():
        model, training = config.model, config.training
        assert (model.num_layers, model.d_model, model.num_heads) == (12, 768, 12)
        assert (model.d_inner, model.vocab_size, config.data.seq_len) == (3072, 32000, 512)
        assert (training.batch_size, training.num_steps) == (256, 1000000)
        assert (training.learning_rate, training.warmup_steps) == (1e-4, 10000)
    assert rows["xlnet_k6"].data.target_ratio == 6 and rows["xlnet_k6"].data.max_span == 5


def test_labels_that_yaml_reads_as_booleans_are_refused():
    with pytest.raises(ConfigError, match=r"expected a list of strings, .* in quotes"):
        XLNetConfig().set("task.labels=[NO, YES]")
    config = XLNetConfig()
    config.set("task.labels=['NO', 'YES', 2]")
    assert config.task.labels == ("NO", "YES", "2")


TEXTS = {"classification", "multi_label", "regression"}
# {key of some tasks: (these, its default, another value)}
KEYS_OF_TASKS = {
    "answer_steps": (TEXTS | {"multitask"}, 5, 3),
    "class_weights": (TEXTS, "none", "balanced"),
    "label_smoothing": (TEXTS | {"multitask"}, 0.0, 0.1),
    "lm_weight": (set(TASKS.names()), 0.0, 0.5),
    "null_threshold": ({"question_answering"}, 0.0, -2.5),
    "num_choices": ({"multiple_choice"}, 4, 7),
    "num_candidates": ({"ranking", "multitask"}, 2, 3),
    "query_length": ({"question_answering", "ranking", "multitask"}, 64, 11),
    "scoring": ({"ranking"}, "kernel", "summary"),
    "subtasks": ({"multitask"}, (), ("a", "b")),
}


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
        assert getattr(config.task, key) == value
        if name in tasks:
            config.check()
        else:
            owners = ", ".join(task for task in TASKS.names() if task in tasks)
            sentence = f"^task.{key}: a key of {owners}; task.name is {name}$"
            with pytest.raises(ConfigError, match=sentence):
                config.check()


UNREAD = [
    ("task.answer_module=san", "task.name=regression", "task.name=classification"),
    ("task.class_weights=balanced", "task.name=multi_label", "task.name=classification"),
    ("task.answer_steps=3", "task.answer_module=summary", "task.answer_module=san"),
    ("training.muon_scale=0.5", "training.optimizer=adamw", "training.optimizer=muon"),
    ("objective.mask_share=0.5", "objective.kind=permutation", "objective.kind=denoising"),
    ("model.ponder_weight=0.5", "model.depth=shared", "model.depth=adaptive"),
]


@pytest.mark.parametrize(("setting", "unread", "read"), UNREAD)
def test_a_key_that_nothing_reads_is_refused(setting, unread, read, tmp_path):
    sentence = f"^{setting.split('=')[0]}: expected .*, as nothing reads it with {unread}, got"
    for settings in ([setting, unread], [unread, setting]):
        with pytest.raises(ConfigError, match=sentence):
            XLNetConfig().apply(settings)
    XLNetConfig().apply([read, setting])
    config = XLNetConfig()
    for each in (setting, unread):
        config.set(each)
    config.save(str(tmp_path))
    file = f"{tmp_path}/config.yaml"
    with pytest.raises(ConfigError, match=sentence):
        XLNetConfig.load(file)
    config.set(read)
    config.save(str(tmp_path))
    XLNetConfig.load(file, [unread])  # What a recipe has for its own choice.
    config.set(unread)
    config.save(str(tmp_path))
    XLNetConfig.load(str(tmp_path))  # A model of an earlier version.
