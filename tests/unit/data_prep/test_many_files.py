"""The start of `prepare` with many files: linear, with a stated time and memory for each file."""

import sys
import time
import tracemalloc

import pytest

from data_prep.corpus.corpus import find_shards
from data_prep.corpus.versions import current_versions, versions_of
from data_prep.settings import ReadOptions

SIZES = (1, 1_250, 10_000)
MAX_MICROSECONDS, MAX_BYTES = 1_000, 4_000  # For each file, as docs/data_preparation.md says.


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{number of files: folder}."""
    folders = {}
    for num_files in SIZES:
        folders[num_files] = folder = tmp_path_factory.mktemp(str(num_files))
        for number in range(num_files):
            (folder / f"{number}.txt").write_bytes(b"a document\n\n%d\n" % number)
    return folders


def calls_of(function):
    """Number of Python's and C's calls in a function: its time, without chance."""
    num_calls = 0

    def count(frame, event, argument):
        nonlocal num_calls
        num_calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return num_calls


def start(folder):
    """What grows with the number of files before the first document, and at the end."""
    shards = find_shards([f"{folder}/*.txt"], ReadOptions())
    assert versions_of(shards) == current_versions([f"{folder}/*.txt"], shards)
    return shards


@pytest.mark.slow
def test_calls_grow_with_the_number_of_files(folders):
    one, few, many = (calls_of(lambda n=n: start(folders[n])) for n in SIZES)
    for_each_file = (few - one) / (SIZES[1] - 1)
    # Sorting adds some.
    assert (many - one) / (SIZES[2] - 1) <= 1.1 * for_each_file < 400


@pytest.mark.slow
def test_time_and_memory_of_each_file(folders):
    for num_files in SIZES[1:]:
        tracemalloc.start()
        shards = start(folders[num_files])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(shards) == num_files and most <= MAX_BYTES * num_files + 1_000_000
        seconds = []
        for _ in range(3):  # Another process may be running.
            begun = time.process_time()
            start(folders[num_files])
            seconds.append(time.process_time() - begun)
        assert min(seconds) <= 1e-6 * MAX_MICROSECONDS * num_files
