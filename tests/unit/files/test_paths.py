"""Paths of `pathlib` in every public function."""

import inspect
import os
import pathlib

import pytest

from official import xlnet
from official.xlnet.errors import ConfigError
from official.xlnet.files.paths import accepts_paths

# Parameters that take a path, in whatever function they are.
NAMES = {"model_dir", "data_dir", "path", "output", "source", "vocab", "init_from", "train", "dev"}
NAMES |= {"data", "model_file", "directory", "extra_train"}
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


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_every_public_function_takes_paths(name, parameter):
    """A URL that pathlib cut is refused, so paths are looked at; nothing else is done before."""
    function = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters.values()
    given = {each.name: None for each in parameters if each.default is each.empty}
    for path in (pathlib.Path("gs://bucket/x"), [pathlib.Path("gs://bucket/x")]):
        with pytest.raises(ConfigError, match=rf"^{parameter}: expected a URL as a string"):
            function(**{**given, parameter: path})
    for wrong in (b"runs/a", 3, 0.5):
        with pytest.raises(TypeError, match=f"^{parameter}: expected a path, got"):
            function(**{**given, parameter: wrong})


def test_paths_become_strings():
    @accepts_paths("path", "weights")
    def given(path, other, weights=None):
        return path, other, weights

    path = pathlib.Path("a b/ü")
    assert given(path, path) == (os.fspath(path), path, None)
    assert given([path, "c"], 1, {path: 2.0}) == (["a b/ü", "c"], 1, {"a b/ü": 2.0})
    rows = [("text", "label")]
    assert given((path,), 1, weights=rows) == (("a b/ü",), 1, rows)
    with pytest.raises(TypeError, match=r"^path: expected a path, got None"):
        given(None, 1)
    with pytest.raises(TypeError, match=r"given\(\) missing 1 required positional argument"):
        given(path)


def test_a_tokenizer_and_a_configuration_by_their_paths(tmp_path, vocab_file):
    assert xlnet.Tokenizer(pathlib.Path(vocab_file)).vocab_size == 2000
    config = xlnet.XLNetConfig()
    (tmp_path / "ü").mkdir()
    config.save(tmp_path / "ü")
    for load in (xlnet.XLNetConfig.load, xlnet.load_config):
        assert load(tmp_path / "ü").as_dict() == config.as_dict()
