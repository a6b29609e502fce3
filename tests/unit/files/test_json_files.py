"""Strict JSON in and out, and trees against a schema."""

import dataclasses
import json
import math

import pytest

from official.xlnet.errors import DataError
from official.xlnet.files.json_files import json_text, parse_data, parse_json, read_json
from official.xlnet.files.schema import conform


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting"),
        ("9" * 5000, "at most 20 digits, got one of 5000"),
        ("[" * 100_000, "at most 64 levels"),
        ("[" * 65 + "]" * 65, "at most 64 levels"),
        ('{"a":' * 65 + "1" + "}" * 65, "at most 64 levels"),
        ("[NaN]", "finite numbers, got NaN"),
        ("[-Infinity]", "finite numbers, got -Infinity"),
        ("[1e999]", "finite numbers, got 1e999"),
        ("", "Expecting"),
    ],
)
def test_wrong_json_is_a_sentence(text, message):
    with pytest.raises(DataError, match="row 7 is not valid JSON: ") as error:
        parse_json(text, "row 7")
    assert message in str(error.value) and len(str(error.value)) < 200


def test_good_json_is_what_it_says():
    tree = {"a": [1, 2.5, -(10**18), "é😀", None, True], "b": {"c": {}}}
    assert parse_json(json.dumps(tree), "here") == tree
    deep = "[" * 64 + "]" * 64
    assert parse_json(deep, "here") == json.loads(deep)
    many = "[" + ",".join(["[]"] * 1000) + "]"
    assert parse_json(many, "here") == [[]] * 1000


def test_what_is_written_is_json_for_every_parser(tmp_path):
    text = json_text({"a": math.nan, "b": [math.inf, 1.5], "c": "é\udc80"})
    assert text == '{"a": null, "b": [null, 1.5], "c": "é\\udc80"}'
    text.encode()
    assert json.loads(text) == {"a": None, "b": [None, 1.5], "c": "é\udc80"}
    (tmp_path / "x.json").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"x\.json, line 1: expected UTF-8"):
        read_json(str(tmp_path / "x.json"))


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
        ({"names": ["a", 5]}, "here: names[1]: expected text, got 5"),
        ({"loss": "3"}, "here: loss: expected a number, got '3'"),
        ({"extra": 1}, "here: expected no key 'extra', got extra, names, parts"),
        ({"names": {str(n): n for n in range(1000)}}, "here: names: expected a list, got {'0': 0"),
    ],
)
def test_a_tree_of_another_form_is_a_sentence(change, message):
    with pytest.raises(DataError) as error:
        conform({"parts": {"x": {"count": 3}}, "names": []} | change, Whole, "here")
    assert str(error.value).startswith(message) and len(str(error.value)) < 200


def test_rows_of_data_are_read_leniently():
    tree = parse_data('{"text": "a", "n": NaN, "x": 1e999, "long": ' + "9" * 5000 + "}", "row 1")
    assert tree.pop("n") != tree.pop("x") == math.inf
    assert tree == {"text": "a", "long": "9" * 5000}
    assert parse_data('["\\ud800", 12]', "row 2") == ["\ufffd", 12]
    for text in ('{"text": ', "[" * 99 + "]" * 99, "\0"):
        with pytest.raises(DataError, match="row 3 is not valid JSON"):
            parse_data(text, "row 3")
