"""The chain of commands on an S3 server on loopback, with kills and a lost network."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from official.xlnet.files import file_system
from tests.helpers.file_systems.object_store import BUCKET, object_store
from tests.helpers.replicas.clusters import dask_cluster
from tests.helpers.wrong_input import make_world, refused, run

pytest.importorskip("s3fs")
pytest.importorskip("moto")
pytest.importorskip("flask_cors")

ROOT = f"s3://{BUCKET}/a b"
NOT_COMPILED = "--set=training.jit_compile=false"  # Starts sooner.
STEPS = 200  # Enough for a kill to be in the middle.


@pytest.fixture(scope="module")
def store():
    """The process of the server; s3:// is this server."""
    with object_store() as (process, variables), pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield process


@pytest.fixture(scope="module")
def world(store, tmp_path_factory):
    """The folder of `make_world`; its text, vocabulary and tables are also in the bucket."""
    local = make_world(tmp_path_factory.mktemp("world"))
    for name in (
        *("text.txt", "text.jsonl", "vocab/spiece.model", "config.yaml", "train.tsv"),
        "dev.tsv",
    ):
        file_system.upload(str(local / name), f"{ROOT}/{name}")
    return local


def pretrain(root, data):
    return [
        *("pretrain", f"--config={root}/config.yaml", f"--data={data}"),
        *(f"--model_dir={root}/model", f"--set=num_steps={STEPS}", "--set=checkpoint_steps=20"),
        NOT_COMPILED,
    ]


def kill_after_a_checkpoint(arguments, directory):
    """Starts a run and kills it when a checkpoint of it is in the bucket."""
    command = "from official.xlnet import cli; from official.xlnet.files import mirror; import sys;"
    command += "mirror.PASS_SECONDS = 0.2; sys.exit(cli.main())"
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments],
        env={**os.environ, "TMPDIR": str(directory)},  # It leaves its files there.
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any("ckpt" in name and name.endswith(".json") for name in in_bucket("model")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def lose(store, seconds):
    """The server stands still for a while, as behind a lost network."""
    store.send_signal(signal.SIGSTOP)
    threading.Timer(seconds, store.send_signal, [signal.SIGCONT]).start()


def in_bucket(folder):
    url = f"{ROOT}/{folder}"
    return file_system.tree(url) if file_system.is_dir(url) else {}


def assert_same_data_set(world, folder):
    """All but the manifest, which names the input, is the same as on the disk."""
    expected = {path.name: path.read_bytes() for path in (world / "data").iterdir()}
    got = {name: file_system.read_bytes(f"{ROOT}/{folder}/{name}") for name in in_bucket(folder)}
    assert json.loads(got.pop("manifest.json"))["splits"]
    del expected["manifest.json"]
    assert got == expected


def test_the_chain_with_a_kill_equals_that_on_a_disk(world, store, tmp_path, capfd):
    outcome = run(
        capfd,
        *("prepare", f"--input={ROOT}/text.txt", f"--vocab={ROOT}/vocab", "--num_workers=2"),
        *(f"--config={ROOT}/config.yaml", f"--output={ROOT}/data"),
    )
    assert outcome.status == 0, outcome.err
    assert_same_data_set(world, "data")

    kill_after_a_checkpoint(pretrain(ROOT, f"{ROOT}/data"), tmp_path)
    steps = [
        int(name[5:-5])
        for name in in_bucket("model")
        if name.startswith("ckpt-") and name.endswith(".json")
    ]
    assert 0 < max(steps) < STEPS
    assert file_system.exists(f"{ROOT}/model/.lock")  # Of a process that has ended, on this host.
    threading.Timer(5, lose, [store, 5]).start()
    continued = run(capfd, *pretrain(ROOT, f"{ROOT}/data"))
    assert continued.status == 0, continued.err
    whole = run(capfd, *pretrain(world, world / "data"))
    assert continued.result["step"] == whole.result["step"] == STEPS
    assert continued.result["loss"] == pytest.approx(whole.result["loss"], abs=1e-5)
    assert not file_system.exists(f"{ROOT}/model/.lock")

    tuned = []
    for root in (ROOT, world):
        outcome = run(
            capfd,
            *("finetune", "--task=classification", f"--init_from={root}/model"),
            *(f"--train={root}/train.tsv", f"--dev={root}/dev.tsv", f"--output={root}/tuned"),
            *("--set=max_length=23", "--set=num_steps=4", "--set=checkpoint_steps=2"),
            "--set=num_buckets=1",
            *("--set=warmup_steps=0", "--set=training.batch_size=7", NOT_COMPILED),
        )
        assert outcome.status == 0, outcome.err
        tuned.append(outcome.result)
    assert tuned[0]["loss"] == pytest.approx(tuned[1]["loss"], abs=1e-5)
    outcome = run(capfd, "export", f"--model={ROOT}/tuned", f"--output={ROOT}/exported")
    assert outcome.status == 0, outcome.err
    assert outcome.result["path"] == f"{ROOT}/exported/1"
    assert "1/saved_model.pb" in in_bucket("exported")
    outcome = run(
        capfd,
        *("predict", f"--model={ROOT}/tuned", f"--input={ROOT}/dev.tsv"),
        f"--output={ROOT}/predictions.jsonl",
    )
    assert outcome.status == 0, outcome.err
    lines = [  # Those of a disk are in what fine-tuning wrote.
        [json.loads(line)["label"] for line in file_system.read_bytes(path).splitlines()]
        for path in (f"{ROOT}/predictions.jsonl", str(world / "tuned/predictions.jsonl"))
    ]
    assert lines[0] == lines[1]

    bulk = run(
        capfd,
        *("predict", f"--saved_model={ROOT}/exported/1", f"--input={ROOT}/text.jsonl"),
        f"--output={ROOT}/bulk",
    )
    assert bulk.status == 0, bulk.err
    texts = file_system.read_bytes(f"{ROOT}/text.jsonl").splitlines()
    written = [
        line
        for name in file_system.names(ROOT)
        if name.startswith("bulk-0")
        for line in file_system.read_bytes(f"{ROOT}/{name}").splitlines()
    ]
    assert bulk.result["rows"] == len(texts) == len(written)
    assert not any(name.startswith("bulk-wrong") for name in file_system.names(ROOT))


def test_a_run_that_loses_its_bucket_goes_on(world, store, capfd, monkeypatch):
    monkeypatch.setattr("data_prep.records.lane_files._CHUNK_TOKENS", 64)

    threading.Timer(1, lose, [store, 10]).start()
    outcome = run(
        capfd,
        *("prepare", f"--input={ROOT}/text.txt", f"--vocab={ROOT}/vocab", "--num_workers=1"),
        *(f"--config={ROOT}/config.yaml", f"--output={ROOT}/data2"),
    )
    assert outcome.status == 0, outcome.err
    assert json.loads(file_system.read_bytes(f"{ROOT}/data2/manifest.json"))["splits"]


def test_beam_reads_and_writes_the_store(world, capfd):
    outcome = run(
        capfd,
        *("prepare", f"--input={ROOT}/text.txt", f"--vocab={ROOT}/vocab"),
        *(f"--config={ROOT}/config.yaml", f"--output={ROOT}/on_beam", "--runner=DirectRunner"),
    )
    assert outcome.status == 0, outcome.err
    assert_same_data_set(world, "on_beam")


@pytest.mark.slow
def test_dask_with_a_worker_killed_half_way_writes_the_same_to_the_store(world, tmp_path):
    pytest.importorskip("distributed")
    from data_prep.pipelines.prepare import prepare
    from official.xlnet.configs.experiment import XLNetConfig

    with dask_cluster(tmp_path) as (address_file, workers):

        def kill_one_half_way():
            while not any(name.endswith(".tfrecord.json") for name in in_bucket("dask/.prepare")):
                time.sleep(0.05)
            workers[0].kill()

        killer = threading.Thread(target=kill_one_half_way, daemon=True)
        killer.start()
        prepare(
            [f"{ROOT}/text.txt"],
            f"{ROOT}/vocab",
            XLNetConfig.load(f"{ROOT}/config.yaml"),
            f"{ROOT}/dask",
            beam_options=[
                "--runner=DaskRunner",
                f"--dask_scheduler_file={address_file}",
                "--dask_npartitions=6",
            ],
        )
        killer.join()
        assert workers[0].wait() == -signal.SIGKILL
    assert_same_data_set(world, "dask")


def test_a_store_that_is_not_there_is_one_sentence(store, capfd, monkeypatch):
    monkeypatch.setattr(file_system, "PATIENCE_SECONDS", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    import fsspec

    fsspec.get_filesystem_class("s3").clear_instance_cache()
    outcome = run(capfd, "score", "--model=s3://elsewhere/model", "--text=the")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    assert "could not be reached in" in refused(outcome)
    assert "s3://elsewhere/model" in outcome.err


def test_a_bucket_that_does_not_exist_is_one_sentence(store, capfd):
    outcome = run(capfd, "score", "--model=s3://no-such-bucket/model", "--text=the")
    assert "s3://no-such-bucket/model" in refused(outcome)
    text = ["vocab", "--input=s3://no-such-bucket/*.txt", f"--output={ROOT}/v", "--size=99"]
    assert "s3://no-such-bucket/*.txt" in refused(run(capfd, *text))
