"""The types of arguments of every public function."""

import dataclasses
import inspect
import os
import pathlib
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from official import xlnet
from official.xlnet.errors import ConfigError
from official.xlnet.files.arguments import checks_arguments

# Parameters that take a path, in whatever function they are.
NAMES = {"model_dir", "data_dir", "path", "output", "source", "vocab", "init_from", "train", "dev"}
NAMES |= {"data", "model_file", "directory"}
FUNCTIONS = {
    **{name: getattr(xlnet, name) for name in xlnet.__all__ if name != "__version__"},
    "XLNetConfig.load": xlnet.XLNetConfig.load,
    "XLNetConfig.save": xlnet.XLNetConfig().save,
}
FURTHER = [("finetune", "config"), ("pretrain", "config"), ("extend_vocabulary", "inputs")]
FURTHER += [(name, "model") for name in ("predict", "evaluate", "embed", "score", "generate")]
FURTHER += [
    (name, "model") for name in ("fill_blanks", "finetune", "extend_vocabulary", "Predictor")
]
FURTHER += [("save_pretrained", "tokenizer")]
CASES = FURTHER + [
    (name, parameter)
    for name, function in FUNCTIONS.items()
    for parameter in inspect.signature(function).parameters
    if parameter in NAMES and not name.startswith("Relative") and name != "XLNetConfig"
]


def required(function, parameter):
    """Right arguments without which a function cannot be called, but for one."""
    types = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    names = [x.name for x in parameters if x.default is x.empty and x.name != parameter]
    return {name: 1 if types.get(name) is int else "/nowhere" for name in names if name != "self"}


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_every_public_function_takes_paths(name, parameter):
    """A URL that pathlib cut is refused, so paths are looked at; nothing else is done before."""
    function = FUNCTIONS[name]
    given = required(function, parameter)
    with pytest.raises(ConfigError, match=rf"^{parameter}: expected a URL as a string"):
        function(**{**given, parameter: pathlib.Path("gs://bucket/x")})
    for wrong in (b"runs/a", 3, 0.5, "a\0", ""):
        with pytest.raises(ConfigError, match=f"^{parameter}: expected .*a path.*, got"):
            function(**{**given, parameter: wrong})


TYPED = [
    (name, parameter)
    for name, function in FUNCTIONS.items()
    if hasattr(function, "__wrapped__") and name != "save_pretrained"
    for parameter, kind in {"": Any, **typing.get_type_hints(function)}.items()
    if kind is not Any and not isinstance(kind, typing.TypeVar) and parameter != "return"
]


@pytest.mark.parametrize(("name", "parameter"), TYPED)
def test_arguments_have_the_types_of_their_annotations(name, parameter):
    function = FUNCTIONS[name]
    given = required(function, parameter)
    for wrong in (object(), 3 + 4j, b"x"):
        with pytest.raises(ConfigError, match=f"^{parameter}: expected .*, got") as caught:
            function(**{**given, parameter: wrong})
        assert isinstance(caught.value, TypeError) and len(str(caught.value)) < 300


@checks_arguments("path", "weights", number=2)
def named(
    path: str | Sequence[str],
    other: Any,
    *,
    weights: Mapping[str, float] | None = None,
    number: int = 3,
    share: float = 0.5,
):
    return path, other, weights, number, share


@dataclasses.dataclass
class Options:
    weights: Mapping[str, float] | None = None
    number: int = 3
    share: float = 0.5


@checks_arguments("path", "weights", options=Options, number=2)
def with_options(path: str | Sequence[str], other: Any, **options: Any):
    return path, other, *vars(Options(**options)).values()


@pytest.mark.parametrize("given", [named, with_options])
def test_arguments_become_what_is_expected(given):
    path = pathlib.Path("a b/ü")
    assert given(path, path) == (os.fspath(path), path, None, 3, 0.5)
    values = given(
        (x for x in [path, "c"]),
        1,
        weights={path: 2.0},
        number=np.int64(7),
        share=np.float32(0.25),
    )
    assert values == (["a b/ü", "c"], 1, {"a b/ü": 2.0}, 7, 0.25)
    assert [type(value) for value in values[3:]] == [int, float]
    for wrong, message in (
        ({"path": None}, "path: expected a path or a list of paths, got NoneType None"),
        ({"path": ["a", 3]}, r"path\[1\]: expected a path, got int 3"),
        ({"path": {"a"}}, "path: expected a path or a list of paths, got set"),
        ({"weights": [1]}, "weights: expected a dictionary or None, got list"),
        ({"number": True}, "number: expected an integer, got bool True"),
        ({"number": 2.0}, "number: expected an integer, got float 2.0"),
        ({"number": 1}, "number: expected at least 2, got 1"),
        ({"share": "1"}, "share: expected a number, got str '1'"),
    ):
        with pytest.raises(ConfigError, match=message):
            given(**{"path": "a", "other": 1, **wrong})
    assert list(inspect.signature(given).parameters)[2:] == ["weights", "number", "share"]
    name = given.__name__
    with pytest.raises(TypeError, match=rf"{name}\(\) missing .* argument: 'other'"):
        given(path)
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'shar'"):
        given(path, 1, shar=1)
