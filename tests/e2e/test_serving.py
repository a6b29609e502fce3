"""Exported models in processes and servers that know nothing of this package."""

import itertools
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from official.xlnet.data.examples import TextExample
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.task_prediction import load_task, predict_examples
from official.xlnet.serving.client.endpoint import connect
from official.xlnet.serving.export import commands_to_try
from tests.helpers.oracles.tokenizer_oracle import real_lines
from tests.helpers.served_models import mixed_texts
from tests.helpers.task_corpora import write_table
from tests.helpers.world import command
from tools.serving_stand_in import StandIn

NAME = "tone"
ROOT = pathlib.Path(__file__).parents[2]
HELPERS = pathlib.Path(__file__).parents[1] / "helpers"


@pytest.fixture(scope="module")
def folders(world):
    """(model directory, base path with version 1)."""
    return world.task("classification").model, world.export("classification")


@pytest.fixture(scope="module")
def server(folders):
    stand_in = StandIn(folders[1], NAME, poll_seconds=0.1)
    yield stand_in
    stand_in.close()


@pytest.mark.slow
def test_the_commands_to_try_an_export_answer_and_end_quietly(world, tmp_path, monkeypatch):
    """Outside of a checkout, where the stand-in is not at hand, the first one is Docker's."""
    base, out = world.export("classification"), tmp_path / "new.jsonl"
    monkeypatch.chdir(tmp_path)
    assert commands_to_try(base)[0] == f"cd {base} && docker compose up"
    monkeypatch.chdir(ROOT)
    serve, ask = (shlex.split(line, comments=True) for line in commands_to_try(base))
    serve = [sys.executable, *serve[1:], "--port=0", "--rest_api_port=0"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {key: x for key, x in os.environ.items() if key != "TF_CPP_MIN_LOG_LEVEL"}
    with subprocess.Popen(serve, env=environment, **streams) as process:
        port = json.loads(process.stdout.readline())["port"]
        flags = [f"--endpoint=localhost:{port}", f"--input={world.task('classification').dev}"]
        assert ask[:2] == ["xlnet", "predict"] and ask[3].startswith("--name=")
        command(ask[1], ask[3], *flags, output=out)
        with pytest.raises(DataError, match="set --name to the name of the model"):
            connect(f"localhost:{port}", "unknown").input_names()
        process.send_signal(signal.SIGINT)
        out_text, err = process.communicate()
    # On a busy machine it says that it is loading.
    lines = [x for x in err.splitlines() if not re.fullmatch(r"loading: \d+ s", x)]
    assert (process.returncode, out_text) == (0, "")
    assert lines[:2] == ["loading TensorFlow", f"loading {base}"] and len(lines) == 3
    assert lines[2].startswith(f"ready: gRPC on port {port}, REST on port ")
    assert out.read_text().count("label") > 1


def real_texts(number):
    texts = real_lines(number - 30) + mixed_texts(26)
    return [*texts, "é" * 100_000, "the of " * 14_286, "", "😀" * 99]


INPUTS = {
    "serving_default": ["text"],
    "token_ids": ["segment_ids", "token_ids"],
    "examples": ["examples"],
}
NAMES = {"models.config", "batching_parameters.txt", "docker-compose.yaml", "README.md"}


def inputs_of(result):
    return {name: signature["inputs"] for name, signature in result["signatures"].items()}


def test_last_line_and_files(folders, capfd):
    """The command that made the export is answered by what it wrote; another one is refused."""
    model_dir, base_path = folders
    flags = {"model": model_dir, "output": base_path, "version": 1}
    result = command("export", **flags)
    assert result["path"] == os.path.join(base_path, "1")
    assert inputs_of(result) == INPUTS
    assert set(os.listdir(base_path)) == {"1", "request.json"} | NAMES
    command("export", status=2, weights="int8", **flags)
    assert "exists" in capfd.readouterr().err


@pytest.mark.slow
def test_a_chosen_version_of_few_bytes(folders, tmp_path):
    output = str(tmp_path / "other")
    flags = {"model": folders[0], "output": output, "version": 7, "buckets": "11,17"}
    result = command("export", weights="int8", **flags)
    assert result["path"] == os.path.join(output, "7")
    assert inputs_of(result) == INPUTS
    assert set(os.listdir(output)) == {"7", "request.json"} | NAMES


@pytest.mark.slow
def test_fresh_process_gives_the_scores_of_keras(folders, tmp_path):
    """XLNET_BARE_PYTHON may name an interpreter with tensorflow and tensorflow-text alone."""
    model_dir, base_path = folders
    texts = real_texts(170)
    cuts = [0, 1, 8, 90, len(texts)]
    batches = [{"text": texts[a:b]} for a, b in itertools.pairwise(cuts)]
    (tmp_path / "batches.json").write_text(json.dumps(batches))
    ours = ("PYTHONPATH", "TF_USE_LEGACY_KERAS")  # What a server does not have.
    environment = {k: v for k, v in os.environ.items() if k not in ours}
    arguments = [f"{base_path}/1", tmp_path / "batches.json", tmp_path / "outputs.npz"]
    python = os.environ.get("XLNET_BARE_PYTHON", sys.executable)
    client = [python, HELPERS / "fresh_client.py", *arguments]
    done = subprocess.run(
        client, check=True, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert "custom gradients" not in done.stderr  # Which no server could compute.
    outputs = np.load(tmp_path / "outputs.npz")
    found = [outputs[f"{n}/probabilities"] for n in range(len(batches))]
    examples = [TextExample(str(n), (text,)) for n, text in enumerate(texts)]
    predictions = predict_examples(*load_task(model_dir), examples)
    expected = np.array([list(p["probabilities"].values()) for p in predictions])
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 0.1


def test_predict_with_an_endpoint_is_predict_with_the_model(folders, server, tmp_path, capsys):
    rows = [(text.replace("\t", " ").replace("\n", " "),) for text in mixed_texts(41)]
    source = write_table(tmp_path / "rows.jsonl", ("text",), rows)
    remote, found = {"endpoint": f"localhost:{server.port}", "name": NAME, "batch_size": 7}, []
    for number, flags in enumerate(({"model": folders[0]}, remote)):
        output = tmp_path / f"{number}.jsonl"
        assert command("predict", input=source, output=output, **flags)["rows"] == 41
        found.append([json.loads(line) for line in output.read_text().splitlines()])
    for here, there in zip(*found, strict=True):
        assert (here["id"], here["label"]) == (there["id"], there["label"])
        assert here["probabilities"] == pytest.approx(there["probabilities"], abs=1e-5)
    for wrong in ({"text": [1]}, {"words": ["a"]}):
        with pytest.raises(DataError, match="INVALID_ARGUMENT"):
            connect(f"localhost:{server.port}", NAME).predict(wrong)
    with pytest.raises(DataError, match=r"has the signatures .*serving_default.*, not 'none'"):
        connect(f"localhost:{server.port}", NAME, "none").input_names()
    with pytest.raises(ConnectionError, match=r"UNAVAILABLE: .* \(2 attempts\)"):
        connect("localhost:9", NAME, retries=1).input_names()
    with socket.create_server(("localhost", 0)) as silent:
        flags = {"endpoint": f"localhost:{silent.getsockname()[1]}", "timeout": 0.2, "retries": 1}
        command("predict", input=source, output=tmp_path / "none", status=2, **flags)
    assert "DEADLINE_EXCEEDED" in (error := capsys.readouterr().err) and "(2 attempts)" in error
    with pytest.raises(ConfigError, match="endpoint: expected host:port of gRPC"):
        connect("http://localhost:8501", NAME)
