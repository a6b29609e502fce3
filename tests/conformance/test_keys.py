"""Every key of the configuration: described, with a range, read, and with an effect.

The keys are those of the sections, of the tasks and of the extensions, so that a new key is tested
before its author writes a line; `key_rows` has a second value for each, and the function that shows
what it changes.
"""

import ast
import collections
import copy
import functools
import inspect
import itertools
import json
import math
import pathlib
import re
import tempfile
import types
from typing import Annotated

import pytest
import tensorflow as tf

from official.xlnet.checkpoints.model_directory import create_model_dir
from official.xlnet.checkpoints.run_directory import require_same_run, warn_of_changes
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
from tests.conformance.key_rows import KEYS, ROWS, own_keys
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.documents import ROOT
from tests.helpers.package.of_projects import rows

# (a) Described.


def described(section):
    """Names under `Attributes:` of a class."""
    attributes = inspect.getdoc(section).partition("\nAttributes:\n")[2]
    return re.findall(r"^  (\w+): \S", attributes, re.MULTILINE)


@pytest.mark.parametrize("section", dict.fromkeys(KEYS.values()), ids=lambda cls: cls.__name__)
def test_each_key_is_described(section):
    missing = sorted({*own_keys(section)} - {*described(section)})
    unknown = sorted({*described(section)} - {*own_keys(section)})
    where = f"{place_of(section)}, `Attributes:` of {section.__name__}"
    assert not missing, f"{where}: write a line `{missing[0]}: …` for each of {missing}"
    assert not unknown, f"{where}: {unknown} are not keys of the class"
    assert len(described(section)) == len(own_keys(section)), f"{where}: a key has two lines"


def place_of(section):
    """The file of a class, from the root of the repository if it is there."""
    path = pathlib.Path(inspect.getfile(section))
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


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
        ranges = [rule for rule in rules if isinstance(rule, Range)]
        line = f"{name}: Annotated[{type(default).__name__}, Range(low, high)] = {default!r}"
        assert ranges, f"{key}: expected a range in its type; write in {place_of(section)}: {line}"
        rule = ranges[0]
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
        try:
            config.check()
        except ConfigError as error:
            assert name in str(error), f"{key}={value!r} is refused without its name: {error}"
            continue
        example = f'{name}: Annotated[str, OneOf(("first", "second"))]'
        pytest.fail(
            f"{key}={value!r} is not refused: write its range, or its set of words, in its type in "
            f"{place_of(KEYS[key])}, such as {example}; a key that may be any text is one of FREE"
        )


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
    section, name = key.split(".")
    sentence = f"{key}: nothing outside of `configs` reads it, as `config.{section}.{name}`"
    assert is_read(key, KEYS[key]), f'{sentence}; see "A key" in CONTRIBUTING.md'


# (d) With an effect.


def computed(function, base, *settings):
    """Yields what a function of `effects` gives with settings, part by part, as JSON."""
    config = XLNetConfig.from_dict(json.loads(base))
    config.apply(settings)
    with tempfile.TemporaryDirectory() as folder:
        parts = getattr(effects, function)(config, folder)
        if not inspect.isgenerator(parts):
            parts = [parts]
        for part in parts:
            yield json.dumps(part, default=effects.plain).replace(folder, "")


class Given:
    """The same parts, each computed when it is first asked for."""

    def __init__(self, *arguments):
        self._parts, self._known = computed(*arguments), []

    def __iter__(self):
        for place in itertools.count():
            if place == len(self._known):
                try:
                    self._known.append(next(self._parts))
                except StopIteration:
                    return
            yield self._known[place]


given = functools.cache(Given)


def differ(parts, others):
    """Whether a part differs; the parts after it are not computed."""
    return any(part != other for part, other in itertools.zip_longest(parts, others))


def has_effect(function, base, change, *settings):
    """Whether a second value changes what a function gives."""
    base = json.dumps(base)
    return differ(given(function, base, *settings), computed(function, base, *settings, change))


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


HOW_TO_ADD_A_ROW = (
    "write a second value, `section.key=value`, in EFFECTS of tests/conformance/key_rows.py, among "
    "the rows of the function of `effects` that shows what it changes"
)


def row_of(key):
    assert key in ROWS, f"{key}: {HOW_TO_ADD_A_ROW}"
    return ROWS[key]


def test_every_key_has_a_row():
    """A key whose names are all of projects that are deleted has no effect."""
    without = {x for x, table in BY_NAMES_OF_PROJECTS.items() if not has_names_of_projects(table)}
    missing, unknown = KEYS.keys() - without - ROWS.keys(), ROWS.keys() - (KEYS.keys() - without)
    assert not missing, f"{sorted(missing)}: {HOW_TO_ADD_A_ROW}"
    assert not unknown, f"tests/conformance/key_rows.py has rows of other keys: {sorted(unknown)}"


def params(keys):
    """Keys as parameters of a test; steps of training and whole runs are slow."""
    slow = ("step", "fine_tuning", "run", "finetuned")
    is_slow = {key: ROWS[key][0] in slow for key in keys}
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
    is_other = differ(given(*arguments), computed(*arguments))
    assert not is_other, f"effects.{function} gives something else at each call: give it a seed"


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
        saved, vocab = XLNetConfig.load(loop.output), f"{loop.output}/spiece.model"
        keys = loop.settings_to_keep(saved)
        require_same_run(loop.output, saved, loop.config, vocab, keys)
        warn_of_changes(loop.output, loop.config, loop.step, loop._last_step)
    except ConfigError as error:
        return str(error)
    return caplog.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [key for key in KEYS if key.startswith("training.")])
def test_a_finished_run_names_a_setting_that_has_changed(key, kind, run_directory, caplog):
    config = XLNetConfig.load(run_directory)
    assert said_of(finished(kind, config, run_directory), caplog) == ""
    changed = copy.deepcopy(config)
    setting = row_of(key)[2]
    changed.set(setting)
    assert changed != config, f"{setting} is the default: write another value in key_rows.py"
    said = said_of(finished(kind, changed, run_directory), caplog)
    assert re.search(rf"\b{key}\b", said), f"{kind} does not name {key}, but says: {said!r}"


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


WITHOUT_A_RANGE = (
    r"training\.polyak: expected a range in its type; write in tests/conformance/test_keys\.py: "
    r"polyak: Annotated\[float, Range\(low, high\)\] = 0\.0"
)


def test_a_key_that_nothing_reads_is_found(registered, monkeypatch):
    @registered("training")
    class PolyakConfig(TrainingConfig):
        """Averages of weights."""

        polyak: float = 0.0

    assert described(PolyakConfig) != own_keys(PolyakConfig)
    assert key_types(PolyakConfig)["polyak"] == (float, ())
    assert not is_read("training.polyak", PolyakConfig)
    assert not has_effect("updates", {}, "training.polyak=0.5")
    monkeypatch.setitem(KEYS, "training.polyak", PolyakConfig)
    for test, sentence in (
        (test_each_key_is_read, r"training\.polyak: nothing outside of `configs` reads it, as"),
        (test_each_key_has_a_range_or_a_set_of_words, WITHOUT_A_RANGE),
        (row_of, r"training\.polyak: write a second value, .* of tests/conformance/key_rows\.py"),
    ):
        with pytest.raises(AssertionError, match=sentence):
            test("training.polyak")
    with pytest.raises(AssertionError, match=r"write a line `polyak: …` for each of \['polyak'\]"):
        test_each_key_is_described(PolyakConfig)
    with pytest.raises(AssertionError, match=r"\['training\.polyak'\]: write a second value"):
        test_every_key_has_a_row()
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
