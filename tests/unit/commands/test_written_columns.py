"""Columns of the input come back unchanged, or a verb refuses them before it begins."""

import pytest

from tests.helpers.oracles.written_columns import check_rows_come_back

ROWS = [{"text": "The cat sat."}, {"text": "And then ____"}]


@pytest.mark.parametrize(
    ("verb", "flags", "dropped"),
    [
        ("generate", ["--num_tokens=2"], ()),
        ("embed", [], ()),
        ("score", ["--order=random", "--num_orders=2"], ()),
        ("embed", ["--pooling=words"], ("text",)),
    ],
)
def test_rows_come_back_whole(verb, flags, dropped, capfd, world, tmp_path):
    flags = [f"--model={world.pretrained}", *flags]
    written = check_rows_come_back(verb, capfd, tmp_path, *flags, rows=ROWS, dropped=dropped)
    assert written
