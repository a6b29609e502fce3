"""`kill -9` at random moments, Beam with one and two processes, Dask with a worker killed."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
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

SCRIPT = """
import json, sys
from tests.helpers.corpora import prepare
pattern, output, changes = sys.argv[1:]
print(json.dumps(prepare(pattern, output, num_workers=2, **json.loads(changes))))
"""


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


def start(pattern, output):
    command = [sys.executable, "-c", SCRIPT, pattern, str(output), json.dumps(CHANGES)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, text=True)


def finished_parts(output):
    """Notes of finished shards and lanes."""
    return [path for path in output.glob(".prepare/*.json") if path.name != "job.json"]


@pytest.mark.slow
def test_killed_at_ten_random_moments(tmp_path, corpus):
    pattern, expected = corpus
    began = time.monotonic()
    assert start(pattern, tmp_path / "whole").wait() == 0
    seconds = time.monotonic() - began
    assert contents(tmp_path / "whole") == expected
    rng, num_kept = random.Random(0), 0
    for trial in range(10):
        output = tmp_path / str(trial)
        process = start(pattern, output)
        time.sleep(rng.uniform(0.3, 0.95) * seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        done = len(finished_parts(output))
        was_finished = (output / "manifest.json").exists()
        figures = json.loads(start(pattern, output).communicate()[0])
        assert contents(output) == expected
        if not was_finished:
            assert figures["resumed_shards"] + figures["resumed_lanes"] == done
            num_kept += done
    assert num_kept > 10


@pytest.mark.slow
def test_workers_end_with_their_parent(tmp_path, corpus):
    process = start(corpus[0], tmp_path / "out")
    parent = psutil.Process(process.pid)
    while len(parent.children()) < 2:
        time.sleep(0.05)
    workers = parent.children()
    parent.kill()
    process.communicate()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        (["--runner=NoSuchRunner"], b"some text\n", "Beam cannot use --runner=NoSuchRunner: Unexp"),
        (["--runner=DirectRunner"], b"fine\n\xff\n", "text.txt, line 2: expected UTF-8"),
        (["--runner=DirectRunner"], as_text(random_documents(random.Random(4), 50)).encode(), ""),
    ],
    ids=["unknown runner", "wrong text", "same bytes"],
)
def test_beam(tmp_path, options, text, message):
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


def test_spawned_workers_do_not_load_tensorflow():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert not pool.apply(_loads_tensorflow)


def _loads_tensorflow():
    import data_prep.pipelines.prepare  # noqa: F401

    return "tensorflow" in sys.modules
