"""Commands whose files are in a bucket give what they give on a disk, after faults, too."""

import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from official import xlnet
from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.locks import leases, only_writer
from official.xlnet.projects.buckets import requests, transfers
from official.xlnet.runtime.history import read_history
from tests.helpers.world import command
from tests.helpers.wrong_input import refused, run
from tests.projects.buckets.faults import error, faulty
from tests.projects.buckets.object_store import BUCKET, object_store, s3_at

ROOT = f"s3://{BUCKET}/a b"
NOT_COMPILED = "--set=training.jit_compile=false"  # Starts sooner.


def upload(folder, url):
    for path in filter(pathlib.Path.is_file, pathlib.Path(folder).rglob("*")):
        transfers.upload(str(path), f"{url}/{path.relative_to(folder)}")


@pytest.mark.nightly
@pytest.mark.usefixtures("eager")
def test_the_file_layer_in_memory_gives_the_same(world, tmp_path):
    """Records byte by byte, and a model that Python loads."""
    url, texts = "memory://bucket", ["the water was made first", "but not now"]
    upload(world.vocab, f"{url}/vocab")
    upload(world.pretrained, f"{url}/model")
    transfers.upload(world.text, f"{url}/text.txt")
    flags = {"vocab": f"{url}/vocab", "config": world.config, "output": f"{url}/data"}
    command("prepare", "--num_workers=1", input=f"{url}/te*t.txt", **flags)
    for name in set(os.listdir(world.data)) - {"manifest.json"}:
        expected = pathlib.Path(world.data, name).read_bytes()
        assert file_system.read_bytes(f"{url}/data/{name}") == expected, name
    expected = xlnet.embed(world.pretrained, texts)
    np.testing.assert_array_equal(xlnet.embed(f"{url}/model", texts), expected)


RUN = "--config={0.config} --data={0.data} --output=memory://b/m"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("score --text=the --model=memory://b/nothing", "'memory://b/nothing'"),
        ("evaluate --model={0.pretrained} --data=memory://b/nothing", "'memory://b/nothing'"),
        ("vocab --input=memory://b/x*.txt --output=memory://b/v --size=99", "'memory://b/x*.txt'"),
        ("pretrain --strategy=multi_worker " + RUN, "a directory that all workers mount"),
    ],
)
def test_wrong_input_in_a_bucket_is_one_sentence_with_its_url(world, arguments, message, capfd):
    assert message in refused(run(capfd, *arguments.format(world).split()))


@pytest.fixture(scope="module")
def store():
    """The process of the server; s3:// is this server."""
    with object_store() as (process, variables), pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield process


@pytest.mark.nightly
def test_a_store_or_bucket_that_is_not_there_is_one_sentence(store, capfd, monkeypatch):
    vocab = ["vocab", "--input=s3://no-such-bucket/*.txt", f"--output={ROOT}/v", "--size=99"]
    assert "s3://no-such-bucket/*.txt" in refused(run(capfd, *vocab))
    monkeypatch.setattr(requests, "PATIENCE_SECONDS", 1)
    s3 = s3_at(monkeypatch, "http://127.0.0.1:9")
    sentence = refused(run(capfd, "score", "--model=s3://elsewhere/model", "--text=the"))
    s3.clear_instance_cache()
    assert "could not be reached in" in sentence and "s3://elsewhere/model" in sentence


@pytest.fixture(scope="module")
def local(store, world, tmp_path_factory):
    """A folder of inputs, and its copy in the bucket."""
    folder, files = tmp_path_factory.mktemp("inputs"), world.files("classification")
    for name, source in {"text.txt": world.text, "config.yaml": world.config}.items():
        shutil.copy(source, folder / name)
    shutil.copytree(world.vocab, folder / "vocab")
    for split in ("train", "dev"):
        shutil.copy(files[split], folder / f"{split}.tsv")
    texts = ["the water was made first", "but not now"]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n")
    lines = [json.dumps({"text": text}) + "\n" for text in texts]
    (folder / "texts.jsonl").write_text("".join(lines))
    upload(folder, ROOT)
    return folder


# Each verb writes to a place of its own below {0}, and reads what was written there.
VERBS = """
    vocab --input={0}/te*t.txt --output={0}/v --size=150
    prepare --input={0}/text.txt --vocab={0}/vocab --config={0}/config.yaml --output={0}/data
    prepare --input={0}/text.txt --vocab={0}/vocab --config={0}/config.yaml --output={0}/on_beam \
        --runner=DirectRunner
    pretrain --config={0}/config.yaml --data={0}/data --output={0}/model --steps=2 {1}
    pretrain --config={0}/config.yaml --data={0}/data --output={0}/model --steps=4 {1} \
        --set=keep_checkpoints=1
    evaluate --model={0}/model --data={0}/data
    score --model={0}/model --input={0}/texts.txt --output={0}/scores.jsonl
    generate --model={0}/model --input={0}/texts.txt --output={0}/generated.jsonl --num_tokens=2
    embed --model={0}/model --input={0}/texts.txt --output={0}/vectors.jsonl
    vocab --extend={0}/model --input={0}/te*t.txt --size=+9 --output={0}/extended
    convert --source={0}/model --output={0}/hf --to=hf
    convert --source={0}/hf --output={0}/again
    convert --source={0}/model --output={0}/tf1 --to=tf1
    finetune --task=classification --init_from={0}/again --train={0}/train.tsv --dev={0}/dev.tsv \
        --output={0}/task --set=max_length=23 --set=num_steps=2 --set=num_buckets=1 \
        --set=warmup_steps=0 --set=training.batch_size=7 {1}
    evaluate --model={0}/task --data={0}/dev.tsv --output={0}/report
    predict --model={0}/task --input={0}/dev.tsv --output={0}/predictions.jsonl
    export --model={0}/task --output={0}/exported
    inspect records {0}/data --output={0}/window.html
    inspect attention --model={0}/model --text=the --output={0}/attention.html
"""
# What the clock decides, or chance in the graph of a SavedModel; what is not counted in a bucket.
VARYING = ("tokens_per_second", "texts_per_second", "rows_per_second", "bytes")
VARYING += ("targets_per_window", "windows_without_targets")
# Their text has no path and no time: equal, byte for byte.
SAME = [
    *("v/spiece.model", "data/train-00000-of-00006.tfrecord", "data/spiece.model"),
    *("on_beam/train-00005-of-00006.tfrecord", "scores.jsonl", "generated.jsonl"),
    *("vectors.jsonl", "predictions.jsonl", "report/predictions.jsonl", "model/history.jsonl"),
    *("window.html", "hf/model.safetensors", "task/metrics.json"),
]


def in_bucket(folder):
    """Names of files; those of TensorBoard have a time."""
    url = f"{ROOT}/{folder}"
    names = transfers.tree(url) if file_system.is_dir(url) else ()
    return {name.partition(".out.tfevents")[0] for name in names}


@pytest.mark.nightly
def test_every_verb_gives_the_same_on_a_store_as_on_a_disk(local, capfd):
    """No lock, no file of a stage and no checkpoint that retention removed is left there."""
    for verb in VERBS.strip().splitlines():
        first, second = (
            run(capfd, *(word.format(root, NOT_COMPILED) for word in verb.split()))
            for root in (local, ROOT)
        )
        assert (first.status, second.status) == (0, 0), (verb, first.err, second.err)
        assert "xlnet-" not in second.out, verb  # No path of a stage.
        expected = json.loads(json.dumps(first.result).replace(str(local), ROOT))
        for name in expected.keys() - VARYING:
            assert second.result[name] == expected[name], verb
    for name in SAME:
        assert file_system.read_bytes(f"{ROOT}/{name}") == (local / name).read_bytes(), name
    for folder in ("model", "task", "exported", "again", "tf1", "report", "data", "on_beam"):
        on_disk = filter(pathlib.Path.is_file, (local / folder).rglob("*"))
        names = {str(path.relative_to(local / folder)) for path in on_disk}
        assert in_bucket(folder) == {x.partition(".out.tfevents")[0] for x in names}, folder


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (400, "ExpiredToken", "The provided token has expired"),
        (400, "InvalidToken", "The provided token is malformed"),
        (400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong"),
        (403, "InvalidAccessKeyId", "The key does not exist in our records"),
    ],
)
@pytest.mark.parametrize("refused_call", [1, 3])
def test_credentials_and_regions_that_are_refused_are_one_sentence_at_once(
    store, status, code, reason, refused_call, tmp_path, capfd, monkeypatch
):
    """From the first call on, and in the middle."""
    (tmp_path / "text.txt").write_text("the water was made first\n" * 99)
    calls = itertools.count(1)

    def fault(method, path):
        return error(status, code, reason) if next(calls) >= refused_call else None

    with faulty(os.environ["AWS_ENDPOINT_URL"], fault) as endpoint, monkeypatch.context() as patch:
        s3 = s3_at(patch, endpoint)
        begun = time.monotonic()
        arguments = ["vocab", f"--input={tmp_path}/text.txt", "--size=60"]
        sentence = refused(run(capfd, *arguments, f"--output={ROOT}/refused_{code}"))
        assert reason in sentence or ("Forbidden" in sentence and status == 403), sentence
        assert time.monotonic() - begun < 60
    s3.clear_instance_cache()


@pytest.mark.nightly
def test_a_bucket_that_is_not_there_is_never_made(store, world, tmp_path, capfd):
    (tmp_path / "texts.txt").write_text("the water was made first\n" * 99)
    (tmp_path / "file").write_bytes(b"x")
    texts, typo = f"--input={tmp_path}/texts.txt", "s3://typo"
    for verb in (  # All before the work.
        ["embed", f"--model={world.pretrained}", texts, f"--output={typo}/e.npy"],
        ["vocab", texts, "--size=60", f"--output={typo}/v"],
        ["convert", f"--source={world.pretrained}", f"--output={typo}/a/b"],
    ):
        assert f"no such bucket: '{typo}/" in refused(run(capfd, *verb))
    for write in (transfers.upload, lambda _, url: file_system.create(url, b"x")):
        with pytest.raises(FileNotFoundError, match="no such bucket"):
            write(str(tmp_path / "file"), f"{typo}/a/b")
    assert file_system.names("s3://") == [BUCKET]


@pytest.mark.nightly
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_prepare_that_is_ended_is_done_by_the_same_command(local, store, end, capfd, monkeypatch):
    """After SIGTERM at once, after a kill when its lease expires."""
    monkeypatch.setattr(leases, "EXPIRY_SECONDS", 2)
    url = f"{ROOT}/ended_by_{end.name}"
    arguments = ["prepare", f"--input={ROOT}/text.txt", f"--vocab={ROOT}/vocab"]
    arguments += [f"--config={ROOT}/config.yaml", "--num_workers=2"]
    program = [sys.executable, "-m", "official.xlnet.cli", *arguments, f"--output={url}"]
    with subprocess.Popen(program) as process:
        while not file_system.exists(f"{url}/.lock"):
            assert process.poll() is None
        time.sleep(1)  # Into the work.
        process.send_signal(end)
        assert process.wait(60) == (143 if end == signal.SIGTERM else -end)
    assert file_system.exists(f"{url}/.lock") == (end == signal.SIGKILL)
    assert run(capfd, *arguments, f"--output={url}").status == 0
    command("prepare", *arguments[1:], f"--output={local}/ended_by_{end.name}")
    for path in (local / f"ended_by_{end.name}").glob("*.tfrecord"):
        assert file_system.read_bytes(f"{url}/{path.name}") == path.read_bytes()


# `xlnet`, with slow steps, so that a kill is in the middle.
SLOW = """
import sys, time
from official.xlnet import cli
from official.xlnet.projects.buckets import mirror
from official.xlnet.training.loop import Loop
mirror.PASS_SECONDS, begin = 0.2, Loop.on_train_batch_begin
Loop.on_train_batch_begin = lambda *x, **y: (time.sleep(0.2), begin(*x, **y))
sys.exit(cli.main())
"""


@pytest.mark.nightly
def test_a_run_that_is_killed_and_loses_its_network_ends_as_if_nothing_had_been(
    local, world, store, tmp_path, capfd, monkeypatch
):
    monkeypatch.setattr(leases, "EXPIRY_SECONDS", 2)
    upload(world.data, f"{ROOT}/world")
    arguments = ["pretrain", f"--config={ROOT}/config.yaml", f"--data={ROOT}/world"]
    arguments.append(f"--output={ROOT}/killed")
    variables = {**os.environ, "TMPDIR": str(tmp_path)}  # It leaves its files there.
    with subprocess.Popen([sys.executable, "-c", SLOW, *arguments], env=variables) as process:
        while "ckpt-7.json" not in in_bucket("killed"):
            assert process.poll() is None
            time.sleep(0.1)
        process.kill()
    assert file_system.exists(f"{ROOT}/killed/.lock")  # A lease that nobody renews.
    assert "ckpt-60.json" not in in_bucket("killed")
    # The server stands still for a while, as behind a lost network.
    threading.Timer(5, store.send_signal, [signal.SIGSTOP]).start()
    threading.Timer(10, store.send_signal, [signal.SIGCONT]).start()
    assert run(capfd, *arguments).result["step"] == 60
    assert not file_system.exists(f"{ROOT}/killed/.lock")
    lines = file_system.read_bytes(f"{ROOT}/killed/history.jsonl").splitlines()
    losses = [
        [x["loss"] for x in of] for of in (map(json.loads, lines), read_history(world.pretrained))
    ]
    np.testing.assert_allclose(*losses, rtol=0, atol=1e-5)


HOLD = """
import pathlib, sys, time
from official.xlnet.files.locks import leases
from official.xlnet.files.locks import only_writer, require_in_place
from official.xlnet.projects.buckets import mirror
leases.RENEWAL_SECONDS, leases.EXPIRY_SECONDS, mirror.PASS_SECONDS = 0.5, 5, 0.05
url, folder = sys.argv[1:]
with only_writer(url), mirror.Mirror(url, folder, True):
    for number in range(1_000_000):
        require_in_place(url)  # As a save does.
        pathlib.Path(folder, "count").write_text(str(number))
        time.sleep(0.01)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lease_is_taken_over_and_its_former_holder_uploads_nothing_more(
    store, end, tmp_path, monkeypatch
):
    url = f"{ROOT}/{end.name}"
    monkeypatch.setattr(leases, "RENEWAL_SECONDS", 0.5)
    monkeypatch.setattr(leases, "EXPIRY_SECONDS", 5)
    with subprocess.Popen([sys.executable, "-c", HOLD, url, str(tmp_path)]) as process:
        while not file_system.exists(f"{url}/count"):
            assert process.poll() is None
        with pytest.raises(DataError, match=f"process {process.pid} on"), only_writer(url):
            pass
        process.send_signal(end)
        with only_writer(url):
            last = file_system.read_bytes(f"{url}/count")
            process.send_signal(signal.SIGCONT)
            assert process.wait(60) == (1 if end == signal.SIGSTOP else -end)
            assert file_system.read_bytes(f"{url}/count") == last
            assert f"process {os.getpid()} on" in file_system.read_bytes(f"{url}/.lock").decode()
    assert not file_system.exists(f"{url}/.lock")
