"""What every verb promises of wrong input: a documented status, few words, nothing else changed."""

import contextlib
import dataclasses
import hashlib
import json
import re
import resource

from official.xlnet import cli

STATUSES = {0, 2, 70, 75}
MOST_LINES = 3  # On standard error, of a run that fails.


@dataclasses.dataclass
class Outcome:
    """How a run of the command line ended."""

    status: int
    out: str
    err: str

    @property
    def result(self):
        """The JSON object of the last line."""
        return strict_json(self.out.splitlines()[-1])


def run(capfd, *arguments) -> Outcome:
    """Runs a verb in this process; what it prints is captured, TensorFlow's words too."""
    capfd.readouterr()
    status = cli.main([str(argument) for argument in arguments])
    captured = capfd.readouterr()
    return Outcome(status, captured.out, captured.err)


_SAID_BEFORE = re.compile(
    r": texts are read from |^training on [\d,]+ characters: |^these texts are short for the model"
    r"|^(texts|rows): [\d,/]+(, windows: [\d,]+)?.*: \d+ s$|^standard input: each line "
)


def refused(outcome: Outcome) -> str:
    """The sentence of a run that ended with status 2.

    All of standard error is that sentence, after what was said of a file that could be read, and
    the progress of a vocabulary.
    """
    assert outcome.status == 2, outcome
    assert "Traceback" not in outcome.err
    (sentence,) = (x for x in outcome.err.splitlines() if not _SAID_BEFORE.search(x))
    assert len(sentence) < 1200
    return sentence


@contextlib.contextmanager
def full_disk(size):
    """No file of the process may grow beyond a number of bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def strict_json(text):
    """The tree of a text that holds no NaN."""

    def no_number(word):
        raise AssertionError(f"{word} in {text}")

    return json.loads(text, parse_constant=no_number)


def digest(folder) -> str:
    """Checksum of the names and contents of all files in a folder."""
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(folder)}\0".encode("utf-8", "surrogateescape"))
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
