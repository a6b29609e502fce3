"""Hypothesis strategies that make good files and flags wrong."""

import io
import json
import os
import pathlib
import struct
import zipfile

import tensorflow as tf
import yaml
from hypothesis import strategies as st

# Values that have broken one thing or another, as JSON and YAML spell them.
TOKENS = [
    *("null", "true", "-1", "0", "1", "2.5", "NaN", "-Infinity", ".nan", ".inf", "1e999", "1e38"),
    *("9" * 19, "9" * 5000, "2147483647", "1e-400", "0x_", "[]", "{}", "[[1]]", '"x"', '""'),
    *('"\\ud800"', '"²"', '"\\u0000"', "[" * 100, "[" * 5000, "&a [*a]", "!!python/object:x", "*x"),
    *("\x1b[2J", "\u202e\u2066", "\x9b31m", "</script><script>"),
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
    b"\xff\xff\xff\xff",  # Of floats, NaN; of integers, -1.
    b"\x00\x00\x80\x7f",  # Infinity.
]
NUMBERS = [-500, -1, 0, 1, 5, 9, 2**31, 2**62, 2**63 - 1]
# What is in the place of a file; a program that opens it without asking hangs, or fills the memory.
KINDS = {
    "a pipe": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a terminal": lambda path: path.symlink_to("/dev/tty"),
    "a folder": lambda path: path.mkdir(),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "nothing": lambda path: None,
}


def changed_kind(path: pathlib.Path, kind: str) -> None:
    """Puts something of another kind in the place of a file."""
    path.unlink()
    KINDS[kind](path)


@st.composite
def changed_bytes(draw, data: bytes) -> bytes:
    """Bytes with a flip, a cut, an insertion, a repetition, or a token in the place of another."""
    start = draw(st.integers(0, len(data)))
    stop = min(len(data), start + draw(st.integers(0, 40)))
    kind = draw(st.sampled_from(["flip", "cut", "insert", "replace", "repeat", "token", "empty"]))
    if kind == "flip" and start < len(data):
        bit = 1 << draw(st.integers(0, 7))
        return data[:start] + bytes([data[start] ^ bit]) + data[start + 1 :]
    if kind == "cut":
        return data[:start]
    if kind == "insert":
        return data[:start] + draw(st.sampled_from(BYTES)) + data[start:]
    if kind == "replace":
        start -= start % 4
        return data[:start] + (value := draw(st.sampled_from(BYTES))) + data[start + len(value) :]
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
    if name.endswith(".safetensors") and draw(st.booleans()):
        return draw(changed_safetensors(data))
    if name.endswith(".bin"):
        return draw(changed_archive(data))
    return draw(changed_bytes(data))


@st.composite
def changed_safetensors(draw, data: bytes) -> bytes:
    """Weights whose header says something else: types, shapes, places, names."""
    (length,) = struct.unpack("<Q", data[:8])
    header = draw(changed_tree(json.loads(data[8 : 8 + length])))
    if isinstance(header, dict):
        entry = header.get(draw(st.sampled_from(sorted(header) or [""])))
        if isinstance(entry, dict) and draw(st.booleans()):
            entry["dtype"] = draw(st.sampled_from(["F8_E4M3", "F4", "I32", "U8", "BF16", "F64"]))
    header = json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


@st.composite
def changed_archive(draw, data: bytes) -> bytes:
    """A file of PyTorch with one entry changed, compressed, or declared otherwise."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    chosen = draw(st.sampled_from(sorted(entries)))
    kind = draw(st.sampled_from(["content", "content", "remove", "compress", "flag", "raw"]))
    if kind == "content":
        pickled = draw(st.sampled_from([b"2\x86" * 60, b"}b", b"J\xff\xff\xff\x7f", b"\x8f", b"R"]))
        place = draw(st.integers(0, len(entries[chosen])))
        wrong = entries[chosen][:place] + pickled + entries[chosen][place:]
        entries[chosen] = draw(st.one_of(changed_bytes(entries[chosen]), st.just(wrong)))
    elif kind == "remove":
        del entries[chosen]
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", allowZip64=False) as archive:
        for name, content in entries.items():
            how = zipfile.ZIP_DEFLATED if (kind, name) == ("compress", chosen) else 0
            archive.writestr(name, content, how)
    found = bytearray(target.getvalue())
    if kind == "flag":  # Encrypted, of another method, of another size.
        place = found.rindex(b"PK\x01\x02") + draw(st.sampled_from([8, 10, 24, 27]))
        found[place] |= draw(st.sampled_from([1, 99]))
    return draw(changed_bytes(bytes(found))) if kind == "raw" else bytes(found)


@st.composite
def changed_records(
    draw, records: list[dict[str, list[int]]]
) -> list[dict[str, list[int]] | bytes]:
    """The windows of a lane with a value out of its range, a list of another length, or fewer."""
    records = [dict(record) for record in records]
    number = draw(st.integers(0, len(records) - 1))
    kind = draw(st.sampled_from(["value", "value", "value", "length", "remove", "none", "bytes"]))
    name = draw(st.sampled_from(sorted(records[number])))
    if kind == "value":
        values = list(records[number][name])
        values[draw(st.integers(0, len(values) - 1))] = draw(st.sampled_from(NUMBERS))
        records[number][name] = values
    elif kind == "length":
        records[number][name] = (records[number][name] * 2)[: draw(st.sampled_from([0, 2, 99]))]
    elif kind == "remove" and draw(st.booleans()):
        del records[number][name]
    elif kind == "remove":
        del records[number]
    elif kind == "none":
        return []
    elif kind == "bytes":
        records[number] = draw(st.sampled_from([b"", b"\xff" * 9, b"{}"]))
    return records


def write_records(path: pathlib.Path, records: list, compression: str) -> None:
    """Writes windows, {name: values} or bytes, as a lane."""
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            if isinstance(record, dict):
                example = tf.train.Example()
                for name, values in record.items():
                    example.features.feature[name].int64_list.value.extend(values)
                record = example.SerializeToString()
            writer.write(record)


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
