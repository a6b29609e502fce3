"""Answers are resumed by a call whose every argument, and every row as it is read, is the same."""

import collections
import json
import pathlib
import shutil
from collections.abc import Sequence

import pytest

from data_prep.tasks.text_rows import text_chunks
from official.xlnet.api.arguments import Model
from official.xlnet.data.examples import TextExample
from official.xlnet.data.text_files import Answers, batched
from official.xlnet.files.arguments import OutputFile, Path
from official.xlnet.files.json_files import json_text
from official.xlnet.files.public import public
from official.xlnet.jobs.identity import identity_of_call


@public()
def identity(
    model: Sequence[Model],
    input: Path | None,
    output: OutputFile | None = None,
    norms: Path | None = None,
    text: Sequence[str] = (),
    new: bool = False,
    count: int = 8,
    rate: float = 1.0,
    context: str | None = None,
):
    """A verb with any options; no list names them."""
    call = identity_of_call()
    return call and json_text(call)  # As it is compared.


@pytest.fixture
def model(world, tmp_path):
    return shutil.copytree(world.pretrained, tmp_path / "model")


def test_each_argument_and_whatever_is_read_counts(world, model, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    arguments = {"model": [str(model)], "input": str(tmp_path / "one"), "output": "scores.jsonl"}
    arguments["norms"] = str(tmp_path / "one")
    expected = identity(**arguments)
    others = {"model": [str(model)] * 2, "norms": str(tmp_path / "two"), "text": ["one"]}
    others |= {"new": True, "count": 7, "rate": 0.5, "context": "one"}
    for name, value in others.items():
        assert identity(**arguments | {name: value}) != expected, name
    # Defaults are arguments, too; rows are compared one by one.
    same = {"output": "other.jsonl", "input": None, "count": 8, "text": ()}
    assert all(identity(**arguments | {name: same[name]}) == expected for name in same)
    shutil.copytree(model, tmp_path / "moved" / "model")
    assert identity(**arguments | {"model": [tmp_path / "moved" / "model"]}) == expected
    config = (model / "config.yaml").read_text()
    (model / "config.yaml").write_text(config.replace("seed: ", "seed: 7"))
    assert "seed: " in config and identity(**arguments) != expected
    (model / "config.yaml").write_text(config)
    assert identity(**arguments) == expected
    with open(model / "spiece.model", "ab") as file:
        file.write(b"\xa2\x06\0")  # A field that SentencePiece does not know.
    assert identity(**arguments) != expected


def test_nothing_is_kept_for_streams_or_without_a_public_function(model):
    for stream in ("-", "/dev/stdout", None):
        assert identity([model], None, stream) is None
    assert identity_of_call() is None


ROWS = {
    "columns in another order": [{"id": "1", "text": "The cat"}, {"text": "of", "id": "2"}],
    "other types": [{"text": "The cat", "id": 1}, {"text": "of", "id": "2"}],
    "true for 1": [{"text": "The cat", "id": True}, {"text": "of", "id": "2"}],
    "examples": [TextExample("1", ("The cat",)), TextExample("2", ("of",))],
    "examples of one text": [TextExample("1", ("The cat of",)), TextExample("2", ())],
    "lines": ["The cat", "of"],
}


def answered(rows, output, killed_after=None):
    """(What was answered, number of resumed rows): the answer to a row is the row as text."""
    if killed_after is not None:
        rows = [*rows[:killed_after], None, *rows[killed_after:]]

    def answer(chunk):
        if chunk[0] is None:
            raise KeyboardInterrupt
        return [repr(row) for row in chunk]

    work = Answers(batched(rows, 1), answer, collections.Counter())
    with work.resuming(str(output), "the same call") as results:
        return [text for _, answers in results for text in answers], work.kept


@pytest.mark.parametrize("reading", ROWS)
def test_rows_that_are_read_in_another_way_are_answered_anew(reading, tmp_path):
    first = {"text": "The cat", "id": "1"}
    for rows, kept in ((ROWS[reading], 0), ([first, *ROWS[reading]], 1)):
        with pytest.raises(KeyboardInterrupt):
            answered([first, {"text": "of", "id": "2"}, first], tmp_path / "out", killed_after=2)
        assert answered(rows, tmp_path / "out") == ([*map(repr, rows)], kept)
        assert not [*tmp_path.iterdir()]


def test_a_text_of_json_is_not_its_object(tmp_path):
    readings = {}
    for ending in ("txt", "jsonl"):
        path = tmp_path / f"x.{ending}"
        path.write_text(json.dumps({"text": "one"}) + "\n")
        chunks, _ = text_chunks([], str(path), 2, written=())
        readings[ending] = [row for chunk in chunks for row in chunk]
    for first, then in (("txt", "jsonl"), ("jsonl", "txt")):
        with pytest.raises(KeyboardInterrupt):
            answered(readings[first], tmp_path / "out", killed_after=1)
        assert answered(readings[then], tmp_path / "out") == ([repr(readings[then][0])], 0)
        pathlib.Path(tmp_path / "out").unlink(missing_ok=True)
