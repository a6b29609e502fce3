"""Requests of `vocab` and `prepare` for ten thousand files, as docs/buckets.md promises them."""

import math

import pytest

from tests.helpers.wrong_input import run
from tests.projects.buckets.counted_store import BUCKET, SCHEME, counted_store

pytestmark = pytest.mark.nightly

NUM_FILES = 10_000
NUM_LANES = 6  # Of the data set of `world`.


@pytest.fixture
def store():
    with counted_store() as store:
        for number in range(NUM_FILES):
            text = b"the water was made %d\n\nthe first people\n\n" % (number % 97)
            store().pipe_file(f"{BUCKET}/books/{number:05d}.txt", text)
        store.requests.clear()
        yield store


def requests_for(store, folder):
    """{kind: number} of the requests in a folder of the bucket."""
    return {kind: n for (kind, place), n in store.requests.items() if place == folder}


def check_inputs(requests, num_listings):
    """Two requests for each file: for its first bytes, and in pass 1."""
    assert requests.pop("GET") == 2 * NUM_FILES
    assert sum(requests.values()) <= 6 + num_listings * math.ceil(NUM_FILES / 1_000)


def test_vocab(store, tmp_path, capfd):
    arguments = [f"--input={SCHEME}://{BUCKET}/books/*.txt", f"--output={tmp_path}/vocab"]
    assert run(capfd, "vocab", *arguments, "--size=50").status == 0
    check_inputs(requests_for(store, "books"), num_listings=1)


def test_prepare(store, world, capfd):
    arguments = [f"--input={SCHEME}://{BUCKET}/books/*.txt", f"--output={SCHEME}://{BUCKET}/data"]
    arguments += [f"--vocab={world.vocab}", f"--config={world.config}", "--num_workers=1"]
    assert run(capfd, "prepare", *arguments).status == 0
    check_inputs(requests_for(store, "books"), num_listings=2)
    files = requests_for(store, "data")
    assert files["PUT"] <= 4.1 * NUM_FILES  # Three token files and a table of each file.
    assert files["GET"] + files["HEAD"] <= 5 * NUM_LANES * NUM_FILES
