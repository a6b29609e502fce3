"""Memory and CPU time of `prepare` by documents of one file and by the length of a line.

Measured at two sizes a factor of eight apart, each in a new process.
"""

import resource
import sys

import pytest

from benchmarks.data.prepare_memory import peak_megabytes

pytestmark = pytest.mark.nightly

BYTES_OF_A_DOCUMENT = 100  # docs/data_preparation.md says some 60.
MEGABYTES_OF_ANY_LINE = 200  # Beyond those of a small file: parts of 32 MB, some copies of each.


def prepare(world, source, output):
    """Runs `prepare` of one file; returns (peak in megabytes, CPU-seconds)."""
    command = [sys.executable, "-m", "official.xlnet.cli", "prepare", f"--input={source}"]
    command += [f"--vocab={world.vocab}", f"--config={world.config}", f"--output={output}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = peak_megabytes([*command, "--num_workers=1"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return peak, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_file_of_a_million_documents(world, tmp_path):
    few, many = 125_000, 1_000_000
    measured = {}
    for num_documents in (10, few, many):
        source = tmp_path / "text.txt"
        with source.open("w") as file:
            for i in range(num_documents):
                file.write(f"the water was made {i % 97}\n\n")
        measured[num_documents] = prepare(world, source, tmp_path / str(num_documents))
    (_, start), (peak_few, seconds_few), (peak_many, seconds_many) = measured.values()
    assert peak_many - peak_few <= BYTES_OF_A_DOCUMENT * (many - few) / 1e6
    assert seconds_many - start <= 1.5 * (many / few) * (seconds_few - start)


def test_a_line_of_200_megabytes(world, tmp_path):
    measured = {}
    for num_bytes in (1 << 10, 25_000_000, 200_000_000):
        source = tmp_path / "text.txt"
        with source.open("w") as file:
            for _ in range(max(1, num_bytes // 24_000)):
                file.write("the water was made first " * 960)
        measured[num_bytes] = prepare(world, source, tmp_path / str(num_bytes))
    (least, start), (_, seconds_few), (most, seconds_many) = measured.values()
    assert most - least <= MEGABYTES_OF_ANY_LINE
    # Where documents of 32 MB begin is searched for at each border of parts.
    assert seconds_many - start <= 1.5 * 8 * (seconds_few - start)
