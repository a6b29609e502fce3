"""Conversion between the TF1 release's form, HF's and ours: every weight, every wrong input."""

import filecmp
import json
import os
import pathlib
import pickle
import re
import struct
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from official.xlnet import cli
from official.xlnet.api.convert import convert
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.convert.differences import differences
from official.xlnet.checkpoints.convert.torch_reader import TorchFile
from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
from official.xlnet.checkpoints.restoring import load_encoder
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import DataError
from official.xlnet.files.json_files import read_json
from tests.helpers import checkpoints
from tests.helpers.compare import assert_refused
from tests.helpers.package.of_projects import rows


@pytest.fixture
def tf1(tmp_path, vocab_file):
    values = checkpoints.random_values(checkpoints.tf1_shapes())
    return checkpoints.write_tf1(tmp_path / "tf1", vocab_file, values)


@pytest.fixture
def hf(tmp_path, vocab_file):
    values = checkpoints.hf_of_tf1(checkpoints.random_values(checkpoints.tf1_shapes()))
    return checkpoints.write_hf(tmp_path / "hf", vocab_file, values)


@pytest.mark.parametrize(
    ("head", "untie_r"), [(None, False), *((head, True) for head in (None, *checkpoints.TF1_HEADS))]
)
def test_round_trips_are_exact(tmp_path, vocab_file, head, untie_r):
    values = checkpoints.random_values(checkpoints.tf1_shapes(untie_r, head))
    source = checkpoints.write_tf1(tmp_path / "tf1", vocab_file, values, untie_r)
    expected = {"left_over": [], "not_filled": [] if head is None else ["lm_head/bias"]}
    expected["parameters"] = sum(value.size for value in values.values())
    assert convert(source, f"{tmp_path}/ours").items() >= expected.items()
    convert(f"{tmp_path}/ours", f"{tmp_path}/tf1_again", "tf1")
    checkpoints.assert_same(checkpoints.read_tf1(f"{tmp_path}/tf1_again"), values)
    config = read_json(f"{source}/xlnet_config.json")
    assert read_json(f"{tmp_path}/tf1_again/xlnet_config.json") == config

    convert(f"{tmp_path}/ours", f"{tmp_path}/hf", "hf")
    hf_values = checkpoints.hf_of_tf1(values)
    checkpoints.assert_same(checkpoints.read_hf(f"{tmp_path}/hf"), hf_values)
    assert convert(f"{tmp_path}/hf", f"{tmp_path}/ours_again")["left_over"] == []
    convert(f"{tmp_path}/ours_again", f"{tmp_path}/hf_again", "hf")
    checkpoints.assert_same(checkpoints.read_hf(f"{tmp_path}/hf_again"), hf_values)
    for name in ("config.json", "spiece.model"):
        assert filecmp.cmp(tmp_path / "hf" / name, tmp_path / "hf_again" / name, shallow=False)


@pytest.mark.parametrize("form", ["xlnet", "hf", "tf1"])
def test_the_same_conversion_again_leaves_its_folder_as_it_is(tmp_path, tf1, form):
    source, output = tf1, tmp_path / "output"
    if form != "xlnet":
        convert(tf1, source := f"{tmp_path}/ours")
    first = convert(source, output, form)
    (tmp_path / "any file").touch()  # Everybody may read what may be read of it.
    assert {path.stat().st_mode for path in output.rglob("*") if path.is_file()} == {
        (tmp_path / "any file").stat().st_mode
    }
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    assert convert(source, output, form) == first
    with pytest.raises(DataError, match="with the same content, got one with other files"):
        convert(source, output, form, set=["model.clamp_len=7"])
    assert before == {path: path.stat().st_mtime_ns for path in output.rglob("*")}


@pytest.mark.parametrize("kind", ["causal", "denoising"])
@pytest.mark.parametrize("form", ["tf1", "hf"])
def test_other_formats_know_the_objective(tmp_path, tf1, form, kind):
    convert(tf1, f"{tmp_path}/ours", overrides=[f"objective.kind={kind}"])
    convert(f"{tmp_path}/ours", f"{tmp_path}/theirs", form)
    convert(f"{tmp_path}/theirs", f"{tmp_path}/again")
    again = XLNetConfig.load(f"{tmp_path}/again")
    assert again.objective.kind == kind
    assert again.reads_left_to_right == (kind == "causal")
    if form == "hf":  # HF's `uni` is what our objective does: tests/parity/test_causal_hf.py.
        settings = read_json(f"{tmp_path}/theirs/config.json")
        assert settings["attn_type"] == ("uni" if kind == "causal" else "bi")


def test_settings_of_hf(tmp_path, vocab_file):
    values = checkpoints.hf_of_tf1(checkpoints.random_values(checkpoints.tf1_shapes()))
    settings = {"attn_type": "uni", "clamp_len": 13, "reuse_len": 509, "mem_len": None}
    source = checkpoints.write_hf(tmp_path / "hf", vocab_file, values, dropout=0, **settings)
    tokenizer = {"do_lower_case": True, "model_max_length": int(1e30)}  # No limit.
    pathlib.Path(source, "tokenizer_config.json").write_text(json.dumps(tokenizer))
    convert(source, f"{tmp_path}/ours")
    config = XLNetConfig.load(f"{tmp_path}/ours")
    model = {"attention_type": "uni", "clamp_len": 13, "mem_len": 384, "dropout": 0, "dropatt": 0}
    data = {"seq_len": 1018, "reuse_len": 509, "lowercase": True, "keep_accents": False}
    assert vars(config.model).items() >= model.items() and vars(config.data).items() >= data.items()
    assert config.task.max_length == XLNetConfig.from_dict({}).task.max_length
    convert(f"{tmp_path}/ours", f"{tmp_path}/again", "hf")
    names = "config.json", "tokenizer_config.json"
    first, second = (read_json(f"{tmp_path}/again/{name}") for name in names)
    assert first.items() >= {"attn_type": "uni", "clamp_len": 13, "reuse_len": 509}.items()
    assert second["do_lower_case"] and "token_type_ids" in second["model_input_names"]


def test_an_untied_lm_head_is_refused_or_reported(tmp_path, vocab_file):
    values = checkpoints.hf_of_tf1(checkpoints.random_values(checkpoints.tf1_shapes()))
    tied = values["transformer.word_embedding.weight"]
    for name, weight in (("tied", tied), ("untied", tied[::-1].copy())):
        source = checkpoints.write_hf(
            tmp_path / name, vocab_file, {**values, "lm_loss.weight": weight}
        )
        load_encoder(source)
        if name == "tied":
            load_pretrainer(source)
    assert_refused("got another lm_loss.weight; xlnet convert drops it", load_pretrainer, source)
    assert convert(source, tmp_path / "ours")["left_over"] == ["lm_loss.weight"]
    load_pretrainer(tmp_path / "ours")


def test_the_model_card_has_the_metrics_of_the_task_and_no_license(tmp_path, world):
    model = world.task("classification").model
    metrics = read_json(f"{model}/metrics.json")
    convert(model, f"{tmp_path}/hf", "hf")
    card = pathlib.Path(tmp_path, "hf", "README.md").read_text()
    assert card.startswith("---\n") and "\nlicense:\n" in card
    assert f"| accuracy | {metrics['accuracy']:.4g} |" in card
    assert "fine-tuned for classification" in card


NAMES = ["input_ids", "token_type_ids", "attention_mask"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"added_tokens_decoder": {}}, True),  # Of transformers 4.
        ({"backend": "tokenizers"}, False),  # Of 5.
        ({"backend": "tokenizers", "model_input_names": NAMES}, True),
        ({"model_input_names": NAMES[::2]}, False),
    ],
)
def test_segments_that_a_tokenizer_gives(tmp_path, hf, settings, expected):
    pathlib.Path(hf, "tokenizer_config.json").write_text(json.dumps(settings))
    convert(hf, f"{tmp_path}/ours")
    assert XLNetConfig.load(f"{tmp_path}/ours").model.segments == expected
    convert(f"{tmp_path}/ours", f"{tmp_path}/again", "hf")
    names = read_json(f"{tmp_path}/again/tokenizer_config.json")["model_input_names"]
    assert names == (NAMES if expected else NAMES[::2])
    config = XLNetConfig.load(f"{tmp_path}/ours")
    assert any("model.segments" in each for each in differences(config, "tf1")) != expected


def test_a_key_that_is_not_used_is_named_in_a_line(hf, caplog):
    """Not what HF always writes: tests/real/test_transformers.py."""
    change_json(hf, "config.json", scale_attention=2.0, use_cache=True, head_dim=None)
    pathlib.Path(hf, "tokenizer_config.json").write_text('{"padding_side": "right"}')
    for _ in range(2):
        load_config(hf)
    said = [r.getMessage() for r in caplog.records if "does not use" in r.getMessage()]
    assert [sentence.rpartition(": ")[2] for sentence in said] == [
        "scale_attention",
        "padding_side",
    ]


def change_json(folder, name, **changes):
    pathlib.Path(folder, name).write_text(json.dumps({**read_json(f"{folder}/{name}"), **changes}))


def edit(path, function):
    path = pathlib.Path(path)
    path.write_bytes(function(path.read_bytes()))


WRONG = {
    "neither form": ("tf1", lambda d: os.unlink(f"{d}/xlnet_config.json"), "no model found"),
    "no data": (
        "tf1",
        lambda d: os.unlink(f"{d}/xlnet_model.ckpt.data-00000-of-00001"),
        "xlnet_model.ckpt.data-00000-of-00001",
    ),
    "no index": ("tf1", lambda d: os.unlink(f"{d}/xlnet_model.ckpt.index"), "ckpt.index, got 0"),
    "truncated data": (
        "tf1",
        lambda d: edit(f"{d}/xlnet_model.ckpt.data-00000-of-00001", lambda b: b[: len(b) // 2]),
        "xlnet_model.ckpt cannot be used",
    ),
    "wrong checksum": (
        "tf1",
        lambda d: edit(
            f"{d}/xlnet_model.ckpt.data-00000-of-00001", lambda b: bytes([b[0] ^ 4]) + b[1:]
        ),
        "xlnet_model.ckpt cannot be used",
    ),
    "damaged index": (
        "tf1",
        lambda d: edit(f"{d}/xlnet_model.ckpt.index", lambda b: b[: len(b) // 2]),
        "xlnet_model.ckpt cannot be used",
    ),
    "another width": (
        "tf1",
        lambda d: change_json(d, "xlnet_config.json", d_inner=31),
        "'model/transformer/layer_0/ff/layer_1/kernel': expected shape [22, 31], got [22, 29]",
    ),
    "more layers": (
        "tf1",
        lambda d: change_json(d, "xlnet_config.json", n_layer=4),
        "expected a variable 'model/transformer/layer_3/rel_attn/q/kernel', got none",
    ),
    "odd heads": (
        "tf1",
        lambda d: change_json(d, "xlnet_config.json", d_head=7),
        "d_head: expected d_model / n_head = 22 / 2, got 7",
    ),
    "a key missing": (
        "tf1",
        lambda d: change_json(d, "xlnet_config.json", n_token=None),
        "n_token: expected an integer, got None",
    ),
    "no JSON": (
        "hf",
        lambda d: edit(f"{d}/config.json", lambda b: b[:-3]),
        "config.json is not valid JSON",
    ),
    "another model": (
        "hf",
        lambda d: change_json(d, "config.json", model_type="bert"),
        "model_type: expected 'xlnet', got 'bert'",
    ),
    "unknown activation": (
        "hf",
        lambda d: change_json(d, "config.json", ff_activation="swish"),
        "ff_activation: expected one of gelu",
    ),
    "no weights": ("hf", lambda d: os.unlink(f"{d}/model.safetensors"), "expected model.safe"),
    "truncated weights": (
        "hf",
        lambda d: edit(f"{d}/model.safetensors", lambda b: b[:-100]),
        "not a valid safetensors file",
    ),
    "another width in the weights": (
        "hf",
        lambda d: change_json(d, "config.json", d_model=24, d_head=12),
        "'transformer.word_embedding.weight': expected shape [2000, 24], got [2000, 22]",
    ),
    "no vocabulary": ("hf", lambda d: os.unlink(f"{d}/spiece.model"), "no vocabulary at"),
    "damaged vocabulary": (
        "hf",
        lambda d: edit(f"{d}/spiece.model", lambda b: b[: len(b) // 2]),
        "expected a SentencePiece model",
    ),
}


def with_weights(**changes):
    """Changes variables of a folder, each by a function."""

    def spoil(folder):
        values = dict(safetensors.numpy.load_file(f"{folder}/model.safetensors"))
        for name, change in changes.items():
            name = name.replace("__", ".")
            values[name] = change(values.get(name))
        safetensors.numpy.save_file(values, f"{folder}/model.safetensors")

    return spoil


def with_index(weight_map):
    def spoil(folder):
        os.rename(f"{folder}/model.safetensors", f"{folder}/../stolen.safetensors")
        path = f"{folder}/model.safetensors.index.json"
        pathlib.Path(path).write_text(json.dumps({"weight_map": weight_map}))

    return spoil


def ones(*shape):
    return lambda _: np.ones(shape, np.float32)


STRANGERS = {
    "two heads": (
        with_weights(classifier__weight=ones(3, 22), logits_proj__weight=ones(3, 22)),
        "expected one head, got classifier.weight and logits_proj.weight",
    ),
    "a head of no dimensions": (with_weights(logits_proj__weight=ones()), "expected 2 dimensions"),
    "a head of three": (with_weights(classifier__weight=ones(3, 2, 1)), "expected 2 dimensions"),
    "a head that predicts nothing": (with_weights(classifier__weight=ones(0, 22)), "one label"),
    "labels of other outputs": (
        lambda d: (
            change_json(d, "config.json", id2label={"0": "a", "1": "b"}),
            with_weights(classifier__weight=ones(3, 22))(d),
        ),
        "a label for each of the 3 outputs",
    ),
    "a label twice": (
        lambda d: (
            change_json(d, "config.json", id2label={"0": "a", "1": "a", "2": "b"}),
            with_weights(logits_proj__weight=ones(3, 22))(d),
        ),
        "task.labels: expected every label once",
    ),
    "architectures": (
        lambda d: (
            change_json(d, "config.json", architectures=5),
            with_weights(classifier__weight=ones(3, 22))(d),
        ),
        "architectures: expected a list, got 5",
    ),
    "another head size": (lambda d: change_json(d, "config.json", d_head=7), "d_head: expected"),
    "a layer left over": (
        lambda d: change_json(d, "config.json", n_layer=2),
        "expected 2 layers, as in its configuration, got also a variable 'transformer.layer.2.",
    ),
    "NaN": (with_weights(transformer__mask_emb=lambda x: x * np.nan), "mask_emb: expected finite"),
    "beyond float32": (
        with_weights(transformer__mask_emb=lambda x: x.astype(np.float64) + 1e39),
        "mask_emb: expected finite numbers in float32",
    ),
    **{
        f"a weight map that is {value!r}": (with_index(value), sentence)
        for value, sentence in (
            (5, "weight_map: expected an object, got 5"),
            (["a"], "weight_map: expected an object"),
            ({"a": 5}, "weight_map: a: expected a string, got 5"),
            ({"a": "../stolen.safetensors"}, "expected names of files beside it"),
            ({"a": "/dev/zero"}, "expected names of files beside it, got '/dev/zero'"),
        )
    },
}


WRONG |= {case: ("hf", *row) for case, row in STRANGERS.items()}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence_and_leaves_nothing(case, request, tmp_path, capsys):
    form, spoil, sentence = WRONG[case]
    source = request.getfixturevalue(form)
    spoil(source)
    assert cli.main(["convert", f"--source={source}", f"--output={tmp_path}/out"]) == 2
    error = capsys.readouterr().err
    assert sentence in error and len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "settings", "hf", "tf1"),
    [
        ("classification", {}, "", "numbers the classes: bad, good"),
        ("regression", {"summary": "mean"}, "includes padding .* one at a time", "pads every text"),
        ("regression", {"summary": "first"}, "the first token includes", "--summary_type=first"),
        ("multiple_choice", {"summary": "mean"}, "mean of all tokens", "--summary_type=mean"),
        ("question_answering", {"summary": "mean"}, "", ""),  # It has no summary.
        ("regression", {"long_texts": "windows"}, "one sequence.* 128 tokens", "one sequence"),
        ("regression", {"long_texts": "memory"}, "as one sequence", "as one sequence"),
        ("regression", {"text_columns": ("a", "b", "c")}, "at most two texts", "at most two"),
        ("regression", {"both_orders": True}, "texts in one order", "texts in one order"),
        ("regression", {"truncation_side": "left"}, "", "truncates texts on the right"),
        ("question_answering", {"null_threshold": 0.25}, "exceed 0.25", "exceed 0.25"),
        ("multi_label", {}, "", "no head for multi_label; only the encoder"),
        ("token_classification", {}, "", "no head for token_classification"),
        ("ranking", {}, "no head for ranking", "no head for ranking"),
        *rows("WITHOUT_A_HEAD_IN_OTHER_FORMATS"),
        ("", {"data.lowercase": True}, "", "--uncased"),
        ("", {"data.keep_accents": True}, "", "keep_accents"),
        ("", {"model.clamp_len": 5}, "", "--clamp_len"),
        ("", {"model.attention_type": "uni"}, "", "attn_type"),
        ("", {"objective.kind": "causal"}, "no such objective", "no such objective; .* attn_type"),
    ],
    ids=str,
)
def test_what_a_format_does_not_have_is_said(name, settings, hf, tf1):
    tree = {
        "task": {"name": name, "labels": ["bad", "good"]},
        "data": {},
        "model": {},
        "objective": {},
    }
    for key, value in settings.items():
        section, _, key = key.rpartition(".")
        tree[section or "task"][key] = list(value) if isinstance(value, tuple) else value
    config = XLNetConfig.from_dict(tree)
    assert differences(config, "xlnet") == []
    for form, expected in (("hf", hf), ("tf1", tf1)):
        found = "; ".join(differences(config, form))
        assert re.search(expected, found) if expected else not found


class Malicious:
    """Unpickled, it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def as_archive(path, tree):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(tree, protocol=2))


def as_legacy(path, tree):
    header = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    data = b"".join(pickle.dumps(part, protocol=2) for part in [*header, tree, []])
    pathlib.Path(path).write_bytes(data)


@pytest.mark.parametrize("write", [as_archive, as_legacy])
def test_a_malicious_pickle_does_not_run(tmp_path, write):
    write(tmp_path / "model.bin", {"weight": Malicious(f"{tmp_path}/made")})
    assert_refused(
        r"expected nothing but tensors, got (posix|nt)\.mkdir",
        TorchFile,
        str(tmp_path / "model.bin"),
    )
    assert os.listdir(tmp_path) == ["model.bin"]


NUMBERS = (2, 3, 5, 7)
# A tensor of a storage of 4 numbers, written opcode by opcode: `c` names, `(…t` makes a tuple,
# `Q` is a storage's persistent id, `R` calls.
TENSOR = (
    b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n"
    b"((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    b"K\x04tQK%c(K\x02K%ct(K%cK%ct\x89}tRs."
)


def write_archive(path, *view):
    """An archive of a tensor `w`: (offset, rows, strides) of a storage of four numbers."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", TENSOR % view)
        archive.writestr("a/data/0", struct.pack("<4f", *NUMBERS))


@pytest.mark.parametrize(
    ("offset", "rows", "strides", "is_inside"),
    [
        (0, 2, (2, 1), True),
        (1, 1, (1, 2), True),
        (1, 2, (2, 1), False),
        (0, 2, (2, 3), False),
        (0, 200, (0, 0), False),  # Would repeat a number without end.
    ],
)
def test_a_tensor_stays_inside_its_storage(tmp_path, offset, rows, strides, is_inside):
    write_archive(tmp_path / "model.bin", offset, rows, *strides)
    file = TorchFile(str(tmp_path / "model.bin"))
    if is_inside:
        expected = [[NUMBERS[offset + i * strides[0] + j * strides[1]] for j in range(rows)]
                    for i in range(2)]  # fmt: skip
        np.testing.assert_array_equal(file.read("w"), expected)
    else:
        assert_refused("is not a valid PyTorch file", file.read, "w")


ENTRY = b"PK\x01\x02\x14\x03\x14\0"  # In the directory of an archive; flags and method follow.


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (ENTRY + b"\0", ENTRY + b"\1", "encrypted"),
        (ENTRY + bytes(3), ENTRY + b"\0\0\x63", "compression"),
        (struct.pack("<f", 3), struct.pack("<f", 4), "CRC"),
    ],
)
def test_damaged_archives(tmp_path, old, new, sentence):
    path = tmp_path / "model.bin"
    write_archive(path, 0, 2, 2, 1)
    path.write_bytes(path.read_bytes().replace(old, new))
    assert_refused(sentence, lambda: TorchFile(str(path)).read("w"))
