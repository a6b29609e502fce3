"""Every key of the configuration: described, with a range, read, and with an effect.

The keys are those of the sections, of the tasks and of the extensions, so that a new key is tested
before its author writes a line. `EFFECTS` has a second value for each, and the function that shows
what it changes.
"""

import ast
import collections
import copy
import dataclasses
import functools
import inspect
import itertools
import json
import math
import pathlib
import re
import shlex
import tempfile
import types
from typing import Annotated

import pytest
import tensorflow as tf

from official.xlnet.checkpoints.model_directory import create_model_dir
from official.xlnet.configs import registry
from official.xlnet.configs.base import SETTINGS, key_types, register_settings
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.key_marks import FIXED, MAY_CHANGE, UnreadWith
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.configs.validation import Range
from official.xlnet.errors import ConfigError
from official.xlnet.training.finetuning_loop import FineTuningLoop
from official.xlnet.training.pretraining_loop import PretrainingLoop
from tests.conformance import effects
from tests.helpers.corpora import recipe, vocabulary_dir
from tests.helpers.documents import ROOT
from tests.helpers.package.of_projects import rows
from tests.helpers.tiny import CONFIG

SECTIONS = {field.name: field.default_factory for field in dataclasses.fields(XLNetConfig)}


def own_keys(section):
    """Names of the keys that a class declares."""
    return [
        f.name for f in dataclasses.fields(section) if f.name in inspect.get_annotations(section)
    ]


# {"section.key": the class that declares it}
KEYS = {
    f"{section.section}.{key}": section
    for section in dict.fromkeys([*SECTIONS.values(), *map(SETTINGS.__getitem__, SETTINGS.names())])
    for key in own_keys(section)
}


# (a) Described.


def described(section):
    """Names under `Attributes:` of a class."""
    attributes = inspect.getdoc(section).partition("\nAttributes:\n")[2]
    return re.findall(r"^  (\w+): \S", attributes, re.MULTILINE)


@pytest.mark.parametrize("section", dict.fromkeys(KEYS.values()), ids=lambda cls: cls.__name__)
def test_each_key_is_described(section):
    assert sorted(described(section)) == sorted(own_keys(section))


# (b) With a range.

# Texts that may be anything, except empty if their default is not; all others have a set of words.
FREE = {
    *("task.label_column", "task.group_column", "task.metric", "task.scope"),
    "task.label_separator",
}


def wrong_values(key):
    """Values of the right type that are refused."""
    section, name = KEYS[key], key.partition(".")[2]
    default, (_, rules) = getattr(section, name), key_types(section)[name]
    if isinstance(default, bool) or default is None:
        wrong = []
    elif isinstance(default, int | float):
        wrong = [float("nan"), float("inf"), -1e39] if isinstance(default, float) else [-(10**19)]
        wrong += [10**19] if isinstance(default, int) else [1e39]
        (rule,) = [rule for rule in rules if isinstance(rule, Range)]
        step = 1 if isinstance(default, int) else 1e-3
        ends = [rule.low - step * (not rule.open_low), rule.high + step * (not rule.open_high)]
        wrong += [type(default)(end) for end in ends if math.isfinite(end)]
    elif isinstance(default, str):
        wrong = ([""] if default else []) + ([] if key in FREE else ["no_such_word"])
    else:
        wrong = [[float("nan")]] if "float" in str(section.__annotations__[name]) else []
    return wrong


@pytest.mark.parametrize("key", KEYS)
def test_each_key_has_a_range_or_a_set_of_words(key):
    section, name = key.split(".")
    for value in wrong_values(key):
        config = XLNetConfig.from_dict({section: {name: value}})
        with pytest.raises(ConfigError, match=name):
            config.check()


# (c) Read.

# Names of a section where its keys are read, besides its own.
NAMES = {"settings", "own", "saved", "known", "source"}


@functools.cache
def attributes():
    """{attribute: names of what it is read from} in the code outside `configs`."""
    found = collections.defaultdict(set)
    for path in [*ROOT.glob("official/**/*.py"), *ROOT.glob("data_prep/**/*.py")]:
        if "configs" in path.relative_to(ROOT).parts:
            continue
        text = path.read_text()
        for key in re.findall(r'task\.as_dict\(\)\.get\("(\w+)"', text):  # If the task has it.
            found[key].add("task")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                owner = ast.unparse(node.value).rpartition(".")[2]
                found[node.attr].add(owner.partition("(")[0].strip("_"))
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "settings":
                for key in getattr(node.value, "values", []):  # Arguments of an optimizer.
                    found[ast.unparse(key).strip("'")].add("settings")
    return found


def is_read(key, section):
    """Whether code outside `configs` reads a key, itself or by a method of its class."""
    name = key.partition(".")[2]
    if attributes()[name] & {section.section, *NAMES}:
        return True
    files = {inspect.getfile(part) for part in section.__mro__[:-1]}
    trees = [ast.parse(pathlib.Path(file).read_text()) for file in files]
    for function in itertools.chain(*map(ast.walk, trees)):
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("check"):
            reads = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
            reads |= {node.value for node in ast.walk(function) if isinstance(node, ast.Constant)}
            if name in reads and attributes()[function.name] - {"super()"}:
                return True
    return False


@pytest.mark.parametrize("key", KEYS)
def test_each_key_is_read(key):
    assert is_read(key, KEYS[key])


# (d) With an effect.

_SMALL = CONFIG | {"model": CONFIG["model"] | {"num_layers": 1}}
_RUN = recipe(num_steps=2, checkpoint_steps=1, warmup_steps=0)
_TASK = {
    "model": _SMALL["model"] | {"vocab_size": 211, "mem_len": 0},
    "training": {"batch_size": 4, "num_steps": 4, "warmup_steps": 0, "checkpoint_steps": 2},
    "task": {"max_length": 23, "num_buckets": 1},
}
_TEXTS = "task.name=classification task.text_columns=[text]"
_TARGET = (
    "task.name=regression task.text_columns=[text] task.target_means=[0] task.target_scales=[1]"
)

# (function of `effects`, configuration, settings of all rows, rows): in each row there is a
# second value of a key, and what else it needs.
EFFECTS = [
    (
        "updates",
        {"training": {"num_steps": 6, "warmup_steps": 2}},
        "",
        """
        training.num_steps=7
        training.learning_rate=0.01
        training.warmup_steps=1
        training.end_learning_rate=0.01
        training.decay_power=2
        training.schedule=cosine
        training.cooldown_share=0.9 training.schedule=constant_with_cooldown
        training.cooldown=sqrt training.cooldown_share=0.9 training.schedule=constant_with_cooldown
        training.optimizer=lamb
        training.weight_decay=0.3
        training.adam_beta_1=0.5
        training.adam_beta_2=0.5
        training.adam_epsilon=0.1
        training.muon_scale=0.5 training.optimizer=muon
        training.clip_norm=0.1
        training.layer_decay=0.5
        training.decay_embedding=false training.layer_decay=0.5
        """,
    ),
    (
        "draws",
        _SMALL,
        "",
        """
        data.num_predict=3
        data.target_ratio=4
        data.target_unit=word
        data.max_span=2
        objective.kind=causal
        objective.target_draws=1
        objective.mask_share=0.3 objective.kind=denoising
        objective.random_share=0.2 objective.kind=denoising
        """,
    ),
    (
        "step",
        _SMALL,
        "",
        """
        model.dropatt=0.3 model.dropout=0.3
        model.vocab_size=59
        model.embedding_rows=64
        model.num_layers=2
        model.d_model=26
        model.num_heads=11
        model.d_inner=31
        model.activation=relu
        model.untie_r=false
        model.attention_type=uni
        model.segments=false
        model.clamp_len=3
        model.mem_len=3
        model.dropout=0.3
        model.activation_dropout=0.3
        model.init_std=0.1
        model.attention_init=neighbors
        model.recompute=block
        training.batch_size=6
        training.freeze_embeddings=true
        training.freeze_layers=1
        training.freeze_network=true
        training.accumulate_steps=2
        training.parallel_slices=2
        training.precision=mixed_bfloat16
        training.seed=1
        """,
    ),
    (
        "records",
        recipe(),
        "",
        """
        data.seq_len=31
        data.reuse_len=7
        data.num_lanes=4
        data.bidirectional=false
        data.heldout_fraction=0.5
        data.lowercase=true
        data.keep_accents=true
        data.max_unknown=0.01
        data.seed=1
        """,
    ),
    ("reading", recipe(), "", "data.phrases=['the water']"),
    (
        "run",
        _RUN,
        "",
        """
        training.products=bfloat16
        training.jit_compile=true
        training.steps_per_execution=2
        training.checkpoint_steps=5
        training.keep_checkpoints=1
        training.evaluation_steps=1
        training.on_bad_step=skip training.learning_rate=1e30
        training.json_log=true training.evaluation_steps=1
        """,
    ),
    ("devices", {}, "", "training.release_memory=true"),
    (
        "units",
        _TASK,
        _TEXTS,
        """
        task.columns=[a,b,label,d,e] task.text_columns=[a]
        task.text_columns=[other]
        task.label_column=kind
        task.labels=[good,bad]
        task.group_column=group
        task.max_length=13
        task.truncation_side=left
        task.num_buckets=2
        task.long_texts=windows
        task.window_stride=7 task.long_texts=windows
        task.max_windows=2 task.long_texts=windows
        task.class_weights=balanced
        task.both_orders=true task.text_columns=[text,other]
        task.label_separator=; task.name=multi_label
        """,
    ),
    (
        "units",
        _TASK,
        "",
        """
        task.num_choices=5 task.name=multiple_choice
        task.query_length=2 task.name=question_answering
        task.num_candidates=3 task.name=ranking
        """,
    ),
    (
        "fine_tuning",
        _TASK,
        _TEXTS,
        """
        task.name=regression
        task.summary=mean
        task.metric=macro_f1
        task.freeze_encoder=true
        task.pooling=max task.long_texts=windows
        task.pooled_segments=all task.long_texts=memory model.mem_len=23
        task.label_smoothing=0.2
        """,
    ),
    (
        "fine_tuning",
        _TASK,
        "",
        f"""
        task.target_means=[1] {_TARGET}
        task.target_scales=[2] {_TARGET}
        task.cutoff=2 task.name=ranking
        task.gain=linear task.name=ranking
        task.highest_grade=9 task.name=ranking
        task.scoring=summary task.name=ranking
        task.answer_length=1 task.name=question_answering
        task.start_n_top=2 task.name=question_answering
        task.end_n_top=2 task.name=question_answering
        task.n_best=2 task.name=question_answering
        task.null_threshold=-9 task.name=question_answering
        """,
    ),
    (
        "finetuned",
        _TASK,
        f"{_TEXTS} training.num_steps=6 training.learning_rate=1e-9",
        """
        task.epochs=1
        task.patience=1
        """,
    ),
    ("finetuned", _TASK, _TEXTS, "training.lora_rank=2"),
    ("predicted", _TASK, "", "task.label_type=int"),
    ("variables", _TASK, "task.name=classification task.labels=[a,b]", "task.scope=mnli"),
]
_BASES = {"draws": _SMALL, "step": _SMALL, "units": _TASK, "fine_tuning": _TASK}
EFFECTS += [(function, _BASES[function], "", row) for function, row in rows("EFFECTS")]


def rows_of(function, base, context, text):
    """Yields (key, (function, configuration, second value, other settings)) of each row."""
    for row in text.strip().splitlines():
        change, *others = shlex.split(row)
        yield change.partition("=")[0], (function, base, change, *shlex.split(context), *others)


ROWS = dict(itertools.chain.from_iterable(rows_of(*each) for each in EFFECTS))


@functools.cache
def given(function, base, *settings):
    """What a function of `effects` gives with settings, as JSON."""
    config = XLNetConfig.from_dict(json.loads(base))
    config.apply(settings)
    with tempfile.TemporaryDirectory() as folder:
        found = getattr(effects, function)(config, folder)
    return json.dumps(found, default=effects.plain).replace(folder, "")


def has_effect(function, base, change, *settings):
    """Whether a second value changes what a function gives."""
    base = json.dumps(base)
    return given(function, base, *settings) != given(function, base, *settings, change)


# Keys whose effect comes from the names that projects bring to a table.
BY_NAMES_OF_PROJECTS = {
    "model.network": registry.NETWORKS,
    "model.depth": registry.DEPTHS,
    "objective.input_format": registry.INPUT_FORMATS,
    "objective.auxiliary": registry.AUXILIARY,
    "objective.auxiliary_steps": registry.AUXILIARY,
    "objective.auxiliary_weights": registry.AUXILIARY,
    "objective.next_sentence": registry.AUXILIARY,
    "task.answer_module": registry.ANSWER_MODULES,
    "task.label_unit": registry.LABEL_UNITS,
    "task.lm_weight": registry.TASK_LOSSES,
}


def has_names_of_projects(table):
    return any(module.startswith("projects.") for module in table.modules.values())


def test_every_key_has_a_row():
    """A key whose names are all of projects that are deleted has no effect."""
    without = {x for x, table in BY_NAMES_OF_PROJECTS.items() if not has_names_of_projects(table)}
    assert ROWS.keys() == KEYS.keys() - without


def params(keys):
    """Keys as parameters of a test; whole runs are slow."""
    is_slow = {key: ROWS[key][0] in ("run", "finetuned") for key in keys}
    return [pytest.param(key, marks=[pytest.mark.slow] * is_slow[key]) for key in keys]


@pytest.mark.parametrize("key", params(ROWS))
def test_each_key_has_an_effect(key):
    function, _, change, *_ = ROWS[key]
    assert has_effect(*ROWS[key]), f"{change} changes nothing that `effects.{function}` shows"


@pytest.mark.parametrize("key", params({row[0]: key for key, row in ROWS.items()}.values()))
def test_the_same_settings_give_the_same(key):
    """Otherwise every key would seem to have an effect."""
    function, base, _, *settings = ROWS[key]
    arguments = function, json.dumps(base), *settings
    assert given(*arguments) == given.__wrapped__(*arguments)


# (e) With a word where a finished run can no longer take it.

KINDS = ("pre-training", "fine-tuning")


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory):
    """What a finished run says of itself."""
    directory = str(tmp_path_factory.mktemp("run"))
    create_model_dir(
        directory,
        XLNetConfig.from_dict({"model": {"vocab_size": 211}}),
        f"{vocabulary_dir()}/spiece.model",
    )
    return directory


def finished(kind, config, output):
    """A loop whose run has taken its last step."""
    vocab, strategy = f"{output}/spiece.model", tf.distribute.get_strategy()
    if kind == "pre-training":
        steps = config.training.num_steps
        loop = PretrainingLoop(
            config, None, False, output=output, vocab=vocab, strategy=strategy, last_step=steps
        )
    else:
        tokenizer = types.SimpleNamespace(model_file=vocab)
        task = types.SimpleNamespace(config=config, tokenizer=tokenizer)
        loop = FineTuningLoop(task, None, [], {}, output, strategy)
    loop.step = 10**9
    return loop


def said_of(loop, caplog):
    """What is said of a loop's settings before it ends at once."""
    caplog.clear()
    try:
        loop._check_resumable()
        loop._warn_of_changes()
    except ConfigError as error:
        return str(error)
    return caplog.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [key for key in KEYS if key.startswith("training.")])
def test_a_finished_run_names_a_setting_that_has_changed(key, kind, run_directory, caplog):
    config = XLNetConfig.load(run_directory)
    assert said_of(finished(kind, config, run_directory), caplog) == ""
    changed = copy.deepcopy(config)
    changed.set(ROWS[key][2])
    assert changed != config
    assert re.search(rf"\b{key}\b", said_of(finished(kind, changed, run_directory), caplog))


def test_a_finished_run_says_that_fewer_steps_are_none(run_directory, caplog):
    loop = finished("pre-training", XLNetConfig.load(run_directory), run_directory)
    loop._last_step = 3
    assert "steps=3 (was 1000000000)" in said_of(loop, caplog)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_another_package_says_whether_a_resumed_run_may_change_it(
    kind, tmp_path, registered, caplog
):
    @registered("training")
    class AverageConfig(TrainingConfig):
        """Averages of weights."""

        unread_with = {"average_steps": ("optimizer", ("lamb",))}  # The former place.

        average_steps: Annotated[int, Range(0, 9), MAY_CHANGE] = 0
        average_decay: Annotated[float, Range(0, 1), FIXED] = 0.5

    config = XLNetConfig.from_dict(
        {"model": {"vocab_size": 211}, "training": {"average_steps": 2, "average_decay": 0.25}}
    )
    create_model_dir(str(tmp_path), config, f"{vocabulary_dir()}/spiece.model")
    for key, is_refused in (("average_steps", False), ("average_decay", True)):
        changed = config.changed([f"training.{key}=1"])
        message = said_of(finished(kind, changed, str(tmp_path)), caplog)
        assert f"training.{key}" in message
        assert message.startswith(f"training.{key}: expected") == is_refused
    with pytest.raises(
        ConfigError, match=r"as nothing reads it with training\.optimizer=lamb, got"
    ):
        XLNetConfig().apply(["training.average_steps=1", "training.optimizer=lamb"])


@pytest.fixture
def registered():
    """Registers a class of a section for one test."""
    before = dict(SETTINGS)
    yield lambda section, **names: register_settings(section, **names)
    SETTINGS.clear()
    SETTINGS.update(before)


def test_a_key_that_nothing_reads_is_found(registered):
    @registered("training")
    class PolyakConfig(TrainingConfig):
        """Averages of weights."""

        polyak: float = 0.0

    assert described(PolyakConfig) != own_keys(PolyakConfig)
    assert key_types(PolyakConfig)["polyak"] == (float, ())
    assert not is_read("training.polyak", PolyakConfig)
    assert not has_effect("updates", {}, "training.polyak=0.5")
    for value in (".nan", ".inf"):  # As of a package that gives no range.
        with pytest.raises(ConfigError, match=r"training\.polyak: expected finite numbers, got"):
            XLNetConfig().apply([f"polyak={value}"])


_UNREAD = Annotated[int, UnreadWith("netwrok", ("bert",))]


@pytest.mark.parametrize(
    ("section", "names", "attributes", "sentence"),
    [
        ("model", {}, {"allowed": {"size": Range(1)}}, "expected a range in the type of its key"),
        ("model", {}, {"unread_with": {"sise": ("network", ("bert",))}}, "got 'sise'; did you"),
        ("model", {}, {"unread_with": {"size": ("netwrok", ("bert",))}}, "did you mean 'network'"),
        ("model", {}, {"__annotations__": {"size": _UNREAD}}, "did you mean 'network'"),
        ("model", {"netwrok": ["mine"]}, {}, "got 'netwrok'; did you mean 'network'"),
        ("modle", {}, {}, "expected a subclass of the class of the section 'modle'"),
    ],
)
def test_settings_that_are_misspelt_are_refused(section, names, attributes, sentence, registered):
    before = dict(SETTINGS)
    key = {"__annotations__": {"size": int}, "size": 3}
    settings = type("Mine", (ModelConfig,), key | attributes)
    with pytest.raises(ConfigError, match=sentence):
        registered(section, **names)(settings)
    assert before == SETTINGS


@pytest.mark.parametrize(
    "setting",
    [
        "objective.kind=casual",
        "task.name=clasification",
        "training.optimizer=adamv",
        "data.target_unit=words",
        *rows("MISSPELT"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest_one(setting):
    config = XLNetConfig()
    config.set(setting)
    key = setting.partition("=")[0]
    with pytest.raises(ConfigError, match=f"{key}: expected one of .*did you mean"):
        config.check()
