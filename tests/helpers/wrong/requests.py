"""Hypothesis strategies that make good requests to an exported model wrong."""

import numpy as np
from hypothesis import strategies as st

TEXTS = [
    *(
        b"",
        b"\0",
        b"a\0b",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xef\xbb\xbfa",
    ),
    *("\u0301".encode(), "é".encode() * 999, b"<sep> <cls>", b" \t\n", b"a " * 4000, b"x" * 6000),
    *(
        b"\n\x05\n\x03\n\x01a",
        b"\x08\x96\x01" * 9,
        b"{}",
        b"NaN",
        "\u202e\ufffd\U0010ffff".encode(),
    ),
]
NUMBERS = [-1, 0, 1, 4, 5, 9, 210, 211, 2**31 - 1, -(2**31)]
DTYPES = ["int32", "int64", "float32", "bool", "uint8", "complex64", "object"]


def _replaced(draw, value):
    """One element is another text or number."""
    value = value.copy()
    if not value.size:
        return value
    place = draw(st.integers(0, value.size - 1))
    value.reshape(-1)[place] = draw(st.sampled_from(TEXTS if value.dtype == object else NUMBERS))
    return value


def _of_another_dtype(draw, value):
    dtype = draw(st.sampled_from(DTYPES))
    if value.dtype == object:
        return np.zeros(value.shape, dtype) if dtype != "object" else value
    return np.full(value.shape, b"9", object) if dtype == "object" else value.astype(dtype)


def _of_another_rank(draw, value):
    return draw(st.sampled_from([value[None], value[..., None], value.reshape(-1), value[:1][0:0]]))


def _of_another_size(draw, value):
    axis = draw(st.integers(0, value.ndim - 1))
    times = draw(st.sampled_from([0, 0, 2, 3, 40]))
    return np.concatenate([np.delete(value, slice(None), axis)] + [value] * times, axis)


# What happens to one input of a request.
VALUE_CHANGES = [
    *(_replaced, _replaced, _replaced, _of_another_dtype, _of_another_rank, _of_another_size)
]


@st.composite
def changed_inputs(draw, inputs):
    """Inputs {name: array} of a request with one changed, removed or added; or all longer."""
    inputs = dict(inputs)
    name = draw(st.sampled_from(sorted(inputs)))
    kind = draw(st.sampled_from(["change"] * 6 + ["remove", "add", "all", "rename"]))
    if kind == "remove":
        del inputs[name]
    elif kind == "add":
        inputs[draw(st.sampled_from(["extra", "", "é", "text", "token_ids"]))] = inputs[name]
    elif kind == "rename":
        inputs[draw(st.sampled_from(["Text", "x" * 300, "text:0"]))] = inputs.pop(name)
    elif kind == "all":  # More rows, or none, everywhere: a good request.
        times = draw(st.sampled_from([0, 2, 7]))
        inputs = (
            {key: value[:0] for key, value in inputs.items()}
            if not times
            else {key: np.concatenate([value] * times) for key, value in inputs.items()}
        )
    else:
        change = draw(st.sampled_from(VALUE_CHANGES))
        inputs[name] = change(draw, inputs[name])
    return inputs


@st.composite
def changed_tensor(draw, proto):
    """A TensorProto whose dtype or shape does not fit its content, or that is cut."""
    kind = draw(st.sampled_from(["none", "none", "dtype", "size", "more", "cut", "unknown"]))
    if kind == "dtype":
        proto.dtype = draw(st.sampled_from([0, 1, 3, 7, 9, 10, 20, 21, 23, 101, 999]))
    elif kind == "size" and proto.tensor_shape.dim:
        dim = draw(st.sampled_from(list(proto.tensor_shape.dim)))
        dim.size = draw(st.sampled_from([-1, -7, 0, 2, 1000, 2**50, 2**62]))
    elif kind == "more":
        proto.tensor_shape.dim.add().size = draw(st.sampled_from([-1, 0, 1, 2, 2**40]))
    elif kind == "cut":
        proto.tensor_content = proto.tensor_content[:-1]
        del proto.string_val[1:]
    elif kind == "unknown":
        proto.tensor_shape.unknown_rank = True
    return proto
