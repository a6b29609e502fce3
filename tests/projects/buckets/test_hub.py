"""`hf://`: models and data sets of the Hugging Face hub, from a stand-in for it."""

import glob
import json
import os
import pathlib
import random
import shlex
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
from huggingface_hub import constants, file_download

from official import xlnet
from official.xlnet.files import file_system
from official.xlnet.files.urls import local_copy
from official.xlnet.projects.buckets import hub as hub_module
from official.xlnet.projects.buckets.hub_file_system import _needed
from tests.helpers.documents import ROOT, blocks, commands
from tests.helpers.world import command
from tests.helpers.wrong_input import refused, run
from tests.projects.buckets.hub_server import TOKEN, hub_server
from tools.serving_stand_in import StandIn

FILES = {
    "config.json": b"{}",
    "spiece.model": b"vocabulary",
    "model.safetensors": b"safe",
    "pytorch_model.bin": b"pickle",
    "tf_model.h5": b"other",
    "sub/rows.tsv": b"label\ttext\n",
}
NAME, URL = "xlnet/tiny-cased", "hf://xlnet/tiny-cased"


def forget():
    """What a process knows of the hub, as if another one began."""
    hub_module.files_of.cache_clear()
    hub_module.download.cache_clear()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A stand-in hub with two repositories, and an empty cache."""
    with hub_server() as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        template = served.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(file_download, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
        served.put(NAME, FILES)
        served.put(NAME, {"config.json": b"{1}"}, revision="v1")
        served.put("people/rows", {"a/train.tsv": b"rows", "b.txt": b"text"}, kind="datasets")
        forget()
        yield served
    forget()


@pytest.mark.parametrize(
    "pattern", ["*.txt", "**/x*.txt", "a/**/x*.txt", "a/*/[xy]?.txt", "**", "a/**", "a/x**", "?2.*"]
)
def test_patterns_match_as_those_of_local_files(pattern, tmp_path, monkeypatch):
    names = [
        "x1.txt",
        "y2.txt",
        "a/x3.txt",
        "a/xd/y4.txt",
        "a/b/x5.txt",
        "a/b/c/x6.txt",
        "xe/y7.md",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(hub_module, "files_of", lambda repository: dict.fromkeys(names, 0))
    found = glob.glob(pattern, root_dir=tmp_path, recursive=True)
    expected = sorted(f"{URL}/{name}" for name in found if (tmp_path / name).is_file())
    assert file_system.glob(f"{URL}/{pattern}") == expected


@pytest.mark.quick
def test_a_file_and_a_folder_are_read_by_their_url(hub):
    assert file_system.read_bytes(f"{URL}/spiece.model") == b"vocabulary"
    assert file_system.read_bytes(f"{URL}@v1/config.json") == b"{1}"
    assert file_system.is_dir(URL) and file_system.is_dir(f"{URL}/sub")
    assert not file_system.exists(f"{URL}/nothing")
    assert file_system.names(URL) == sorted({name.partition("/")[0] for name in FILES})
    (entry,) = file_system.find("hf://datasets/people/rows/*.txt")
    assert (entry.path, entry.size) == ("hf://datasets/people/rows/b.txt", 4)
    with local_copy(URL) as folder:
        copied = {path.name: path.read_bytes() for path in pathlib.Path(folder).glob("*.*")}
        assert copied == {k: FILES[k] for k in ("config.json", "spiece.model", "model.safetensors")}
    assert not any("pytorch_model" in path for _, path in hub.requests)
    hub.status = 503  # Nobody answers any more, and another process begins.
    forget()
    assert file_system.read_bytes(f"{URL}/config.json") == b"{}"


def wanted(names):
    """What is read of a folder of files, by hand: one format of each weights, and no others."""
    roles = {"pytorch_model": "model", "model": "model", "adapter_model": "adapters"}
    formats = {"bin": {}, "safetensors": {}}
    kept = set()
    for name in names:
        stem, _, extension = name.partition(".")
        if extension in formats:
            formats[extension][name] = roles.get(stem.partition("-")[0], "other")
        elif extension not in ("h5", "onnx"):
            kept.add(name)
    has = set(formats["safetensors"].values())
    kept |= {*formats["safetensors"]}
    for name, role in formats["bin"].items():
        if role not in has and "model" not in has:
            kept.add(name)
    return kept


def test_pickles_are_left_out_where_their_own_folder_has_safetensors():
    """Not those of other folders, which may be other models; nor those of other weights."""
    rng = random.Random(3)
    possible = [
        *("config.json", "model.safetensors", "pytorch_model.bin", "adapter_model.safetensors"),
        *("adapter_model.bin", "pytorch_model-00001-of-00002.bin", "tf_model.h5"),
        *("model-00002-of-00003.safetensors", "onnx.onnx", "model.safetensors.index.json"),
    ]
    folders = ["", "a/", "a/b/", "c/", "model/"]
    for _ in range(200):
        files, expected = {}, set()
        for folder in folders:
            names = rng.sample(possible, rng.randrange(len(possible)))
            files |= dict.fromkeys([folder + name for name in names], 1)
            expected |= {folder + name for name in wanted(names)}
        assert set(_needed(files)) == expected


# {what is wrong: (URL, what the sentence says)}
WRONG = {
    "missing": ("hf://xlnet/nothing", "none of this name that is open to everybody"),
    "private": ("hf://xlnet/private", "for a private one, set HF_TOKEN"),
    "gated": ("hf://xlnet/gated", "accept its terms at"),
    "revision": (f"{URL}@v9", "a branch, tag or commit after @, got 'v9'"),
    "form": ("hf://tiny-cased", "expected hf://OWNER/NAME"),
    "name": ("hf://xlnet/tiny--cased", "expected hf://OWNER/NAME"),
    "token": (URL, "a token that may do this, got the answer 401"),
    "fault": (URL, "got the status 500"),
    "network": (URL, "could not be reached"),
    "offline": (URL, "HF_HUB_OFFLINE is set"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_cannot_be_read_is_one_sentence(kind, hub, monkeypatch, capfd):
    url, expected = WRONG[kind]
    for name in ("private", "gated"):
        hub.put(f"xlnet/{name}", FILES)
        getattr(hub, name).add(f"xlnet/{name}")
    if kind == "token":
        monkeypatch.setenv("HF_TOKEN", "hf_of_yesterday")
    if kind == "fault":
        hub.status = 500
    if kind == "network":
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    if kind == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for verb in ("score --model={} --text=the", "convert --source={} --output=x"):
        sentence = refused(run(capfd, *verb.format(url).split()))
        assert url in sentence and expected in sentence
    assert not os.path.exists("x")


@pytest.mark.usefixtures("hub")
def test_a_private_model_is_read_with_a_token(hub, monkeypatch):
    hub.private.add(NAME)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert file_system.read_bytes(f"{URL}/config.json") == b"{}"


def hf_folder(world, folder):
    """{path: bytes} of a pre-trained model in HF format."""
    command("convert", source=world.pretrained, output=folder, to="hf")
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


@pytest.mark.usefixtures("eager")
def test_a_model_is_saved_with_a_token_in_one_commit(hub, world, tmp_path, monkeypatch, capfd):
    convert = ["convert", f"--source={world.pretrained}", "--to=hf", "--output=hf://me/new"]
    assert "expected a token to write with" in refused(run(capfd, *convert))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert run(capfd, *convert).status == 0
    saved = dict(hub.files["models", "me/new"]["main"])
    expected = hf_folder(world, tmp_path / "hf")
    assert saved.pop(".gitattributes") == b"" and "me/new" in hub.private
    assert saved == expected
    assert sum(path.endswith("/commit/main") for _, path in hub.requests) == 1
    texts = ["the water was made first", "but not now"]
    vectors = xlnet.embed("hf://me/new", texts)
    np.testing.assert_array_equal(vectors, xlnet.embed(tmp_path / "hf", texts))
    assert "a new or an empty folder" in refused(run(capfd, *convert))
    hub.is_read_only = True
    sentence = refused(run(capfd, *convert[:-1], "--output=hf://me/newer"))
    assert "a token that may do this, got the answer 403" in sentence
    kept = pathlib.Path(sentence.partition("it is kept in ")[2])
    assert (kept / "model.safetensors").read_bytes() == expected["model.safetensors"]
    monkeypatch.setenv("HF_TOKEN", "hf_of_yesterday")
    assert "got the answer 401" in refused(run(capfd, *convert[:-1], "--output=hf://me/newer"))


def test_runs_and_files_written_one_by_one_are_not_saved_there(hub, world, monkeypatch, capfd):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    run_flags = ["pretrain", f"--config={world.config}", f"--data={world.data}"]
    sentence = refused(run(capfd, *run_flags, "--output=hf://me/run"))
    assert "xlnet convert --output=hf://me/run" in sentence
    hub.put("me/vocab", {".gitattributes": b""})
    vocab = ["vocab", f"--input={world.text}", "--size=99", "--output=hf://me/vocab"]
    assert "to which export and convert write" in refused(run(capfd, *vocab))
    assert ("models", "me/run") not in hub.files


@pytest.mark.nightly
def test_the_first_commands_of_the_readme_serve_a_classifier_from_published_weights(
    hub, world, tmp_path, capfd
):
    """As their reader calls them; offline, the cache has all of it."""
    hub.put("xlnet/xlnet-base-cased", hf_folder(world, tmp_path / "hf"))
    table = "".join(f"{('neg', 'pos')[n % 2]}\tthe water {n} was made\n" for n in range(40))
    for name in ("train.tsv", "new.tsv"):
        (tmp_path / name).write_text("label\ttext\n" + table)
    (block,) = [x for x in blocks(ROOT / "README.md") if "hf://" in x.code and x.language == "sh"]
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}
    environment |= {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"}
    for variables in ({}, {"HF_HUB_OFFLINE": "1"}):
        for words in commands(block):
            if words[0] != "xlnet":
                continue
            quick = ["--set=task.epochs=1"] if words[1] == "finetune" else []
            done = subprocess.run(
                [sys.executable, "-m", "official.xlnet.cli", *words[1:], *quick],
                cwd=tmp_path,
                env=environment | variables,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr[-3000:]}"
            assert "Fetching" not in done.stderr  # Bars are for terminals.
            json.loads(done.stdout.splitlines()[-1])
        rows = (tmp_path / "new.jsonl").read_text().splitlines()
        assert {json.loads(row)["label"] for row in rows} <= {"neg", "pos"} and len(rows) == 40
        with closing(StandIn(str(tmp_path / "runs/served"), "reviews")) as server:
            ask = ["predict", f"--endpoint=localhost:{server.port}", "--name=reviews"]
            answered = run(capfd, *ask, f"--input={tmp_path}/new.tsv", f"--output={tmp_path}/asked")
        assert answered.status == 0
        for row, asked in zip(rows, (tmp_path / "asked").read_text().splitlines(), strict=True):
            row, asked = json.loads(row), json.loads(asked)
            assert asked["probabilities"] == pytest.approx(row["probabilities"], abs=1e-5)
            assert asked["label"] == row["label"]
        for made in ("runs", "new.jsonl"):
            place = tmp_path / made
            place.rename(tmp_path / f"{made}{len(variables)}")
        hub.status = 500
