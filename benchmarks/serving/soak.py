"""Soak test of a server with mixed load, invalid requests and version changes.

    python -m benchmarks.serving.soak --minutes=20 --base_path=DIR

DIR has a version of a text task, written by `xlnet export`. The stand-in server of
`tools.serving_stand_in` (not TF Serving) serves it to several concurrent clients over gRPC and
REST. Every --roll_seconds the version is copied as a new one and old versions are removed. The last
line is JSON:

    good, failed        number of valid requests, and how many of them failed
    bad, wrong_codes    number of invalid requests, and those not rejected as INVALID_ARGUMENT
    versions            number of versions served
    megabytes           resident memory of the server after each tenth of the duration
"""

from __future__ import annotations

import collections
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pydoc_data.topics import topics

import psutil
from absl import app, flags

from official.xlnet.cli import set_environment_defaults

FLAGS = flags.FLAGS
flags.DEFINE_float("minutes", 20.0, "Duration of the test.")
flags.DEFINE_string("base_path", None, "Base path of the exported model.", required=True)
flags.DEFINE_integer("clients", 3, "Number of concurrent clients.")
flags.DEFINE_float("roll_seconds", 60.0, "Time between version changes.")

_NAME = "soak"
_BAD_SHARE = 0.1  # Share of invalid requests.
_BAD: list[dict] = [{"text": ["a" * 1_000_000]}, {"text": [1]}, {"words": ["a"]}, {}]


def main(argv: list[str]) -> None:
    del argv
    set_environment_defaults()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(soak(folder)))


def soak(folder: str) -> dict:
    """Runs the server and the clients, with the versions in a temporary folder."""
    source = max((e for e in os.listdir(FLAGS.base_path) if e.isdigit()), key=int)
    template = os.path.join(FLAGS.base_path, source)
    base_path = os.path.join(folder, _NAME)
    shutil.copytree(template, os.path.join(base_path, "1"))
    server = subprocess.Popen(
        [sys.executable, "-m", "tools.serving_stand_in", f"--base_path={base_path}"]
        + [f"--name={_NAME}", "--port=0", "--rest_api_port=0", "--poll_seconds=0.5"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout
    ports = json.loads(server.stdout.readline())
    counts: collections.Counter[str] = collections.Counter()
    stop = threading.Event()
    clients = [
        threading.Thread(target=client, args=(number, ports, counts, stop))
        for number in range(FLAGS.clients)
    ]
    for thread in clients:
        thread.start()
    megabytes: list[int] = []
    version = 1
    begin = time.monotonic()
    next_roll = begin + FLAGS.roll_seconds
    process = psutil.Process(server.pid)
    while (elapsed := time.monotonic() - begin) < 60 * FLAGS.minutes:
        if len(megabytes) < int(10 * elapsed / (60 * FLAGS.minutes)):
            megabytes.append(round(process.memory_info().rss / 1e6))
        if time.monotonic() > next_roll:
            next_roll += FLAGS.roll_seconds
            version += 1
            shutil.copytree(template, os.path.join(base_path, f".{version}"))
            os.rename(os.path.join(base_path, f".{version}"), os.path.join(base_path, str(version)))
            if version > 2:
                shutil.rmtree(os.path.join(base_path, str(version - 2)))
        time.sleep(0.2)
    stop.set()
    for thread in clients:
        thread.join()
    megabytes.append(round(process.memory_info().rss / 1e6))
    server.terminate()
    server.wait()
    keys = ("good", "failed", "bad", "wrong_codes")
    return {**{k: counts[k] for k in keys}, "versions": version, "megabytes": megabytes}


def client(number: int, ports: dict, counts: collections.Counter, stop: threading.Event) -> None:
    """Sends random requests until `stop` is set.

    Args:
      number: random seed.
      ports: ports of the server.
      counts: counters to increase.
      stop: ends the client.
    """
    from official.xlnet.errors import DataError
    from official.xlnet.serving.client.endpoint import connect

    rng = random.Random(number)
    lines = [line for topic in topics.values() for line in topic.splitlines() if line.strip()]
    endpoints = [
        connect(f"localhost:{ports['port']}", _NAME, retries=0),
        connect(f"http://localhost:{ports['rest_port']}", _NAME, retries=0),
    ]
    while not stop.is_set():
        endpoint = rng.choice(endpoints)
        if rng.random() < _BAD_SHARE:
            counts["bad"] += 1
            try:
                endpoint.predict(rng.choice(_BAD))
                counts["wrong_codes"] += 1
            except DataError as error:
                right = "INVALID_ARGUMENT" in str(error) or "HTTP 400" in str(error)
                counts["wrong_codes"] += not right
            except OSError:
                counts["wrong_codes"] += 1
            continue
        texts = [
            " ".join(rng.choices(lines, k=rng.choice([0, 1, 1, 1, 2, 5, 40])))
            for _ in range(rng.choice([1, 1, 2, 8]))
        ]
        counts["good"] += 1
        try:
            outputs = endpoint.predict({"text": texts})
            counts["failed"] += len(outputs["probabilities"]) != len(texts)
        except (DataError, OSError) as error:
            counts["failed"] += 1
            print(error, file=sys.stderr)


if __name__ == "__main__":
    app.run(main)
