"""docs/architecture.md shows the rooms in the order that test_architecture.py holds them to."""

import re

from tests.helpers.documents import ROOT, blocks
from tests.unit.test_architecture import DATA_PREP_ORDER, DATA_PREP_USES, MOST_FILES, ORDER, TASKS

PAGE = ROOT / "docs/architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_picture_shows_every_room_on_its_floor():
    picture, _ = blocks(PAGE)
    floors = [line.split("│")[1].strip() for line in picture.code.splitlines() if "│" in line]
    shown = [re.split(r", ", floor) for floor in floors]
    names = [[room.removeprefix("official.xlnet.") for room in line] for line in ORDER]
    order = [["tasks.<name>"] if f"tasks.{TASKS[0]}" in line else line for line in names]
    assert shown[::-1] == order


def test_the_rooms_of_data_prep_are_in_their_order():
    _, picture = blocks(PAGE)
    shown = [line.split(", ") for line in picture.code.splitlines()]
    order = [[room.removeprefix("data_prep.") for room in line] for line in DATA_PREP_ORDER]
    assert shown[::-1] == order
    (sentence,) = re.findall(r"`data_prep` uses (.*?) only", TEXT, re.S)
    assert set(re.findall(r"`(\w+)`", sentence)) == DATA_PREP_USES
    assert f"at most {MOST_FILES} files" in TEXT


def test_the_files_that_it_names_exist():
    named = set(re.findall(r"`([\w/]+\.py)`", TEXT)) | set(
        re.findall(r"`([\w/]+)/<\w+>\.py`", TEXT)
    )
    assert len(named) > 20
    missing = [
        name
        for name in sorted(named)
        if not ((ROOT / name).exists() or (ROOT / "official/xlnet" / name).exists())
    ]
    assert missing == []


def test_the_way_of_a_window_has_ten_steps():
    (way,) = re.findall(r"## From a record to the loss\n(.*?)\n## ", TEXT, re.S)
    assert re.findall(r"^(\d+)\. `", way, re.M) == [str(n) for n in range(1, 11)]
