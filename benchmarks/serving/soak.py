"""Soak test of a server with mixed load, invalid requests and version changes.

    python -m benchmarks.serving.soak --minutes=20

Exports a classifier with random weights (or --model, a fine-tuned model with one text) and serves
it by `tools.serving_stand_in` (not TF Serving) to several concurrent clients over gRPC and REST.
Every answer is compared with `xlnet.predict`, which runs neither the SavedModel nor its tokenizer.
Every --roll_seconds the version is copied as a new one and old versions are removed. The last line
is JSON; the exit status is 1 if a count of what went wrong is not 0:

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
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pydoc_data.topics import topics

import numpy as np
import psutil
from absl import app, flags

from benchmarks.serving.requests import random_texts, wrong_requests
from official.xlnet.cli import set_environment_defaults

FLAGS = flags.FLAGS
flags.DEFINE_float("minutes", 20.0, "Duration of the test.")
flags.DEFINE_string("model", None, "Fine-tuned classifier; default: a small one, random weights.")
flags.DEFINE_integer("clients", 3, "Number of concurrent clients.")
flags.DEFINE_integer("texts", 300, "Number of different texts in valid requests.")
flags.DEFINE_float("roll_seconds", 60.0, "Time between version changes.")

_NAME = "soak"
_CONFIG = {
    "model": {"vocab_size": 3000, "num_layers": 2, "d_model": 64, "num_heads": 4, "d_inner": 128}
    | {"mem_len": 0, "init_std": 0.2},  # Large, so that the text matters.
    "task": {"name": "classification", "labels": ["bad", "good"], "max_length": 128},
}
_BAD_SHARE = 0.2  # Share of invalid requests.
_BATCHES = [1, 1, 2, 8]
_TOLERANCE = 1e-5
_SAMPLES = 10  # Of the memory.
_POLL_SECONDS = 0.2

Expected = dict[str, np.ndarray]  # {text: probabilities [C]}, offline.


def main(argv: list[str]) -> None:
    del argv
    set_environment_defaults()
    with tempfile.TemporaryDirectory() as folder:
        results = soak(folder)
    print(json.dumps(results))
    sys.exit(int(any(results[key] for key in ("failed", "different", "wrong_codes"))))


def soak(folder: str) -> dict:
    """Runs the server and the clients, with the model's versions in a temporary folder."""
    from official import xlnet

    model = FLAGS.model or _random_model(folder)
    template = xlnet.export(model, os.path.join(folder, "template"))["path"]
    texts = random_texts(random.Random(0), FLAGS.texts)
    predictions = xlnet.predict(model, texts)
    expected = {
        text: np.array(list(prediction["probabilities"].values()))
        for text, prediction in zip(texts, predictions, strict=True)
    }
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
        threading.Thread(target=client, args=(number, ports, expected, counts, stop))
        for number in range(FLAGS.clients)
    ]
    for thread in clients:
        thread.start()
    try:
        versions, megabytes = _watch(server.pid, template, base_path)
    finally:
        stop.set()
        for thread in clients:
            thread.join()
        server.terminate()
        server.wait()
    keys = ("good", "failed", "different", "bad", "wrong_codes")
    return {**{k: counts[k] for k in keys}, "versions": versions, "megabytes": megabytes}


def client(
    number: int,
    ports: dict,
    expected: Expected,
    counts: collections.Counter,
    stop: threading.Event,
) -> None:
    """Sends random requests until `stop` is set.

    Args:
      number: random seed.
      ports: ports of the server.
      expected: texts of valid requests, with their probabilities.
      counts: counters to increase.
      stop: ends the client.
    """
    from official.xlnet.errors import DataError
    from official.xlnet.serving.client.endpoint import connect

    rng = random.Random(number)
    addresses = [f"localhost:{ports['port']}", f"http://localhost:{ports['rest_port']}"]
    endpoints = {
        (address, signature): connect(address, _NAME, signature, retries=0)
        for address in addresses
        for signature in ("serving_default", "token_ids", "examples")
    }
    wrong = {address: wrong_requests(address.startswith("http")) for address in addresses}
    while not stop.is_set():
        address = rng.choice(addresses)
        if rng.random() < _BAD_SHARE:
            signature, inputs = rng.choice(wrong[address])
            counts["bad"] += 1
            try:
                endpoints[address, signature].predict(inputs)
                error: Exception = AssertionError("answered")
            except (DataError, OSError) as refused:
                error = refused
            if not any(code in str(error) for code in ("INVALID_ARGUMENT", "HTTP 400")):
                counts["wrong_codes"] += 1
                print(f"{signature} {inputs!r:.200}: {error}", file=sys.stderr)
            continue
        texts = rng.choices(list(expected), k=rng.choice(_BATCHES))
        counts["good"] += 1
        try:
            found = endpoints[address, "serving_default"].predict({"text": texts})["probabilities"]
            counts["different"] += not np.allclose(
                found, [expected[text] for text in texts], atol=_TOLERANCE
            )
        except (DataError, OSError) as error:
            counts["failed"] += 1
            print(error, file=sys.stderr)


def _watch(pid: int, template: str, base_path: str) -> tuple[int, list[int]]:
    """Changes versions until the time is over; returns their number and the server's memory."""
    process, version = psutil.Process(pid), 1
    begin = time.monotonic()
    next_roll = begin + FLAGS.roll_seconds
    megabytes: list[int] = []
    while len(megabytes) <= _SAMPLES:
        elapsed = time.monotonic() - begin
        if elapsed >= len(megabytes) / _SAMPLES * 60 * FLAGS.minutes:
            megabytes.append(round(process.memory_info().rss / 1e6))
        if time.monotonic() > next_roll:
            next_roll += FLAGS.roll_seconds
            version += 1
            shutil.copytree(template, os.path.join(base_path, f".{version}"))
            os.rename(os.path.join(base_path, f".{version}"), os.path.join(base_path, str(version)))
            if version > 2:
                shutil.rmtree(os.path.join(base_path, str(version - 2)))
        time.sleep(_POLL_SECONDS)
    return version, megabytes


def _random_model(folder: str) -> str:
    """Writes a small classifier with random weights; returns its directory."""
    from data_prep.corpus.vocabulary import train_vocabulary
    from official import xlnet

    corpus, vocab = os.path.join(folder, "corpus.txt"), os.path.join(folder, "vocab")
    with open(corpus, "w", encoding="utf-8") as file:
        file.write("\n".join(topics.values()))
    config = xlnet.XLNetConfig.from_dict(_CONFIG)
    train_vocabulary([corpus], vocab, config.model.vocab_size)
    model_dir = os.path.join(folder, "model")
    model = xlnet.XLNetTaskModel(config)
    xlnet.save_pretrained(model, model_dir, os.path.join(vocab, "spiece.model"))
    return model_dir


if __name__ == "__main__":
    app.run(main)
