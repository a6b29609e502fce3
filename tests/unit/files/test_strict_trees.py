"""JSON and YAML from strangers: plain values, bounded, nothing executed; errors name the place."""

import dataclasses
import json
import math

import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.files.json_files import json_text, parse_json, read_json
from official.xlnet.files.schema import conform
from official.xlnet.files.yaml_files import parse_yaml
from tests.helpers.compare import assert_refused

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "row 7 is not valid JSON: Expecting"),
        ("9" * 5000, "row 7 is not valid JSON: .*4300"),
        ("[" * 100_000, "row 7 is not valid JSON: .*recursion"),
        ("", "row 7 is not valid JSON: Expecting"),
    ],
)
def test_wrong_json_is_a_sentence(text, message):
    assert len(str(assert_refused(message, parse_json, text, "row 7"))) < 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not valid YAML"),
        ("!!python/object/apply:os.system [false]", "for the tag 'tag:yaml.org,2002:python"),
        ("!!int x", "not valid YAML"),
        ("0x_", "not valid YAML"),
        ("1: 2", "expected text as a key, got '1'"),
        ("null: 2", "expected text as a key, got 'null'"),
        ("? [a]\n: 2", "expected text as a key"),
        ("a: 1\na: 2", "expected every key once, got 'a' again"),
        ("9" * 5000, "4300"),
        ("[" * 5000, "recursion"),
        ("a: &x 1\nb: *x", "got an alias"),
        (BOMB, "got an alias"),
        ("\ud800", "not valid YAML"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
    ],
)
def test_wrong_yaml_is_a_sentence(text, message):
    error = str(assert_refused(r"my\.yaml", parse_yaml, text, "my.yaml"))
    assert message in error and len(error) < 300


def test_a_configuration_that_is_saved_is_loaded(tmp_path):
    config = XLNetConfig()
    texts = ("1", "null", "2020-01-01", "yes", "é\n", "a: b", "*x")
    config.task.labels = config.task.columns = texts
    config.save(str(tmp_path))
    assert XLNetConfig.load(str(tmp_path)).as_dict() == config.as_dict()


def test_good_json_is_what_it_says(tmp_path):
    for tree in [{"a": [1, 2.5, -(10**18), "é😀", None, True], "b": {"c": {}}}, [[]] * 1000]:
        assert parse_json(json.dumps(tree), "here") == tree
    text = json_text({"a": math.nan, "b": [math.inf, 1.5], "c": "é\udc80"})
    assert text == '{"a": null, "b": [null, 1.5], "c": "é\\udc80"}'
    (tmp_path / "x.json").write_bytes(b"\xff")
    assert_refused(r"x\.json, line 1: expected UTF-8", read_json, str(tmp_path / "x.json"))


@dataclasses.dataclass
class Part:
    count: int
    share: float = 0.5


@dataclasses.dataclass
class Whole:
    parts: dict[str, Part]
    names: list[str]
    loss: float | None = None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": []}, "here: parts: expected an object, got []"),
        ({"parts": {"x": {"count": True}}}, "here: parts: x: count: expected an integer, got True"),
        ({"parts": {"x": {}}}, "here: parts: x: expected the key 'count', got "),
        ({"names": ["a", 5]}, "here: names[1]: expected a string, got 5"),
        ({"loss": "3"}, "here: loss: expected a number or None, got '3'"),
        ({"loss": math.nan}, "here: loss: expected a number or None, got nan"),
        ({"extra": 1}, "here: expected no key 'extra', got "),
        (
            {"names": {str(n): n for n in range(1000)}},
            "here: names: expected a list of strings, got {'0': 0",
        ),
    ],
)
def test_a_tree_of_another_form_is_a_sentence(change, message):
    good = {"parts": {"x": {"count": 3}}, "names": ["a"]}
    assert conform(good, Whole, "here") == Whole({"x": Part(3, 0.5)}, ["a"], None)
    error = str(assert_refused("", conform, good | change, Whole, "here"))
    assert error.startswith(message) and len(error) < 200


def test_numbers_of_other_programs_are_read():
    tree = parse_json('{"n": NaN, "x": 1e999, "long": 1000000000000000019884624838656}', "row 1")
    assert math.isnan(tree["n"]) and tree["x"] == math.inf and tree["long"] == int(1e30)
    assert parse_json('["\\ud800", 12]', "row 2") == ["\ufffd", 12]
