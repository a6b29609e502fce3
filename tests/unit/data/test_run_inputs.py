"""What a run was made from is compared by content."""

import dataclasses
import random

import pytest

from official.xlnet.data.examples import TextExample, examples_checksum
from official.xlnet.files.checksums import content_checksum


@pytest.mark.parametrize("size", [0, 1, 17, 1 << 16, (1 << 16) + 1, 3 << 16, (1 << 24) + 5])
def test_a_changed_byte_changes_the_checksum(size, tmp_path):
    """Of large files, one in the first or the last block does; their size always does."""
    rng = random.Random(size)
    content = rng.randbytes(size)
    whole = size <= 1 << 24
    path = tmp_path / "file"

    def checksum_of(content):
        path.write_bytes(content)
        return content_checksum([str(path)])

    expected = checksum_of(content)
    assert checksum_of(content) == expected != checksum_of(content + b"x")
    for _ in range(5 if size else 0):
        place = rng.randrange(size) if whole else rng.choice([3, size - 3])
        changed = bytearray(content)
        changed[place] ^= 1 << rng.randrange(8)
        assert checksum_of(bytes(changed)) != expected
    assert content_checksum([str(path), str(path)]) != content_checksum([str(path)])


def test_examples_are_compared_by_what_they_say():
    examples = [TextExample(str(n), (f"text {n}", "\ud800"), "good") for n in range(5)]
    expected = examples_checksum(examples)
    assert examples_checksum([dataclasses.replace(example) for example in examples]) == expected
    for change in ({"texts": ("text",)}, {"label": "bad"}, {"label": None}, {"subtask": "x"}):
        for number in range(5):
            other = list(examples)
            other[number] = dataclasses.replace(other[number], **change)
            assert examples_checksum(other) != expected
    assert examples_checksum(examples[::-1]) != expected != examples_checksum(examples[1:])
