"""The same answers of a disk and of file systems of fsspec; a lost connection.

And the mirror of an output directory: what of it is in a bucket, and in which order it gets there.
"""

import collections
import contextlib
import errno
import http.server
import itertools
import os
import pathlib
import random
import re
import sys
import tempfile
import threading
import time

import fsspec
import pytest

from official.xlnet.files import file_system
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.urls import local_copy, local_paths
from official.xlnet.projects.buckets import mirror, requests, transfers
from official.xlnet.projects.buckets.mirror import Mirror, NotUploadedError
from tests.helpers.compare import assert_refused
from tests.helpers.file_systems import answers
from tests.projects.buckets.flaky import FlakyFileSystem

FILE, URL = "flaky://bucket/x", "flaky://bucket/model"
LOST = ConnectionResetError("the bucket is lost")


@pytest.fixture(params=["memory", "flaky"])
def root(request, tmp_path):
    """A directory with `FILES`."""
    FlakyFileSystem.reset()
    root = f"{request.param}:/{tmp_path}"
    answers.write_files(root)
    return root


@pytest.fixture
def impatient(monkeypatch):
    FlakyFileSystem.reset()
    monkeypatch.setattr(requests, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(requests, "LONGEST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(mirror, "PASS_SECONDS", 0.05)


def test_what_there_is(root):
    answers.assert_names_are_answered(root)


def test_finding(root):
    answers.assert_files_are_found(root)


def test_reading(root):
    answers.assert_parts_are_read(root)


@pytest.mark.quick
def test_files_are_replaced_whole_or_stay(root):
    answers.assert_files_are_replaced_whole(root)


def test_one_writer_for_each_directory(root, monkeypatch):
    answers.assert_one_writer(root, monkeypatch)


def test_faults_that_pass_are_tried_again_and_others_are_one_error_with_the_path(impatient):
    with atomic_write(FILE) as file:
        file.write(answers.TEXT)
    FlakyFileSystem.num_faults = 2
    assert file_system.read_bytes(FILE) == answers.TEXT and not FlakyFileSystem.num_faults
    FlakyFileSystem.error = LOST
    with pytest.raises(OSError, match=r"not be reached in \d+ attempts: ConnectionReset") as error:
        file_system.read_bytes(FILE)
    assert error.value.filename == FILE
    FlakyFileSystem.error, calls = None, FlakyFileSystem.calls
    with pytest.raises(FileNotFoundError):  # An answer: asked once.
        file_system.read_bytes(f"{FILE}/y")
    assert FlakyFileSystem.calls == calls + 1


@pytest.mark.parametrize("size", [0, 1, 8191, 3_000_001])
def test_a_file_that_is_read_whole_is_one_request(impatient, size):
    """Besides those for its version before and after it."""
    with atomic_write(FILE) as file:
        file.write(b"x" * size)
    calls = FlakyFileSystem.calls
    assert file_system.read_bytes(FILE) == b"x" * size
    assert FlakyFileSystem.calls - calls == 1 + 2 * bool(size)


@pytest.mark.parametrize(
    "text", ["ExpiredToken when calling GetObject", "RefreshError: invalid_grant", "NoCredentials"]
)
def test_credentials_that_are_refused_end_at_once(impatient, text):
    FlakyFileSystem.error, calls = RuntimeError(text), FlakyFileSystem.calls
    with pytest.raises(PermissionError, match=text):
        file_system.size(FILE)
    assert FlakyFileSystem.calls == calls + 1


@pytest.fixture(params=["whole", "parts", "without a length"])
def web(request):
    """A web server with the file `/x`, its content, and the requests it got for parts of it."""
    content = random.Random(0).randbytes(3_000_001)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            start, end = map(int, found.groups() if found else (0, len(content)))
            is_part = bool(found) and request.param == "parts"
            body = content[start : end + 1] if is_part else content
            received.append((self.command, found and found[0]))
            self.send_response(404 if self.path != "/x" else 206 if is_part else 200)
            if request.param != "without a length":
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                with contextlib.suppress(ConnectionError):  # The client needs no more of it.
                    self.wfile.write(body)

        do_GET = do_HEAD

        def log_message(self, *args):
            pass

    received = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", content, received, request.param
        server.shutdown()


def test_a_web_server_with_and_without_parts(web, impatient, tmp_path):
    root, content, received, kind = web
    with file_system.open(f"{root}/x", "rb") as file:
        assert file.seek(1_000_000) and file.read(1000) == content[1_000_000:1_001_000]
        file.seek(0)
        assert file.read() == content
    assert file_system.size(f"{root}/x") == len(content) and file_system.is_file(f"{root}/x")
    transfers.download(f"{root}/x", str(tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == content
    if kind != "without a length":  # fsspec looks by such a request whether the file is there.
        assert received.count(("GET", None)) == (2 if kind == "whole" else 0)
    for wrong in (file_system.size, file_system.read_bytes):
        with pytest.raises(FileNotFoundError):
            wrong(f"{root}/y")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-1'"),
        ("InvalidToken", "The provided token is malformed"),
        ("PermanentRedirect", "must be addressed using the specified endpoint"),
    ],
)
def test_the_reason_of_a_refusal_without_a_body_is_asked_for_once(
    impatient, code, reason, monkeypatch
):
    """As s3fs raises them: the answer to a HEAD is only 400, and a listing tells why."""
    errors = [OSError(errno.EINVAL, "Bad Request"), OSError(errno.EINVAL, reason)]
    errors[1].__cause__ = RuntimeError(f"An error occurred ({code})")
    calls = []

    def fail(self, name, **options):
        calls.append(name)
        raise errors[len(calls) - 1]

    monkeypatch.setattr(FlakyFileSystem, "info", fail)
    monkeypatch.setattr(FlakyFileSystem, "find", fail)
    for ask, names in (
        (file_system.size, ["/bucket/x", "/bucket/x/-"]),
        (transfers.tree, ["/bucket/x"]),
    ):
        errors = errors[-len(names) :]
        calls.clear()
        with pytest.raises(PermissionError, match=reason) as error:
            ask(FILE)
        assert calls == names and error.value.filename == FILE


def test_a_bad_answer_without_a_reason_is_asked_again(impatient, monkeypatch):
    with atomic_write(FILE) as file:
        file.write(answers.TEXT)
    info, failures = FlakyFileSystem.info, [OSError(errno.EINVAL, "Bad Request")]

    def fail_once(self, name):
        if failures:
            raise failures.pop()
        return info(self, name)

    monkeypatch.setattr(FlakyFileSystem, "info", fail_once)
    assert file_system.size(FILE) == len(answers.TEXT)


@pytest.mark.parametrize(
    ("scheme", "library", "extra"), [("s3", "s3fs", "s3"), ("gs", "gcsfs", "gcs")]
)
def test_a_missing_library_says_what_to_install(scheme, library, extra, monkeypatch):
    loaded = sys.modules[fsspec.get_filesystem_class.__module__]._registry
    monkeypatch.delitem(loaded, scheme, raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    assert_refused(
        rf"pip install '\.\[{extra}\]' in its checkout", file_system.exists, f"{scheme}://bucket/x"
    )


def test_an_unknown_scheme_is_one_sentence():
    assert_refused("x://a: expected a file system that fsspec knows", file_system.exists, "x://a")


def write(folder, name, age=0):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, ns=(10**18 - age, 10**18 - age))


def wait_for_bucket(*names):
    """Waits until these files, and no others, are in the bucket."""
    deadline = time.monotonic() + 60
    while not file_system.is_dir(URL) or sorted(transfers.tree(URL)) != sorted(names):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("clock", [1, -1], ids=["forth", "back"])
def test_a_bucket_never_has_a_record_before_its_checkpoint(impatient, clock, tmp_path, monkeypatch):
    """Also where the clock jumps back between two files."""
    done, upload, remove = [], transfers.upload, transfers.remove
    monkeypatch.setattr(
        transfers, "upload", lambda path, url: done.append(f"+{url[21:]}") or upload(path, url)
    )
    monkeypatch.setattr(transfers, "remove", lambda url: done.append(f"-{url[21:]}") or remove(url))
    first, second = tmp_path / "first", tmp_path / "second"
    with Mirror(URL, str(first), with_content=True) as copy:
        copy._stop.set()  # One pass, at the end.
        ages = {"ckpt-2.json": 5, "ckpt-2.data": 9, "a.jsonl": 1, "1/saved_model.pb": 8}
        ages |= {"ckpt-1.json": 11, "ckpt-1.index": 11}  # In one tick of the clock.
        for name, age in ages.items():
            write(first, name, clock * age)
    data, records = (["+ckpt-1.index", "+ckpt-2.data"], ["+ckpt-1.json", "+ckpt-2.json"])
    assert done == ["+a.jsonl", *data[::clock], *records[::clock], "+1/saved_model.pb"]
    done.clear()
    with Mirror(URL, str(second), with_content=True) as copy:
        copy._stop.set()
        write(second, "ckpt-3.data")
        for name in ("ckpt-1.index", "ckpt-1.json"):
            (second / name).unlink()
    assert done == ["+ckpt-3.data", "-ckpt-1.json", "-ckpt-1.index"]
    wait_for_bucket("ckpt-2.data", "ckpt-2.json", "ckpt-3.data", "a.jsonl", "1/saved_model.pb")


@pytest.mark.parametrize(
    "log",
    [
        "history.jsonl",
        "events.jsonl",
        "logs/scalars.jsonl",
        "a/run/history.jsonl",
        "logs/events.out.tfevents.7.v2",
    ],
)
def test_a_bucket_never_has_a_checkpoint_before_the_logs_of_its_steps(
    impatient, log, tmp_path, monkeypatch
):
    """At whichever upload the process is killed: the log is always the newest file."""
    upload, path = transfers.upload, tmp_path / log
    for last in range(1, 5):
        FlakyFileSystem.reset()
        sent = itertools.count(1)

        def upload_and_die(local, url, sent=sent, last=last):
            upload(local, url)
            if next(sent) == last:
                raise InterruptedError

        monkeypatch.setattr(transfers, "upload", upload_and_die)
        copy = Mirror(URL, str(tmp_path), with_content=True)
        with contextlib.suppress(InterruptedError):
            for step in (4, 8):
                write(tmp_path, f"run/ckpt-{step}.json", age=10**9)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(f"{n}\n" for n in range(step + 1)))
                copy.upload()
        steps = [int(re.findall(r"\d+", x)[0]) for x in transfers.tree(URL) if "ckpt" in x]
        if steps:
            assert len(file_system.read_bytes(f"{URL}/{log}").splitlines()) > max(steps)


def test_logs_that_grow_are_sent_seldom(impatient, tmp_path, monkeypatch):
    """With a checkpoint, once they have grown by a tenth, and at the end."""
    sent, upload = collections.Counter(), transfers.upload
    monkeypatch.setattr(
        transfers, "upload", lambda path, url: sent.update([url[21:]]) or upload(path, url)
    )
    with Mirror(URL, str(tmp_path), with_content=True) as copy:
        copy._stop.set()
        log = tmp_path / "history.jsonl"
        for step in range(1, 1001):
            with log.open("a") as file:
                file.write(f"{step:9}\n")
            if step == 777:
                write(tmp_path, "ckpt-777.json")
            copy.upload()
            if step == 777:
                assert file_system.size(f"{URL}/history.jsonl") == log.stat().st_size
        assert sent == {"history.jsonl": sent["history.jsonl"], "ckpt-777.json": 1}
        assert sent["history.jsonl"] < 70
    assert file_system.read_bytes(f"{URL}/history.jsonl") == log.read_bytes()


def test_files_outside_the_directory_and_unfinished_ones_are_not_copied(impatient, tmp_path):
    for name in ("../../evil", "good", f".{32 * 'a'}.tmp", f".{32 * 'b'}.tmp/weights"):
        FlakyFileSystem().pipe_file(f"/bucket/model/{name}", b"x")
    with Mirror(URL, str(tmp_path / "a/b"), with_content=True):
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["good"]


@pytest.mark.parametrize(
    "lost", [LOST, FileNotFoundError("no such bucket")], ids=["lost", "removed"]
)
def test_a_command_goes_on_while_the_bucket_is_lost_and_keeps_its_files(impatient, lost, tmp_path):
    sentence = rf"{URL} could not be written: .*kept in {tmp_path}"
    with (
        pytest.raises(NotUploadedError, match=sentence),
        Mirror(URL, str(tmp_path), with_content=True),
    ):
        write(tmp_path, "first")
        wait_for_bucket("first")
        FlakyFileSystem.error = lost
        write(tmp_path, "second")
        time.sleep(0.6)  # Longer than one call is patient.
        FlakyFileSystem.error = None
        wait_for_bucket("first", "second")
        write(tmp_path, "third")
        FlakyFileSystem.error = lost
    assert (tmp_path / "third").exists()


@pytest.mark.parametrize("error", [None, KeyError, KeyboardInterrupt])
def test_an_output_that_cannot_be_uploaded_is_kept(impatient, error, tmp_path, monkeypatch):
    """After any error, also where its lease cannot be given back."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    arguments, written = {"output": URL}, [tmp_path / "unknown"]
    with (
        pytest.raises(error or NotUploadedError),
        local_paths(arguments, {"output": "resume"}),
    ):
        written[0] = pathlib.Path(arguments["output"], "ckpt-7.index")
        FlakyFileSystem.error = LOST
        write(written[0].parent, written[0].name)
        if error:
            raise error
    assert written[0].exists()


def test_of_a_model_in_a_bucket_only_what_is_read_is_copied(tmp_path):
    FlakyFileSystem.reset()
    steps = [f"ckpt-{step}.{ending}" for step in (7, 14, 21) for ending in ("index", "json")]
    for name in ["config.yaml", "spiece.model", "logs/a", "run/ckpt-9.index", *steps]:
        FlakyFileSystem().pipe_file(f"/bucket/model/{name}", b"x")
    with local_copy(URL) as folder:
        found = {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*.*")}
    assert found == {"config.yaml", "spiece.model", *steps[2:]}
