"""Choice of A and B against the loops of the XLNet release, token by token."""

import numpy as np
import pytest
from google.protobuf.internal import encoder

from data_prep.records.records import varints
from data_prep.records.windows import choose_windows, window_draws


def by_hand(sentence_starts, text_len, start, draws, reuse_len, span_len):
    """A and B of one window, as (start, end) pairs, and the label."""
    begin = start + reuse_len
    limit = begin + span_len
    cuts = [c for c in sentence_starts if begin < c < limit]
    a_end = cuts[int(draws[0] * len(cuts))] if cuts else begin + 1 + int(draws[0] * (span_len - 1))
    if draws[1] < 0.5:
        return (begin, a_end), (a_end, limit), 1
    length = limit - a_end
    places = [p for p in range(text_len - length + 1) if p + length <= start or p >= limit] or list(
        range(text_len - length + 1)
    )
    b_begin = places[int(draws[2] * len(places))]
    b_end = b_begin + length
    inside = set(range(start, limit)) if b_end <= start or b_begin >= limit else set()
    while b_begin > 0 and b_begin not in sentence_starts and b_begin - 1 not in inside:
        b_begin -= 1
    while b_end < text_len and b_end not in sentence_starts and b_end not in inside:
        b_end += 1
    while a_end - begin + b_end - b_begin > span_len:
        if a_end - begin > b_end - b_begin:
            a_end -= 1
        else:
            b_end -= 1
    return (begin, a_end), (b_begin, b_end), 0


@pytest.mark.parametrize("seed", range(25))
def test_a_and_b_are_those_of_the_loops(seed):
    rng = np.random.default_rng(seed)
    reuse_len, span_len = int(rng.integers(1, 20)), int(rng.integers(2, 40))
    num_windows = int(rng.integers(1, 30))
    text_len = num_windows * reuse_len + span_len + int(rng.integers(0, 30))
    density = rng.choice([0.0, 0.02, 0.2, 1.0])
    starts = np.flatnonzero(rng.random(text_len + 1) < density)
    documents = np.flatnonzero(rng.random(text_len + 1) < 0.05)
    draws = rng.random((num_windows, 3))
    windows, context = choose_windows(starts, documents, text_len, 17, draws, reuse_len, span_len)
    for i in range(num_windows):
        start = i * reuse_len
        a, b, is_next = by_hand(list(starts), text_len, start, draws[i], reuse_len, span_len)
        assert windows.start[i] == start
        assert (start + reuse_len, start + reuse_len + windows.a_length[i]) == a
        assert (windows.b_start[i], windows.b_start[i] + windows.b_length[i]) == b
        assert windows.is_next[i] == is_next
    for position, found in zip(
        range(0, (num_windows + 1) * reuse_len, reuse_len),
        [*windows.context_length, context],
        strict=True,
    ):
        before = [p for p in documents if p <= position]
        assert found == (position - before[-1] if before else position + 17)


def test_varints_are_those_of_protobuf():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.integers(0, 1 << bits, 50) for bits in (7, 8, 14, 15, 21)])
    values = np.append(values, [0, 127, 128, 16383, 16384, (1 << 21) - 1]).astype(np.uint32)
    data, offset = varints(values)
    for i, value in enumerate(values.tolist()):
        assert data[offset[i] : offset[i + 1]] == encoder._VarintBytes(value)
    short, _ = varints(values[values < 1 << 15].astype(np.uint16))
    assert short == b"".join(encoder._VarintBytes(v) for v in values.tolist() if v < 1 << 15)


def test_draws_of_a_window_depend_on_the_window_alone():
    whole = window_draws(7, 0, 3, 0, 50)
    np.testing.assert_array_equal(whole[20:31], window_draws(7, 0, 3, 20, 11))
    others = [window_draws(*other, 0, 50) for other in ((8, 0, 3), (7, 1, 3), (7, 0, 4))]
    assert len(np.unique([whole, *others])) == 4 * whole.size
