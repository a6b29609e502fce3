"""Workers whose parent is killed, Beam with one and two processes, Dask with a worker killed.

Commands that are killed and repeated: tests/property/test_killed_commands.py.
"""

import random
import signal
import sys
import threading
import time

import psutil
import pytest

from official.xlnet.errors import DataError
from tests.helpers.corpora import as_text, contents, prepare, random_documents
from tests.helpers.replicas.clusters import dask_cluster

NUM_FILES = 24
CHANGES = dict(seq_len=61, reuse_len=29, num_lanes=8, heldout_fraction=0.1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Pattern of the files of a corpus, and the bytes of the data set that they give."""
    directory = tmp_path_factory.mktemp("corpus")
    rng = random.Random(3)
    for i in range(NUM_FILES):
        text = as_text(random_documents(rng, 500))
        (directory / f"{i:02d}.txt").write_text(text, encoding="utf-8")
    pattern = str(directory / "*.txt")
    prepare(pattern, directory / "out", **CHANGES)
    return pattern, contents(directory / "out")


def finished_parts(output):
    """Notes of finished shards and lanes."""
    return [path for path in output.glob(".prepare/*.json") if path.name != "job.json"]


@pytest.mark.slow
def test_workers_end_with_their_parent(tmp_path, corpus):
    call = f"prepare({corpus[0]!r}, {str(tmp_path / 'out')!r}, num_workers=2)"
    program = f"from tests.helpers.corpora import prepare; {call}"
    with psutil.Popen([sys.executable, "-c", program]) as process:
        while len(workers := process.children()) < 2:
            time.sleep(0.05)
        process.kill()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        (["--runner=NoSuchRunner"], b"some text\n", "Beam cannot use runner=NoSuchRunner: Unexp"),
        (["--runner=DirectRunner"], b"fine\n\xff\n", "text.txt, line 2: expected UTF-8"),
        (["--runner=DirectRunner"], as_text(random_documents(random.Random(4), 50)).encode(), ""),
    ],
    ids=["unknown runner", "wrong text", "same bytes"],
)
def test_beam(tmp_path, options, text, message, monkeypatch):
    """Private names of Beam are used for processes of DirectRunner only."""
    monkeypatch.setitem(sys.modules, "data_prep.pipelines.beam_processes", None)
    (tmp_path / "text.txt").write_bytes(text)
    if message:
        with pytest.raises(DataError, match=message):
            prepare(tmp_path / "text.txt", tmp_path / "out", beam_options=options, **CHANGES)
        return
    prepare(tmp_path / "text.txt", tmp_path / "beam", beam_options=options, **CHANGES)
    prepare(tmp_path / "text.txt", tmp_path / "local", **CHANGES)
    assert contents(tmp_path / "beam") == contents(tmp_path / "local")


@pytest.mark.slow
def test_beam_with_two_processes_gives_the_same_bytes(tmp_path, corpus):
    options = ["--runner=DirectRunner", "--direct_running_mode=multi_processing"]
    options.append("--direct_num_workers=2")
    prepare(corpus[0], tmp_path / "out", beam_options=options, **CHANGES)
    assert contents(tmp_path / "out") == corpus[1]


@pytest.mark.nightly
def test_beam_with_a_process_killed_half_way_says_so_and_goes_on(tmp_path, corpus):
    options = ["--runner=DirectRunner", "--direct_running_mode=multi_processing"]
    options.append("--direct_num_workers=2")
    killed = []

    def kill_one_half_way():
        while len(finished_parts(tmp_path / "out")) < NUM_FILES // 2:
            time.sleep(0.01)
        for process in psutil.Process().children(recursive=True):
            if any("sdk_worker_main" in word for word in process.cmdline()):
                killed.append(process)
        killed[-1].kill()  # Not the shell that has started it.

    killer = threading.Thread(target=kill_one_half_way, daemon=True)
    killer.start()
    with pytest.raises(DataError, match=r"process of Beam was killed .*return code"):
        prepare(corpus[0], tmp_path / "out", beam_options=options, **CHANGES)
    killer.join()
    _, alive = psutil.wait_procs(killed, timeout=30)
    assert not alive
    prepare(corpus[0], tmp_path / "out", beam_options=options, **CHANGES)
    assert contents(tmp_path / "out") == corpus[1]


@pytest.mark.slow
def test_dask_with_a_worker_killed_half_way_gives_the_same_bytes(tmp_path, corpus):
    pytest.importorskip("distributed")
    pattern, expected = corpus
    with dask_cluster(tmp_path) as (address_file, workers):

        def kill_one_half_way():
            while len(finished_parts(tmp_path / "out")) < NUM_FILES // 2:
                time.sleep(0.01)
            workers[0].kill()

        killer = threading.Thread(target=kill_one_half_way, daemon=True)
        killer.start()
        options = [f"--dask_scheduler_file={address_file}", f"--dask_npartitions={NUM_FILES}"]
        options.append("--runner=DaskRunner")
        prepare(pattern, tmp_path / "out", beam_options=options, **CHANGES)
        killer.join()
        assert workers[0].wait() == -signal.SIGKILL
        assert workers[1].poll() is None
        assert contents(tmp_path / "out") == expected
