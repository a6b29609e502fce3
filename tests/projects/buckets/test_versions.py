"""A file that is replaced while it is read is an error, on every kind of file system.

Whatever its size, wherever it is read, and whether the new one is longer, shorter or as long.
"""

import itertools
import random

import boto3
import pytest

from data_prep.corpus.corpus import find_shards
from data_prep.corpus.versions import (
    combined_hash,
    current_versions,
    is_same_content,
    versions_of,
)
from data_prep.settings import ReadOptions
from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.projects.buckets import remote_file, transfers
from official.xlnet.projects.buckets.versions import version_in
from tests.helpers.wrong_input import refused, run
from tests.projects.buckets.faults import faulty
from tests.projects.buckets.flaky import FlakyFileSystem
from tests.projects.buckets.google_store import google_store
from tests.projects.buckets.object_store import BUCKET, object_store, s3_at

BLOCK = 16
# Sizes before and after: within a block, of whole blocks, longer, shorter and as long.
SIZES = [(11, 13), (11, 7), (11, 11), (16, 48), (32, 16), (37, 41), (37, 37), (48, 3)]


@pytest.fixture(scope="module")
def s3_endpoint():
    with object_store() as (_, variables), pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield variables["AWS_ENDPOINT_URL"]


@pytest.fixture(params=["s3", "gs", "flaky"])
def store(request, monkeypatch):
    """(URL of a file, function that writes it, function that is told to write at a download)."""
    monkeypatch.setattr(remote_file, "BLOCK_BYTES", BLOCK)
    if request.param == "flaky":
        FlakyFileSystem.reset()
        library, read = FlakyFileSystem(), FlakyFileSystem.cat_file
        hooks = [lambda: None]

        def cat_file(self, *arguments, **options):
            hooks[-1]()
            return read(self, *arguments, **options)

        monkeypatch.setattr(FlakyFileSystem, "cat_file", cat_file)
        yield "flaky://bucket/x", lambda data: library.pipe_file("/bucket/x", data), hooks.append
    if request.param == "gs":
        with google_store(monkeypatch) as google:

            def set_hook(hook):
                google.before_download = lambda name: hook()

            yield "gs://bucket/x", lambda data: google.put("x", data), set_hook
    if request.param == "s3":
        endpoint = request.getfixturevalue("s3_endpoint")
        client, hooks = boto3.client("s3", endpoint_url=endpoint), [lambda: None]

        def fault(method, path):
            if method == "GET" and "/x" in path:
                hooks[-1]()

        with faulty(endpoint, fault) as proxy:
            s3 = s3_at(monkeypatch, proxy)
            yield (
                f"s3://{BUCKET}/x",
                lambda data: client.put_object(Bucket=BUCKET, Key="x", Body=data),
                hooks.append,
            )
        s3.clear_instance_cache()


@pytest.mark.parametrize(("size", "new_size"), SIZES)
def test_bytes_of_two_versions_are_never_returned(store, size, new_size):
    url, write, set_hook = store
    old, new = (random.Random(n).randbytes(n) for n in (size, new_size))
    if size == new_size:
        new = new[::-1]
    num_blocks = -(-size // BLOCK)
    for block in range(num_blocks):  # It is replaced right before the request for this one.
        write(old)
        requests = itertools.count()

        def replace(counter=requests, number=block):
            if next(counter) == number:
                write(new)

        set_hook(replace)
        expected = pytest.raises(DataError, match="/x: expected one version of the file, got anot")
        with file_system.open(url, "rb") as file, expected:
            while file.read(5):
                pass
        set_hook(lambda: None)
        assert file_system.read_bytes(url) == new


def test_a_part_of_a_file_is_of_the_version_that_was_opened(store):
    url, write, _ = store
    write(b"o" * 90)
    with file_system.open(url, "rb", buffering=0) as file:
        file.seek(20)
        assert file.read(5) == b"ooooo"
        write(b"n" * 90)
        file.seek(40)
        with pytest.raises(DataError, match="expected one version"):
            file.read(5)


def test_a_file_that_was_replaced_since_it_was_found_is_not_read(store):
    """On S3 and Google Cloud Storage, which are asked for the version of the listing."""
    url, write, _ = store
    write(b"o" * 30)
    folder = url.rpartition("/")[0]
    for pattern in (url, f"{folder}/*"):
        [entry] = [entry for entry in file_system.find(pattern) if entry.path.endswith("/x")]
        assert entry.size == 30
        with file_system.open_entry(entry) as file:
            assert file.read() == b"o" * 30
    if url.startswith("flaky"):
        return
    write(b"n" * 40)
    with file_system.open_entry(entry) as file, pytest.raises(DataError, match="one version"):
        file.read()


def test_data_sets_of_earlier_releases_are_recognized(store):
    """Their checksum is of versions that each file was asked for."""
    url, write, _ = store
    write(b"a document\n\n" * 9)
    shards = find_shards([url], ReadOptions())
    former = combined_hash([str(file_system.version(url))])
    for content, is_same in (
        (combined_hash([shards[0].entry.version]), True),
        (former, True),
        (combined_hash(["0"]), False),
    ):
        assert is_same_content(shards, content) == is_same
    assert current_versions([url], shards) == versions_of(shards)
    write(b"another one\n\n" * 9)
    assert current_versions([url], shards) != versions_of(shards)
    assert not is_same_content(find_shards([url], ReadOptions()), former)


def test_a_file_that_stays_is_read(store, tmp_path):
    url, write, _ = store
    for size in (0, 1, 15, 16, 17, 32, 100):
        content = random.Random(size).randbytes(size)
        write(content)
        assert file_system.read_bytes(url) == content
        transfers.download(url, str(tmp_path / "x"))
        assert (tmp_path / "x").read_bytes() == content


def test_what_is_read_as_a_whole_is_the_new_version(store, tmp_path):
    """Such as a lease, which its holder renews, and copies of a run's files."""
    url, write, set_hook = store
    reads = {
        "bytes": lambda: file_system.read_bytes(url),
        "copy": lambda: transfers.download(url, str(tmp_path / "x")),
    }
    for (size, new_size), read in itertools.product(SIZES, reads.values()):
        write(b"o" * size)
        requests = itertools.count()

        def replace(counter=requests, content=b"n" * new_size):
            if next(counter) == 0:
                write(content)

        set_hook(replace)
        result = read()
        content = result if result is not None else (tmp_path / "x").read_bytes()
        assert content == b"n" * new_size


@pytest.mark.parametrize(
    ("info", "other"),
    [
        ({"ETag": '"a"', "LastModified": 1}, {"ETag": '"b"', "LastModified": 1}),
        ({"generation": "1", "etag": "x"}, {"generation": "2", "etag": "x"}),
        ({"etag": "a"}, {"etag": "b"}),
        ({"mtime": 1.0, "created": 0}, {"mtime": 2.0, "created": 0}),
        ({"mtime": 1.0, "size": 3}, {"mtime": 1.0, "size": 4}),
        ({"Last-Modified": "Mon", "size": 3}, {"Last-Modified": "Tue", "size": 3}),
        ({"size": 3}, {"size": 4}),
    ],
)
def test_versions_of_what_file_systems_say(info, other):
    assert version_in(info) == version_in(dict(reversed(info.items()))) != version_in(other)


# {verb: its arguments, in which {} is a file and {folder} the folder of it}; others are local.
READERS = {
    "vocab": "--input={} --output={tmp}/v --size=60",
    "prepare": "--input={} --vocab={world.vocab} --config={world.config} --output={tmp}/d",
    "score": "--model={world.pretrained} --input={} --output={tmp}/s.jsonl",
    "embed": "--model={world.pretrained} --input={} --output={tmp}/e.npy",
    "generate": "--model={world.pretrained} --input={} --output={tmp}/g.jsonl --num_tokens=2",
    "finetune": "--task=classification --init_from={world.pretrained} --train={} --output={tmp}/t",
    "predict": "--model={world.pretrained} --input={} --output={tmp}/p.jsonl",
    "evaluate": "--model={world.pretrained} --data={}",
    # Files of folders.
    "pretrain": "--config={world.config} --data={folder} --output={tmp}/m",
    "convert": "--source={folder} --output={tmp}/c --to=hf",
    "export": "--model={folder} --output={tmp}/x",
    "inspect records": "{folder}",
}


@pytest.mark.parametrize("verb", READERS)
def test_every_verb_says_that_its_input_was_replaced(
    verb, s3_endpoint, world, tmp_path, capfd, monkeypatch
):
    """A longer one always comes between the question for its size and the request for bytes."""
    client = boto3.client("s3", endpoint_url=s3_endpoint)
    lengths = itertools.count(2)
    text = "label\ttext\n" + "bad\tthe water was made first\ngood\tbut not now\n" * 99
    client.put_object(Bucket=BUCKET, Key="folder/rows.tsv", Body=text.encode())

    def fault(method, path):
        if method == "GET" and "/rows.tsv" in path:
            body = text.encode() * next(lengths)
            client.put_object(Bucket=BUCKET, Key="folder/rows.tsv", Body=body)

    folder = f"s3://{BUCKET}/folder"
    arguments = READERS[verb].replace("{}", f"{folder}/rows.tsv")
    with faulty(s3_endpoint, fault) as proxy, monkeypatch.context() as patch:
        s3 = s3_at(patch, proxy)
        words = [*verb.split(), *arguments.format(world=world, tmp=tmp_path, folder=folder).split()]
        sentence = refused(run(capfd, *words))
    s3.clear_instance_cache()
    assert f"{folder}/rows.tsv: expected one version of the file" in sentence
