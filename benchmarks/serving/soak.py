"""Soak test of a server with mixed load, invalid requests and version changes.

    python -m benchmarks.serving.soak --minutes=20

Exports a classifier with random weights and serves it by `tools.serving_stand_in` (not TF Serving)
to several concurrent clients over gRPC. Every answer is compared with `xlnet.predict`,
which runs neither the SavedModel nor its tokenizer. Every minute the version is copied as a new one
and old versions are removed. The last line is JSON; the exit status is 1 if a count of what went
wrong is not 0:

    good, failed        number of valid requests, and how many of them were not answered
    different           answers that differ from offline prediction by more than 1e-5
    bad, wrong_codes    number of invalid requests, and those not rejected as INVALID_ARGUMENT
    versions            number of versions served
    megabytes           resident memory of the server, at the start and after each tenth
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np
import psutil

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.models import write_model
from benchmarks.serving.requests import random_texts, wrong_requests
from official import xlnet
from official.xlnet.errors import DataError
from official.xlnet.serving.client.endpoint import connect

_NAME = "soak"
_CONFIG = {
    "model": {"vocab_size": 3000, "num_layers": 2, "d_model": 64, "num_heads": 4, "d_inner": 128}
    | {"mem_len": 0, "init_std": 0.2},  # Large, so that the text matters.
    "task": {"name": "classification", "labels": ["bad", "good"], "max_length": 128},
}
_CLIENTS = 3
_TEXTS = 300  # Different ones in valid requests.
_ROLL_SECONDS = 60.0  # Between changes of the version.
_BAD_SHARE = 0.2  # Share of invalid requests.
_BATCHES = [1, 1, 2, 8]
_TOLERANCE = 1e-5
_SAMPLES = 10  # Of the memory.
_POLL_SECONDS = 0.2

Expected = dict[str, np.ndarray]  # {text: probabilities [C]}, offline.


def main() -> int:
    flags = parse(__doc__, minutes=flag(20.0, "duration of the test"))
    with tempfile.TemporaryDirectory() as folder:
        results = soak(folder, 60 * flags.minutes)
    print(json.dumps(results))
    return int(any(results[key] for key in ("failed", "different", "wrong_codes")))


def soak(folder: str, seconds: float) -> dict[str, Any]:
    """Runs the server and the clients, with the model's versions in a temporary folder."""
    config = xlnet.XLNetConfig.from_dict(_CONFIG)
    model, base_path = f"{folder}/model", pathlib.Path(folder, _NAME)
    write_model(model, xlnet.XLNetTaskModel, config)
    template = xlnet.export(model, f"{folder}/template")["path"]
    texts = random_texts(random.Random(0), _TEXTS)
    predictions = (list(row["probabilities"].values()) for row in xlnet.predict(model, texts))
    expected = dict(zip(texts, map(np.array, predictions), strict=True))
    shutil.copytree(template, base_path / "1")
    command = [sys.executable, "-m", "tools.serving_stand_in", f"--base_path={base_path}"]
    command += [f"--name={_NAME}", "--port=0", "--rest_api_port=0", "--poll_seconds=0.5"]
    counts = collections.Counter(dict.fromkeys(("good", "failed", "different"), 0))
    counts.update(bad=0, wrong_codes=0)
    stop = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        ports = json.loads(server.stdout.readline())
        clients = [
            threading.Thread(
                target=_client, args=(random.Random(seed), ports, expected, counts, stop)
            )
            for seed in range(_CLIENTS)
        ]
        for thread in clients:
            thread.start()
        try:
            watched = _watch(server.pid, template, base_path, seconds)
        finally:
            stop.set()
            for thread in clients:
                thread.join()
            server.terminate()
    return {**counts, **watched}


def _client(
    rng: random.Random,
    ports: dict[str, int],
    expected: Expected,
    counts: collections.Counter[str],
    stop: threading.Event,
) -> None:
    """Sends random requests until `stop` is set.

    Args:
      rng: source of the requests.
      ports: ports of the server.
      expected: texts of valid requests, with their probabilities.
      counts: counters to increase.
      stop: ends the client.
    """
    endpoints = {
        signature: connect(f"localhost:{ports['port']}", _NAME, signature, retries=0)
        for signature in ("serving_default", "token_ids", "examples")
    }
    wrong = wrong_requests()
    while not stop.is_set():
        is_bad = rng.random() < _BAD_SHARE
        texts = rng.choices(list(expected), k=rng.choice(_BATCHES))
        signature, inputs = "serving_default", {"text": texts}
        if is_bad:
            signature, inputs = rng.choice(wrong)
        counts["bad" if is_bad else "good"] += 1
        try:
            found = endpoints[signature].predict(inputs)
            error = "answered"
        except (DataError, OSError) as refused:
            error = str(refused)
        if error == "answered" and not is_bad:
            rows = [expected[text] for text in texts]
            counts["different"] += not np.allclose(found["probabilities"], rows, atol=_TOLERANCE)
        elif not is_bad or "INVALID_ARGUMENT" not in error:
            counts["wrong_codes" if is_bad else "failed"] += 1
            print(f"{signature} {inputs!r:.200}: {error}", file=sys.stderr)


def _watch(pid: int, template: str, base_path: pathlib.Path, duration: float) -> dict[str, Any]:
    """Changes versions until the time is over; returns their number and the server's memory."""
    process, version = psutil.Process(pid), 1
    begin = time.monotonic()
    megabytes: list[int] = []
    while len(megabytes) <= _SAMPLES:
        elapsed = time.monotonic() - begin
        if elapsed >= len(megabytes) / _SAMPLES * duration:
            megabytes.append(round(process.memory_info().rss / 1e6))
        if elapsed > version * _ROLL_SECONDS:
            version += 1
            shutil.copytree(template, base_path / f".{version}")
            os.rename(base_path / f".{version}", base_path / str(version))
            shutil.rmtree(base_path / str(version - 2), ignore_errors=True)
        time.sleep(_POLL_SECONDS)
    return {"versions": version, "megabytes": megabytes}


if __name__ == "__main__":
    sys.exit(main())
