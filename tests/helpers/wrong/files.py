"""Hypothesis strategies that make good files and flags wrong."""

import json

import yaml
from hypothesis import strategies as st

# Values that have broken one thing or another, as JSON and YAML spell them.
TOKENS = [
    *("null", "true", "-1", "0", "1", "2.5", "NaN", "-Infinity", ".nan", ".inf", "1e999", "1e38"),
    *("9" * 19, "9" * 5000, "2147483647", "1e-400", "0x_", "[]", "{}", "[[1]]", '"x"', '""'),
    *('"\\ud800"', '"²"', '"\\u0000"', "[" * 100, "[" * 5000, "&a [*a]", "!!python/object:x", "*x"),
    *("2020-13-45", "{1: 2}", "é", "\x00", "../../x", "%s", "$x_{", "a,b", "a=b", "<script>"),
]
VALUES = [
    *(None, True, False, -1, 0, 1, 2, 7, 2.5, -0.5, 1e38, 1e300, 10**19, 10**9, 2**31),
    *("", "x", "²", "\ud800", "-1", "NaN", [], {}, [1], ["a", None], {"a": 1}, [[[]]]),
]
BYTES = [
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\r",
    b"\n\n",
    b"\t",
    b'"',
    b"{",
    b"\xef\xbb\xbf",
    b"\\",
]


@st.composite
def changed_bytes(draw, data: bytes) -> bytes:
    """Bytes with a flip, a cut, an insertion, a repetition, or a token in the place of another."""
    start = draw(st.integers(0, len(data)))
    stop = min(len(data), start + draw(st.integers(0, 40)))
    kind = draw(st.sampled_from(["flip", "cut", "insert", "repeat", "token", "empty"]))
    if kind == "flip" and start < len(data):
        bit = 1 << draw(st.integers(0, 7))
        return data[:start] + bytes([data[start] ^ bit]) + data[start + 1 :]
    if kind == "cut":
        return data[:start]
    if kind == "insert":
        return data[:start] + draw(st.sampled_from(BYTES)) + data[start:]
    if kind == "repeat":
        return data[:stop] + data[start:]
    if kind == "token":
        return data[:start] + draw(st.sampled_from(TOKENS)).encode() + data[stop:]
    return b""


@st.composite
def changed_tree(draw, tree):
    """A tree of JSON with one value replaced, removed or added."""
    tree = json.loads(json.dumps(tree))
    node = tree
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return draw(st.sampled_from(VALUES))
        key = draw(st.sampled_from(keys))
        if not isinstance(node[key], dict | list) or draw(st.integers(0, 3)) == 0:
            break
        node = node[key]
    kind = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"]))
    if kind == "remove":
        del node[key]
    elif kind == "add" and isinstance(node, dict):
        node[draw(st.sampled_from(["extra", "1", "", "é"]))] = draw(st.sampled_from(VALUES))
    else:
        node[key] = draw(st.sampled_from(VALUES))
    return tree


@st.composite
def changed_file(draw, name: str, data: bytes) -> bytes:
    """The bytes of a file made wrong, by its form half of the time."""
    if name.endswith(".json") and draw(st.booleans()):
        return json.dumps(draw(changed_tree(json.loads(data)))).encode()
    if name.endswith(".jsonl") and draw(st.booleans()):
        lines = data.splitlines()
        number = draw(st.integers(0, len(lines) - 1))
        lines[number] = json.dumps(draw(changed_tree(json.loads(lines[number])))).encode()
        return b"\n".join(lines) + b"\n"
    if name.endswith(".yaml") and draw(st.booleans()):
        return yaml.safe_dump(draw(changed_tree(yaml.safe_load(data)))).encode("utf-8", "replace")
    return draw(changed_bytes(data))


@st.composite
def changed_arguments(draw, arguments: list[str]) -> list[str]:
    """The command line of a verb with a flag's value replaced, or a flag removed or repeated."""
    arguments = list(arguments)
    number = draw(st.integers(1, len(arguments) - 1))
    name, equals, _ = arguments[number].partition("=")
    kind = draw(st.sampled_from(["replace", "replace", "replace", "remove", "repeat", "unknown"]))
    if kind == "remove":
        del arguments[number]
    elif kind == "unknown":
        arguments.append("--" + draw(st.sampled_from(["x", "x=1", "set", "set=", "help=1"])))
    elif kind == "repeat" or not equals:
        arguments.append(arguments[number])
    else:
        arguments[number] = f"{name}={draw(st.sampled_from(TOKENS))}"
    return arguments
