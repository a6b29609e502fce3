"""The verbs as filters: an answer to each line of standard input before the next one is sent."""
# ruff: noqa: SIM115  Pipes are closed by the tests.

import contextlib
import json
import os
import select
import threading

import numpy as np
import pytest

from official.xlnet import cli
from tests.helpers.wrong_input import refused, run

SECONDS = 40  # A test that waits for longer has failed.
LINES = ["The cat sat.", "", "And then ____ more"]
# {verb: (its flags, the value to compare)}
VERBS = {
    "score": ([], "log_likelihood"),
    "embed": ([], "vector"),
    "generate": (["--num_tokens=2", "--temperature=1", "--seed=3"], "output"),
    "predict": ([], "probabilities"),
}


@pytest.fixture
def streams():
    """Standard input is a pipe; its other end, and both ends of one for standard output."""
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    kept = os.dup(0)
    os.dup2(read_in, 0)
    os.close(read_in)
    to, of = open(write_in, "wb", buffering=0), open(read_out, "rb", buffering=0)
    output = open(write_out, "w", encoding="utf-8")
    yield to, of, output
    os.dup2(kept, 0)
    os.close(kept)
    for end in (to, of, output):
        with contextlib.suppress(OSError):
            end.close()


def answer_of(pipe):
    assert select.select([pipe], [], [], SECONDS)[0]
    return json.loads(pipe.readline())


def flags_of(verb, world):
    model = world.task("classification").model if verb == "predict" else world.pretrained
    return [verb, f"--model={model}", *VERBS[verb][0]]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "verb",
    [
        *("score", "predict"),
        *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("embed", "generate")),
    ],
)
def test_each_line_is_answered_before_the_next_one_is_sent(verb, world, streams, tmp_path, capsys):
    flags, (to, of, output) = flags_of(verb, world), streams
    rows = [{"text": line, "id": f"n{n}", "more": [1]} for n, line in enumerate(LINES)]
    answers = []

    def ask():
        with to:
            for row in rows:
                to.write(json.dumps(row).encode() + b"\n")
                answers.append(answer_of(of))

    asker = threading.Thread(target=ask)
    asker.start()
    with contextlib.redirect_stdout(output):
        assert cli.main([*flags, "--input=-", "--output=-"]) == 0
    asker.join(SECONDS)
    output.close()
    assert len(answers) == 3 and not of.read()  # The results are not among the answers.
    results = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert results.get("texts", results.get("rows", 3)) == 3
    source, written = tmp_path / "lines.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert cli.main([*flags, f"--input={source}", f"--output={written}"]) == 0
    expected = [json.loads(line) for line in written.read_text().splitlines()]
    assert [row["id"] for row in expected] == ["n0", "n1", "n2"]
    assert verb == "predict" or all(row["more"] == [1] for row in answers)
    for found, row in zip(answers, expected, strict=True):
        found, row = found[VERBS[verb][1]], row[VERBS[verb][1]]
        if verb == "predict":
            found, row = [*found.values()], [*row.values()]
        assert found == row if verb == "generate" else np.allclose(found, row, atol=1e-5)


# Lines that cannot be answered, and what their errors name.
WRONG = {
    b"{": "line 2 is not valid JSON",
    b"\xff\xfe": "line 3: expected UTF-8",
    b"[1]": "line 4: expected an object",
    b'{"id": 7}': "row 5",
    b'{"id": 8, "text": 5.0e400}': "row 6",
    b"": "line 7 is not valid JSON",
}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "verb",
    [
        *("score", "predict"),
        *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("embed", "generate")),
    ],
)
def test_a_wrong_line_gets_an_error_and_the_next_ones_are_answered(verb, world, streams, capsys):
    flags, (to, of, output) = flags_of(verb, world), streams
    good = b'{"text": "The cat sat.", "id": "a"}'
    answers = []

    def ask():
        with to:
            for line in (good, *WRONG, good):
                to.write(line + b"\n")
                answers.append(answer_of(of))

    asker = threading.Thread(target=ask)
    asker.start()
    with contextlib.redirect_stdout(output):
        assert cli.main([*flags, "--input=-", "--output=-"]) == 0
    asker.join(SECONDS)
    name, (first, *wrong, last) = VERBS[verb][1], answers
    assert first["id"] == last["id"] == "a" and "error" not in {*first, *last}
    assert verb == "generate" or str(first[name]) == str(last[name])
    for row, message in zip(wrong, WRONG.values(), strict=True):
        assert f"standard input, {message}" in row["error"] and name not in row
    assert [row.get("id") for row in wrong[3:5]] == [7, 8]  # What could be read comes back.
    results = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert results["errors"] == len(WRONG)
    assert results.get("texts", results.get("rows", 2)) == 2


@pytest.mark.usefixtures("eager")
def test_a_reader_that_has_enough_ends_it(world, streams, capsys):
    """As in `cat lines | xlnet embed --input=- --output=- | head -1`."""
    flags, (to, of, output) = flags_of("embed", world), streams
    to.write(b"The cat sat.\n")

    def read():
        with to:
            answer_of(of)
            of.close()
            to.write(b"More.\n" * 9)

    reader = threading.Thread(target=read)
    reader.start()
    # With which a program ends without a word.
    with contextlib.redirect_stdout(output), pytest.raises(BrokenPipeError):
        cli.main([*flags, "--input=-", "--output=-"])
    reader.join(SECONDS)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verb", "more", "message"),
    [
        ("embed", ["--output=a.npy"], "--output: expected - or a file of JSON lines"),
        ("predict", ["--output=-", "--shard=1/2"], "--shard: expected a file to predict a part"),
    ],
)
def test_what_needs_the_whole_input_is_refused(verb, more, message, world, capfd):
    assert message in refused(run(capfd, *flags_of(verb, world), "--input=-", *more))
