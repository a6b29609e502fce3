"""An S3 server of moto on loopback, in a process of its own, and faults in between.

    python -m tests.projects.buckets.object_store     prints its port, and serves

`pause` makes it unreachable: the process stands still, as a lost network does.
"""

import contextlib
import os
import signal
import subprocess
import sys

BUCKET = "bucket"


@contextlib.contextmanager
def object_store():
    """Yields the process and the environment variables with which s3:// is this server."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        # moto prints a line of its own first.
        port = next(int(line) for line in process.stdout if line.strip().isdigit())
        yield (
            process,
            {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_DEFAULT_REGION": "us-east-1",
            },
        )
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def s3_at(monkeypatch, endpoint):
    """The file system of s3://, which is another server from now on."""
    import fsspec

    s3 = fsspec.get_filesystem_class("s3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    s3.clear_instance_cache()
    return s3


def _serve() -> None:
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    _, port = server.get_host_and_port()
    boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    ).create_bucket(Bucket=BUCKET)
    print(port, flush=True)
    signal.pause()


if __name__ == "__main__":
    os.environ.pop("AWS_ENDPOINT_URL", None)
    _serve()
