"""Small corpora and a vocabulary for tests of data preparation."""

import functools
import random
import tempfile
import types

from data_prep.corpus.vocabulary import train_vocabulary

WORDS = (  # noqa: SIM905
    "the of and to in is that it was for on are as with his they at be this from have or by one "
    "had not but what all were when we there can an your which their said if do will each about "
    "how up out them then she many some so these would other into has more her two like him see "
    "time could no make than first been its who now people my made over did down only way find "
    "use may water long little very after words called just where most know 1,000 Zürich naïve"
).split()


def random_documents(rng: random.Random, number: int, most_lines: int = 7) -> list[list[str]]:
    """Documents of lines of sentences of words."""
    return [
        [
            " ".join(_sentence(rng) for _ in range(rng.randint(1, 3)))
            for _ in range(rng.randint(1, most_lines))
        ]
        for _ in range(number)
    ]


def _sentence(rng: random.Random) -> str:
    words = [rng.choice(WORDS) for _ in range(rng.randint(1, 11))]
    return " ".join(words).capitalize() + rng.choice([".", ".", "?", "!", ", etc.", " ..."])


def as_text(documents: list[list[str]]) -> str:
    """Plain text with a blank line between documents."""
    return "\n\n".join("\n".join(lines) for lines in documents) + "\n"


@functools.cache
def vocabulary_dir(size: int = 211) -> str:
    """Directory of a vocabulary of `WORDS`, made once a run."""
    directory = tempfile.mkdtemp()
    with open(f"{directory}/text.txt", "w", encoding="utf-8") as file:
        file.write(as_text(random_documents(random.Random(0), 300)))
    train_vocabulary([f"{directory}/text.txt"], directory, size)
    return directory


def data_config(**changes) -> types.SimpleNamespace:
    """What `prepare` needs of an `XLNetConfig`, without loading TensorFlow."""
    data = dict(
        seq_len=29,
        reuse_len=11,
        num_lanes=6,
        bidirectional=True,
        heldout_fraction=0.0,
        lowercase=False,
        keep_accents=False,
        seed=3,
    )
    assert changes.keys() <= data.keys()
    return types.SimpleNamespace(data=types.SimpleNamespace(**(data | changes)))
