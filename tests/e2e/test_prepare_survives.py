"""`kill -9` at random moments, Beam with one and two processes, Dask with a worker killed."""

import glob
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

from data_prep.pipelines.prepare import prepare
from official.xlnet.errors import DataError
from tests.helpers.corpora import as_text, data_config, random_documents, vocabulary_dir
from tests.helpers.replicas.clusters import dask_cluster

NUM_FILES = 24
CHANGES = dict(seq_len=61, reuse_len=29, num_lanes=8, heldout_fraction=0.1)

SCRIPT = """
import json, sys
from data_prep.pipelines.prepare import prepare
from tests.helpers.corpora import data_config
vocab, pattern, output, changes = sys.argv[1:]
figures = prepare([pattern], vocab, data_config(**json.loads(changes)), output, num_workers=2)
print(json.dumps(figures))
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
    prepare(
        [pattern], vocabulary_dir(), data_config(**CHANGES), str(directory / "out"), num_workers=1
    )
    return pattern, contents(directory / "out")


def contents(directory):
    return {
        os.path.basename(path): open(path, "rb").read()
        for path in sorted(glob.glob(f"{directory}/*"))
    }


def start(pattern, output):

    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, vocabulary_dir(), pattern, str(output), json.dumps(CHANGES)],
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def finished_parts(output):
    """Notes of finished shards and lanes, with the time when their files were written."""
    notes = glob.glob(f"{output}/.prepare/*.json")
    return {path: os.stat(path).st_mtime_ns for path in notes if not path.endswith("/job.json")}


@pytest.mark.slow
def test_killed_at_ten_random_moments(tmp_path, corpus):

    pattern, expected = corpus
    began = time.monotonic()
    assert start(pattern, tmp_path / "whole").wait() == 0
    seconds = time.monotonic() - began
    assert contents(tmp_path / "whole") == expected
    rng = random.Random(0)
    num_kept = 0
    for trial in range(10):
        output = tmp_path / str(trial)
        process = start(pattern, output)
        time.sleep(rng.uniform(0.3, 0.95) * seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        done = finished_parts(output)
        was_finished = (output / "manifest.json").exists()
        process = start(pattern, output)
        figures = json.loads(process.communicate()[0])
        assert process.returncode == 0
        assert contents(output) == expected
        if not was_finished:
            assert figures["resumed_shards"] + figures["resumed_lanes"] == len(done)
            num_kept += len(done)
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


def run_beam(pattern, output, *options):
    prepare([pattern], vocabulary_dir(), data_config(**CHANGES), str(output), beam_options=options)


def test_beam_gives_the_same_bytes(tmp_path):
    text = as_text(random_documents(random.Random(4), 50))
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    pattern = str(tmp_path / "text.txt")
    run_beam(pattern, tmp_path / "beam", "--runner=DirectRunner")
    prepare(
        [pattern], vocabulary_dir(), data_config(**CHANGES), str(tmp_path / "local"), num_workers=1
    )
    assert contents(tmp_path / "beam") == contents(tmp_path / "local")


def test_beam_reports_an_unknown_runner(tmp_path):
    (tmp_path / "text.txt").write_text("some text\n")
    with pytest.raises(DataError, match="Beam cannot use --runner=NoSuchRunner: Unexpected"):
        run_beam(str(tmp_path / "text.txt"), tmp_path / "out", "--runner=NoSuchRunner")


def test_beam_reports_wrong_text(tmp_path):
    (tmp_path / "text.txt").write_bytes(b"fine\n\xff\n")
    with pytest.raises(DataError, match=r"text.txt, line 2: expected UTF-8"):
        run_beam(str(tmp_path / "text.txt"), tmp_path / "out", "--runner=DirectRunner")


@pytest.mark.slow
def test_beam_with_two_processes_gives_the_same_bytes(tmp_path, corpus):
    pattern, expected = corpus
    run_beam(
        pattern,
        tmp_path / "out",
        "--runner=DirectRunner",
        "--direct_running_mode=multi_processing",
        "--direct_num_workers=2",
    )
    assert contents(tmp_path / "out") == expected


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
        run_beam(
            pattern,
            tmp_path / "out",
            "--runner=DaskRunner",
            f"--dask_scheduler_file={address_file}",
            f"--dask_npartitions={NUM_FILES}",
        )
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
