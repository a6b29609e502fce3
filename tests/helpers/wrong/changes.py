"""Hypothesis strategies that make good files, flags, arguments and requests wrong."""

import copy
import io
import json
import os
import pathlib
import struct
import zipfile

import numpy as np
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
    *("BF16", "F8_E4M3", "I32"),
]
# Signs of texts; floats that are NaN or infinite; opcodes of pickles.
BYTES = [
    *(b"\x00", b"\xff", b"\xed\xa0\x80", b"\r", b"\n\n", b"\t", b'"', b"{", b"\xef\xbb\xbf", b"\\"),
    *(b"\xff\xff\xff\xff", b"\x00\x00\x80\x7f", b"r\0\0\0\x7f", b"}b", b"J\xff\xff\xff\x7f", b"R"),
]
NUMBERS = [-500, -1, 0, 1, 5, 9, 210, 211, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1]
TEXTS = [
    *(b"", b"\0", b"a\0b", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"NaN", b"{}"),
    *("\u0301".encode(), "é".encode() * 999, b"<sep> <cls>", b" \t\n", b"a " * 4000, b"x" * 6000),
    *(b"\n\x05\n\x03\n\x01a", b"\x08\x96\x01" * 9, "\u202e\ufffd\U0010ffff".encode()),
]
DTYPES = ["int32", "int64", "float32", "bool", "uint8", "complex64", "object"]
# What is in the place of a file.
KINDS = {
    "a folder": pathlib.Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "nothing": str,
}


def header_size(data):
    return struct.unpack("<Q", data[:8])[0]


def with_header(tree, data):
    header = json.dumps(tree).encode()
    return struct.pack("<Q", len(header)) + header + data[8 + header_size(data) :]


# {ending: (the tree that is in a file, the file of another tree)}.
FORMS = {
    ".json": (json.loads, lambda tree, _: json.dumps(tree).encode()),
    ".jsonl": (
        lambda data: [json.loads(line) for line in data.splitlines()],
        lambda tree, _: "".join(f"{json.dumps(row)}\n" for row in tree).encode(),
    ),
    ".yaml": (yaml.safe_load, lambda tree, _: yaml.safe_dump(tree).encode("utf-8", "replace")),
    ".safetensors": (lambda data: json.loads(data[8 : 8 + header_size(data)]), with_header),
}


@st.composite
def changed_bytes(draw, data):
    """Bytes with a flip, a cut, a repetition, or others inserted or in the place of some."""
    start = draw(st.integers(0, max(0, len(data) - 1)))
    stop = start + draw(st.integers(0, 40))
    others = draw(st.sampled_from([*BYTES, *(token.encode() for token in TOKENS)]))
    flipped = bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in data[start : start + 1])
    aligned = start - start % 4
    changes = [
        data[:start] + flipped + data[start + 1 :],
        data[:start] + others + data[start:],
        data[:start] + others + data[stop:],
        data[:aligned] + others + data[aligned + len(others) :],
        data[:stop] + data[start:],
        data[:start],
    ]
    return draw(st.sampled_from(changes))


def containers(tree):
    """Each list and dictionary of a tree of JSON that is not empty."""
    if tree and isinstance(tree, dict | list):
        yield tree
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from containers(value)


@st.composite
def changed_tree(draw, tree, values=VALUES):
    """A tree of JSON with one value replaced, removed or added."""
    tree = copy.deepcopy(tree)
    node = draw(st.sampled_from(list(containers(tree))))
    key = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
    kind = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"]))
    if kind == "add" and isinstance(node, dict):
        key = draw(st.sampled_from(["extra", "1", "", "é"]))
    node[key] = draw(st.sampled_from(values))
    if kind == "remove":
        del node[key]
    return tree


@st.composite
def changed_archive(draw, data):
    """A file of PyTorch with one entry changed or removed, compressed, or declared otherwise."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    chosen = draw(st.sampled_from(sorted(entries)))
    content = draw(st.one_of(changed_bytes(entries[chosen]), st.just(entries.pop(chosen))))
    kept = {chosen: content} if draw(st.integers(0, 4)) else {}
    method = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    with zipfile.ZipFile(target := io.BytesIO(), "w", method) as archive:
        for name, content in (entries | kept).items():
            archive.writestr(name, content)
    found = bytearray(target.getvalue())
    # Nothing, or encrypted, of another method, of another size.
    place = found.rindex(b"PK\x01\x02") + draw(st.sampled_from([8, 10, 24, 27]))
    found[place] |= draw(st.sampled_from([0, 0, 0, 1, 99]))
    return bytes(found)


@st.composite
def changed_file(draw, name, data):
    """The bytes of a file made wrong, by its form half of the time."""
    ending = os.path.splitext(name)[1]
    if ending not in (*FORMS, ".bin") or draw(st.booleans()):
        return draw(changed_bytes(data))
    if ending == ".bin":
        return draw(changed_archive(data))
    parse, dump = FORMS[ending]
    return dump(draw(changed_tree(parse(data))), data)


@st.composite
def changed_arguments(draw, arguments):
    """The command line of a verb with a flag's value replaced, or a flag removed or repeated."""
    number = draw(st.integers(1, len(arguments) - 1))
    given, name = arguments[number], arguments[number].partition("=")[0]
    unknown = [[given, flag] for flag in ("--x", "--x=1", "--set", "--set=", "--help=1")]
    others = [[]] * 9 + [[given, given]] * 9 + unknown + [[f"{name}={token}"] for token in TOKENS]
    return [*arguments[:number], *draw(st.sampled_from(others)), *arguments[number + 1 :]]


@st.composite
def changed_inputs(draw, inputs):
    """Inputs {name: array} of a request with one changed, removed, added or renamed."""
    name = draw(st.sampled_from(sorted(inputs)))
    value, others = inputs[name], {key: x for key, x in inputs.items() if key != name}
    replaced = value.copy()
    place = draw(st.integers(0, value.size - 1))
    replaced.reshape(-1)[place] = draw(
        st.sampled_from(TEXTS if value.dtype == object else NUMBERS[:10])
    )
    dtype = draw(st.sampled_from(DTYPES))
    cast = np.full(value.shape, b"9", object) if dtype == "object" else np.zeros(value.shape, dtype)
    axis, times = draw(st.integers(0, value.ndim - 1)), draw(st.sampled_from([0, 2, 3, 40]))
    forms = [*[replaced] * 6, cast, value[None], value[..., None], value.reshape(-1), value[:0]]
    forms += [np.repeat(value, times, axis)]
    changes = [{**others, name: form} for form in forms] + [others, {**inputs, "extra": value}]
    changes += [{**others, other: value} for other in ("Text", "x" * 300, "text:0", "", "é")]
    changes += [{key: np.repeat(x, n, 0) for key, x in inputs.items()} for n in (0, 2, 7)]
    return draw(st.sampled_from(changes))
