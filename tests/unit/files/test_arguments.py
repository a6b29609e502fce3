"""The types of arguments of every public function."""

import inspect
import os
import pathlib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pytest

from official import xlnet
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.files.arguments import Path
from official.xlnet.files.flags_in_messages import called_with_flags
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range

# Parameters that take a path, in whatever function they are.
PATHS = {
    *("model_dir", "data", "path", "output", "source", "vocab", "init_from", "train", "dev"),
    *("input", "extend", "model_file", "directory"),
}
FUNCTIONS = {
    **{name: getattr(xlnet, name) for name in xlnet.__all__ if name != "__version__"},
    "XLNetConfig.load": xlnet.XLNetConfig.load,
    "XLNetConfig.save": xlnet.XLNetConfig().save,
}
TAKE_MODELS = [
    *("predict", "evaluate", "embed", "score", "generate", "fill_blanks", "export"),
    *("extend_vocabulary", "Predictor"),
]
CASES = [
    *(("finetune", "config"), ("pretrain", "config"), ("extend_vocabulary", "inputs")),
    *(("save_pretrained", "tokenizer"), *((name, "model") for name in TAKE_MODELS)),
] + [
    (name, parameter)
    for name, function in FUNCTIONS.items()
    for parameter in inspect.signature(function).parameters
    if parameter in PATHS and not name.startswith("Relative") and name != "XLNetConfig"
]
TYPED = [
    (name, parameter)
    for name, function in FUNCTIONS.items()
    if hasattr(function, "__wrapped__") and name != "save_pretrained"
    for parameter, kind in typing.get_type_hints(function).items()
    if kind is not Any and not isinstance(kind, typing.TypeVar) and parameter != "return"
]


def stand_in(kind):
    """A value of a type: an object of a class of ours, 1 for an integer, otherwise a path."""
    if isinstance(kind, types.UnionType):  # Of several types, the first.
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) is Sequence:
        return ["/nowhere"]
    is_ours = isinstance(kind, type) and kind.__module__.startswith("official.")
    return object.__new__(kind) if is_ours else 1 if kind is int else "/nowhere"


def refuses(name, parameter, wrong, message):
    """Calls a function with one wrong argument, and right ones where it needs others."""
    function = FUNCTIONS[name]
    types = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    needed = {x.name for x in parameters if x.default is x.empty} - {"self"}
    given = {needs: stand_in(types.get(needs)) for needs in needed}
    with pytest.raises(ConfigError, match=f"^{parameter}: expected {message}") as caught:
        function(**{**given, parameter: wrong})
    assert isinstance(caught.value, TypeError | ConfigError) and len(str(caught.value)) < 300
    return caught.value


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_every_public_function_takes_paths(name, parameter):
    """A URL that pathlib cut is refused, so paths are looked at; nothing else is done before."""
    refuses(name, parameter, pathlib.Path("gs://bucket/x"), "a URL as a string")
    for wrong in (b"runs/a", 3, 0.5, "a\0", ""):
        refuses(name, parameter, wrong, ".*a path.*, got")


@pytest.mark.parametrize(("name", "parameter"), TYPED)
def test_arguments_have_the_types_of_their_annotations(name, parameter):
    for wrong in (object(), 3 + 4j, b"x"):
        assert isinstance(refuses(name, parameter, wrong, ".*, got"), TypeError)


@public()
def named(
    path: Path | Sequence[Path],
    other: Any,
    *,
    weights: Mapping[Path, float] | None = None,
    number: Annotated[int, Range(2)] = 3,
    share: float = 0.5,
):
    return path, other, weights, number, share


@public()
def switched(on: bool, word: str = ""):
    return on, word


def test_arguments_become_what_is_expected():
    assert [type(value) for value in switched(np.True_, np.str_("a"))] == [bool, str]
    path = pathlib.Path("a b/ü")
    assert named(path, path) == (os.fspath(path), path, None, 3, 0.5)
    numbers = {"number": np.int64(7), "share": np.float32(0.25)}
    values = named((x for x in [path, "c"]), 1, weights={path: 2.0}, **numbers)
    assert values == (["a b/ü", "c"], 1, {"a b/ü": 2.0}, 7, 0.25)
    assert [type(value) for value in values[3:]] == [int, float]
    for kind, wrong, message in (
        (ConfigError, {"path": None}, "path: expected a path or a list of paths, got NoneType"),
        (ConfigError, {"path": "A text. " * 99}, "path: expected a path, got a text of 792 char"),
        (ConfigError, {"path": ["a", 3]}, r"path\[1\]: expected a path, got int 3"),
        (ConfigError, {"path": {"a"}}, "path: expected a path or a list of paths, got set"),
        (ConfigError, {"weights": [1]}, "weights: expected a dictionary or None, got list"),
        (ConfigError, {"number": True}, "number: expected an integer, got bool True"),
        (ConfigError, {"number": 2.0}, "number: expected an integer, got float 2.0"),
        (ConfigError, {"number": 1}, "number: expected at least 2, got 1"),
        (ConfigError, {"share": "1"}, "share: expected a number, got str '1'"),
        (TypeError, {"shar": 1}, r"\(\) got an unexpected keyword argument 'shar'"),
    ):
        with pytest.raises(kind, match=message):
            named(**{"path": "a", "other": 1, **wrong})
    with pytest.raises(TypeError, match=r"\(\) missing .* argument: 'other'"):
        named(path)
    assert list(inspect.signature(named).parameters)[2:] == ["weights", "number", "share"]


@public()
def _refuse(text: str) -> None:
    raise DataError(text)


def test_messages_name_arguments_in_python_and_notebooks_show_them_in_a_line():
    said = "3 rows, see --max_lost; --set=task.epochs=3, or --format=text of a - b --- c"
    said += " in 'a--b/--set=x', and --set=lr=1: no, --set=a.b=c:d."
    in_python = said.replace("--max", "max").replace("--format", "format")
    for setting in ("task.epochs=3", "lr=1", "a.b=c:d"):  # The mark after it is of the sentence.
        in_python = in_python.replace(f"--set={setting}", f'set=["{setting}"]')
    with pytest.raises(DataError) as error:
        _refuse(said)
    assert str(error.value) == in_python
    assert error.value._render_traceback_() == [f"DataError: {in_python}"]

    def tb():  # The magic of IPython.
        return "".join(error.value._render_traceback_())

    assert "Traceback (most recent call last)" in tb() and "in _refuse" in tb()
    with called_with_flags(), pytest.raises(DataError) as error:
        _refuse(said)
    assert str(error.value) == said
