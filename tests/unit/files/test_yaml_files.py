"""YAML from strangers: plain values, bounded, nothing executed."""

import time

import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError
from official.xlnet.files.yaml_files import parse_yaml

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not valid YAML"),
        ("!!python/object/apply:os.system [false]", "got the tag 'tag:yaml.org,2002:python"),
        ("!!set {a}", "got the tag"),
        ("!!int x", "not valid YAML"),
        ("0x_", "not valid YAML"),
        ("1: 2", "expected text as a key, got '1'"),
        ("null: 2", "expected text as a key, got 'null'"),
        ("? [a]\n: 2", "expected text as a key"),
        ("a: 1\na: 2", "expected every key once, got 'a' again"),
        ("9" * 5000, "at most 20 digits, got one of 5000"),
        ("[" * 5000, "at most 64 levels"),
        ("- " * 5000, "at most 64 levels"),
        ("a: &x 1\nb: *x", "an anchor or an alias"),
        (BOMB, "an anchor or an alias"),
        ("a" * (1 << 21), "at most 1,048,576 characters"),
        ("\ud800", "not valid YAML"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
    ],
)
def test_yaml_that_is_not_read_is_a_sentence(text, message):
    start = time.monotonic()
    with pytest.raises(ConfigError, match=r"my\.yaml") as error:
        parse_yaml(text, "my.yaml")
    assert message in str(error.value) and len(str(error.value)) < 300
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "text",
    ["1: {}", "null: {}", "model: {1: 2}", "model: [1]", "- 1", BOMB, "model: {d_model: 9e9}"],
)
def test_a_wrong_configuration_file_is_a_sentence(text, tmp_path):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigError) as error:
        XLNetConfig.load(str(tmp_path / "c.yaml"))
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    "value", ["[", "!!python/object/apply:os.abort []", "2020-13-45", "9" * 99]
)
def test_a_wrong_override_is_a_sentence(value):
    with pytest.raises(ConfigError, match="--set=learning_rate="):
        XLNetConfig().set(f"learning_rate={value}")


def test_what_is_saved_is_loaded(tmp_path):
    config = XLNetConfig()
    config.task.labels = config.task.columns = (
        "1",
        "null",
        "2020-01-01",
        "yes",
        "é\n",
        "a: b",
        "*x",
    )
    config.save(str(tmp_path))
    assert XLNetConfig.load(str(tmp_path)).as_dict() == config.as_dict()
