"""What a run was made from is compared by content."""

import dataclasses
import random

import pytest

from official.xlnet.data.examples import TextExample, examples_checksum
from official.xlnet.errors import ConfigError
from official.xlnet.files.checksums import content_checksum
from official.xlnet.runtime.run_inputs import check_inputs


@pytest.mark.parametrize("size", [1, 17, (1 << 16) + 1, (1 << 24) + 5])
def test_a_changed_byte_changes_the_checksum(size, tmp_path):
    rng, path = random.Random(size), tmp_path / "file"
    content = rng.randbytes(size)
    places = [rng.randrange(size) for _ in range(5)]
    contents = [content, content[:-1], content + b"x"]
    for place in places:
        changed = content[place] ^ 1 << rng.randrange(8)
        contents.append(content[:place] + bytes([changed]) + content[place + 1 :])
    found = []
    for each in (content, *contents):
        path.write_bytes(each)
        found.append(content_checksum([str(path)]))
    assert found[0] == found[1] and len({*found}) == len({*contents})
    assert content_checksum([str(path), str(path)]) not in found


def test_examples_are_compared_by_what_they_say():
    examples = [TextExample(str(n), (f"text {n}", "\ud800"), "good") for n in range(5)]
    found = [examples_checksum(examples[::-1]), examples_checksum(examples[1:])]
    for change in ({}, {"texts": ("text",)}, {"label": "bad"}, {"label": None}, {"subtask": "x"}):
        for number in range(5):
            other = dataclasses.replace(examples[number], **change)
            found.append(examples_checksum([*examples[:number], other, *examples[number + 1 :]]))
    assert {*found[2:7]} == {examples_checksum(examples)}
    assert len({*found}) == len(found) - 4


def test_a_run_whose_record_has_an_earlier_checksum_of_its_weights_goes_on(tmp_path):
    path, folder = tmp_path / "weights", str(tmp_path / "run")
    path.write_bytes(b"12")
    now = {"initial weights": content_checksum([str(path)])}
    check_inputs(folder, {"initial weights": "5" * 64}, is_begun=False)
    check_inputs(folder, now, is_begun=True)
    check_inputs(folder, now, is_begun=False)
    check_inputs(folder, now, is_begun=True)
    path.write_bytes(b"13")
    with pytest.raises(ConfigError, match="initial weights that its run was made from"):
        check_inputs(folder, {"initial weights": content_checksum([str(path)])}, is_begun=True)
