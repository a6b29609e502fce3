"""Requests and bytes as functions of the number and the size of files in a bucket.

Measured at a server, at two sizes a factor of eight apart, against what docs/buckets.md promises.
"""

import collections
import contextlib
import dataclasses
import gzip
import io
import json
import pathlib
import random
import time

import boto3
import pyarrow
import pyarrow.parquet
import pytest

from data_prep.corpus import corpus, readers
from data_prep.corpus.corpus import find_shards
from data_prep.corpus.formats import Counts
from data_prep.corpus.readers import read_documents
from data_prep.settings import ReadOptions
from official.xlnet.checkpoints.saving import save_pretrained
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.files.urls import local_paths
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.projects.buckets import remote_file
from tests.helpers.wrong_input import run
from tests.projects.buckets.faults import faulty
from tests.projects.buckets.object_store import BUCKET, object_store, s3_at

FEW, MANY = 8, 64
HEAD_BYTES = 4096
NUM_LANES = 6  # Of the data set of `world`.
OF_LEASES = 0.1  # A command that lasts long renews its lease; a request a unit would be 1.


@dataclasses.dataclass
class Store:
    """A bucket, and the requests for it.

    Attributes:
      client: writes objects past the log.
      log: (method, path, bytes of the answer) of each request.
      faults: the last one is that of the server, see `faulty`.
    """

    client: object
    log: list
    faults: list

    def write(self, contents):
        """Writes {name: bytes}; the bucket has nothing else afterwards."""
        for item in self.client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
            self.client.delete_object(Bucket=BUCKET, Key=item["Key"])
        for name, content in contents.items():
            self.client.put_object(Bucket=BUCKET, Key=name, Body=content)

    @contextlib.contextmanager
    def counted(self):
        """Yields a counter of requests by their kind; `bytes` are those of the files read."""
        counts = collections.Counter()
        del self.log[:]
        yield counts
        for method, path, num_bytes in self.log:
            is_listing = method == "GET" and "list-type" in path
            counts["LIST" if is_listing else method] += 1
            counts["bytes"] += num_bytes if method == "GET" and not is_listing else 0


@pytest.fixture(scope="module")
def store():
    with object_store() as (_, variables), pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        endpoint, log = variables["AWS_ENDPOINT_URL"], []
        client = boto3.client("s3", endpoint_url=endpoint)
        faults = [lambda method, path: None]
        with faulty(endpoint, lambda method, path: faults[-1](method, path), log) as proxy:
            s3 = s3_at(patch, proxy)
            yield Store(client, log, faults)
    s3.clear_instance_cache()


def text(num_bytes, seed=0):
    """Documents of about so many bytes."""
    words = random.Random(seed).choices(["the", "water", "was", "made", "first", "\n\n"], k=99)
    line = " ".join(words).encode() + b"\n\n"
    return (line * (num_bytes // len(line) + 1))[: num_bytes - 2] + b"\n\n"


def json_rows(num_bytes, seed=0):
    line = json.dumps({"text": text(99, seed).decode()}).encode() + b"\n"
    return line * (num_bytes // len(line) + 1)


def parquet(num_bytes, seed=0):
    file = io.BytesIO()
    table = pyarrow.table({"text": [text(99, seed).decode()] * (num_bytes // 99)})
    pyarrow.parquet.write_table(table, file)
    return file.getvalue()


ONE = {"GET": 1}
# {format: (extension, content of some size, requests for each file to find it, and to read it)}
FORMATS = {
    "text": (".txt", text, ONE, ONE),
    "lines": (".jsonl", json_rows, ONE, ONE),
    "gzip": (".txt.gz", lambda size, seed: gzip.compress(text(size, seed)), ONE, ONE),
    "parquet": (".parquet", parquet, {"GET": 2, "HEAD": 1}, {"GET": 3}),
}


def growth(measure):
    """Returns ({kind: requests for each file}, {kind: others}) of `measure(number of files)`."""
    few, many = measure(FEW), measure(MANY)
    slopes, constants = collections.Counter(), collections.Counter()
    for kind in many:
        slopes[kind] = (many[kind] - few[kind]) / (MANY - FEW)
        constants[kind] = few[kind] - FEW * slopes[kind]
    return slopes, constants


@pytest.mark.parametrize("name", FORMATS)
def test_text_is_found_by_one_listing_and_read_once(name, store):
    """One request for the first bytes of each file, and one for the file; more for Parquet."""
    extension, content, budget, read_budget = FORMATS[name]
    shards = []

    def find(num_files):
        store.write({f"books/{i:03d}{extension}": content(9_000, i) for i in range(num_files)})
        with store.counted() as counts:
            shards[:] = find_shards([f"s3://{BUCKET}/books/*{extension}"], ReadOptions())
        assert len(shards) == num_files
        return counts

    def read(num_files):
        find(num_files)
        with store.counted() as counts:
            for shard in shards:
                for _ in read_documents(shard, ReadOptions(), Counts(), lambda n: None):
                    pass
        return counts

    slopes, constants = growth(find)
    num_bytes = slopes.pop("bytes")
    assert +slopes == budget and num_bytes <= HEAD_BYTES * budget["GET"]
    assert constants["LIST"] + constants["HEAD"] <= 6 and constants["GET"] == 0
    slopes, constants = growth(read)
    del slopes["bytes"]
    assert +slopes == read_budget and not constants["GET"]


def test_a_large_file_is_read_once_in_parts(store, monkeypatch):
    """A request for each batch, and two for each border of parts; 5% of bytes twice."""
    batch, search = 1 << 17, 1 << 11
    monkeypatch.setattr(corpus, "_MIN_SHARD_BYTES", batch)
    monkeypatch.setattr(readers, "BATCH_BYTES", batch)
    monkeypatch.setattr(readers, "_SEARCH_BYTES", search)
    for size in (5 * batch, 40 * batch):
        store.write({"book.txt": text(size)})
        with store.counted() as counts:
            shards = find_shards([f"s3://{BUCKET}/book.txt"], ReadOptions())
            for shard in shards:
                for _ in read_documents(shard, ReadOptions(), Counts(), lambda n: None):
                    pass
        assert counts["HEAD"] == 1 and counts["LIST"] == 0
        # The first bytes; a part and what is beyond it of its last document; two searches.
        assert len(shards) == size // batch and counts["GET"] <= 1 + 4 * len(shards)
        assert size <= counts["bytes"] <= 1.05 * size


@pytest.mark.parametrize("use", ["read", "resume", "write_directory"])
def test_a_folder_is_copied_by_two_requests_for_each_file(use, store):
    """None for one whose files are known by name only."""

    def copy(num_files):
        store.write({f"data/{i}.bin": bytes([i]) * 997 for i in range(num_files)})
        with store.counted() as counts, local_paths({"x": f"s3://{BUCKET}/data"}, {"x": use}):
            pass
        return counts

    slopes, constants = growth(copy)
    expected = {"GET": 0, "HEAD": 0, "bytes": 0}
    if use != "write_directory":
        expected = {"GET": 1, "HEAD": 1, "bytes": 997}
    assert {kind: slopes[kind] for kind in expected} == expected
    assert sum(slopes.values()) == sum(expected.values())
    assert sum(constants.values()) - constants["bytes"] <= 25


def test_a_file_is_copied_by_a_request_for_each_block(store, monkeypatch):
    monkeypatch.setattr(remote_file, "BLOCK_BYTES", 1000)

    def copy(num_blocks):
        store.write({"x.tsv": b"x" * 1000 * num_blocks})
        with store.counted() as counts, local_paths({"x": f"s3://{BUCKET}/x.tsv"}, {"x": "read"}):
            pass
        return counts

    slopes, constants = growth(copy)
    assert slopes["HEAD"] == slopes["LIST"] == 0 and slopes["GET"] <= 1
    assert slopes["bytes"] == 1000 and constants["bytes"] == 0
    assert constants["HEAD"] + constants["LIST"] <= 4


def test_requests_of_prepare(store, world, capfd):
    """For each file: one for its first bytes and one for it; others are for its token files."""

    def prepare(num_files):
        store.write({f"books/{i:03d}.txt": text(3_000, i) for i in range(num_files)})
        arguments = [f"--input=s3://{BUCKET}/books/*.txt", f"--output=s3://{BUCKET}/data"]
        arguments += [f"--vocab={world.vocab}", f"--config={world.config}", "--num_workers=1"]
        with store.counted() as counts:
            assert run(capfd, "prepare", *arguments).status == 0
        for method, path, _ in store.log:
            is_book = "/books/" in path and "list-type" not in path
            counts[f"books {method}"] += is_book
            counts[method] -= is_book
        return counts

    slopes, _ = growth(prepare)
    assert slopes["books GET"] == 2 and slopes["books HEAD"] == 0
    # Three token files and a table are written, and read for each of six lanes.
    assert slopes["PUT"] <= 4.5 and slopes["LIST"] <= 1
    assert slopes["GET"] + slopes["HEAD"] <= 5 * NUM_LANES


def test_first_bytes_are_asked_for_side_by_side(store):
    """64 answers that take half a second each."""
    store.write({f"books/{i:03d}.txt": text(3_000, i) for i in range(MANY)})
    store.faults.append(lambda method, path: "late" if ".txt" in path else None)
    begun = time.monotonic()
    try:
        shards = find_shards([f"s3://{BUCKET}/books/*.txt"], ReadOptions())
    finally:
        store.faults.pop()
    assert len(shards) == MANY and time.monotonic() - begun < MANY * 0.5 / 4


def test_requests_of_vocab(store, tmp_path, capfd):
    def learn(num_files):
        store.write({f"books/{i:03d}.txt": text(3_000, i) for i in range(num_files)})
        arguments = [f"--input=s3://{BUCKET}/books/*.txt", f"--output={tmp_path}/{num_files}"]
        with store.counted() as counts:
            assert run(capfd, "vocab", *arguments, "--size=36").status == 0
        return counts

    slopes, constants = growth(learn)
    assert slopes["GET"] == 2 and slopes["LIST"] == slopes["HEAD"] == 0
    assert constants["LIST"] + constants["HEAD"] <= 6


def model_files(folder):
    """{name in the bucket: bytes} of a model directory."""
    paths = [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    return {f"model/{path.relative_to(folder)}": path.read_bytes() for path in paths}


@pytest.mark.nightly
@pytest.mark.parametrize("flags", ["score", "embed", "generate --num_tokens=1"])
def test_requests_of_verbs_by_rows(flags, store, world, capfd):
    """None more, as long as files have one block; the input is read once."""
    row = b'{"text": "the cat sat"}\n'
    files, arguments = model_files(world.pretrained), flags.split()
    arguments += [f"--model=s3://{BUCKET}/model", f"--input=s3://{BUCKET}/in.jsonl"]

    def use(num_rows):
        store.write({**files, "in.jsonl": row * num_rows})
        with store.counted() as counts:
            assert run(capfd, *arguments, f"--output=s3://{BUCKET}/out.jsonl").status == 0
        return counts

    slopes, _ = growth(use)
    assert slopes.pop("bytes") == pytest.approx(len(row), rel=0.1)
    assert all(slope <= OF_LEASES for slope in slopes.values())


@pytest.mark.nightly
@pytest.mark.parametrize("verb", ["export", "convert"])
def test_requests_of_a_model_by_its_size(verb, store, world, tmp_path, capfd):
    """None more, as long as files have one block; each file is read once at most."""

    def use(num_units):
        config = XLNetConfig.load(world.config, [f"model.d_inner={num_units}"])
        model_dir = str(tmp_path / str(num_units))
        save_pretrained(XLNetPretrainer(config), model_dir, f"{world.vocab}/spiece.model")
        files = model_files(model_dir)
        store.write(files)
        flag = {"export": "model", "convert": "source"}[verb]
        arguments = [f"--{flag}=s3://{BUCKET}/model", f"--output=s3://{BUCKET}/out"]
        arguments += ["--to=hf"] if verb == "convert" else []
        with store.counted() as counts:
            assert run(capfd, verb, *arguments).status == 0
        counts["size"] = sum(map(len, files.values()))
        return counts

    slopes, _ = growth(use)
    assert 0 < slopes.pop("bytes") <= 1.1 * slopes.pop("size")
    assert all(slope <= OF_LEASES for slope in slopes.values())
