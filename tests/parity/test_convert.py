"""Converted models against HF transformers: outputs of encoder, LM and heads; `.bin` files."""

import os
import shutil

import numpy as np
import pytest

from official.xlnet.checkpoints import model_directory
from official.xlnet.checkpoints.convert import convert
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import DataError
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from tests.helpers import checkpoints
from tests.helpers.tiny import BATCH, MEMORY, TOKENS, random_inputs

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from tests.parity import hf_weights  # noqa: E402

TOLERANCE = 1e-4
DEFAULTS = {"ff_activation": "gelu_new", "mem_len": MEMORY, "reuse_len": 5, "dropout": 0.0}
LABELS = {"id2label": {0: "bad", 1: "fair", 2: "good"}}
KINDS = {
    "classification": ("XLNetForSequenceClassification", LABELS),
    "multi_label": (
        "XLNetForSequenceClassification",
        {**LABELS, "problem_type": "multi_label_classification"},
    ),
    "regression": ("XLNetForSequenceClassification", {"num_labels": 1}),
    "multiple_choice": ("XLNetForMultipleChoice", {}),
    "token_classification": ("XLNetForTokenClassification", LABELS),
    "question_answering": ("XLNetForQuestionAnswering", {}),
}


def hf_model(kind, seed=0, **settings):
    """A tiny model of HF's with random values in every parameter."""
    config = transformers.XLNetConfig(
        vocab_size=checkpoints.VOCAB_SIZE,
        **{**DEFAULTS, **checkpoints.SIZES, **settings},
    )
    model = getattr(transformers, kind)(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator) * 0.25
            parameter.copy_(noise + ("norm.weight" in name.lower()))
    return model


def save(model, folder, vocab_file, form="safetensors"):
    """A folder with the model, in one of the forms that its weights can have."""
    model.save_pretrained(folder, max_shard_size="40KB" if form == "shards" else "1GB")
    shutil.copyfile(vocab_file, f"{folder}/spiece.model")
    if form in ("zip", "legacy"):
        os.unlink(f"{folder}/model.safetensors")
        torch.save(
            model.state_dict(),
            f"{folder}/pytorch_model.bin",
            _use_new_zipfile_serialization=form == "zip",
        )
    return str(folder)


def assert_same_weights(found, expected):
    found, expected = found.state_dict(), expected.state_dict()
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def assert_close(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=TOLERANCE, rtol=0)


def lm_outputs(model, inputs):
    with torch.no_grad():
        return model(**hf_weights.hf_inputs(inputs))


@pytest.mark.parametrize("untie_r", [True, False])
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_language_model_and_encoder(tmp_path, vocab_file, activation, untie_r):
    hf = hf_model("XLNetLMHeadModel", ff_activation=activation, untie_r=untie_r)
    if not untie_r:
        first = hf.transformer.layer[0].rel_attn
        with torch.no_grad():
            for layer in hf.transformer.layer[1:]:
                for name in ("r_w_bias", "r_r_bias", "r_s_bias"):
                    getattr(layer.rel_attn, name).copy_(getattr(first, name))
    convert(save(hf, tmp_path / "hf", vocab_file), f"{tmp_path}/ours")
    assert XLNetConfig.load(f"{tmp_path}/ours").model.untie_r == untie_r
    inputs = random_inputs(1, padding=True, order="all")
    theirs = lm_outputs(hf, inputs)
    ours = model_directory.load_pretrainer(f"{tmp_path}/ours")(inputs)
    assert_close(ours["logits"], theirs.logits)

    context = {name: inputs[name] for name in ("token_ids", "segment_ids", "is_padding")}
    content = model_directory.load_encoder(f"{tmp_path}/ours")(context)["content"]
    with torch.no_grad():
        hidden = hf.transformer(**encoder_inputs(context)).last_hidden_state
    real = ~inputs["is_padding"]
    assert_close(content.numpy()[real], hidden[torch.tensor(real)])

    convert(f"{tmp_path}/ours", f"{tmp_path}/hf_again", "hf")
    again = transformers.XLNetLMHeadModel.from_pretrained(f"{tmp_path}/hf_again").eval()
    assert_same_weights(again, hf)
    assert torch.equal(lm_outputs(again, inputs).logits, theirs.logits)


def test_release_to_hf(tmp_path, vocab_file):
    values = checkpoints.random_values(checkpoints.tf1_shapes())
    source = checkpoints.write_tf1(tmp_path / "tf1", vocab_file, values)
    convert(source, f"{tmp_path}/ours")
    convert(f"{tmp_path}/ours", f"{tmp_path}/hf", "hf")
    hf, report = transformers.XLNetLMHeadModel.from_pretrained(
        f"{tmp_path}/hf", output_loading_info=True
    )
    assert not any(report.values())
    inputs = random_inputs(2, order="halves")
    ours = model_directory.load_pretrainer(f"{tmp_path}/ours")(inputs)
    assert_close(ours["logits"], lm_outputs(hf.eval(), inputs).logits)


@pytest.mark.parametrize("form", ["safetensors", "shards", "zip", "legacy"])
def test_forms_of_weights(tmp_path, vocab_file, form):
    hf = hf_model("XLNetLMHeadModel")
    source = save(hf, tmp_path / "hf", vocab_file, form)
    report = convert(source, f"{tmp_path}/again", "hf")
    assert report["left_over"] == [] and report["not_filled"] == []
    assert_same_weights(transformers.XLNetLMHeadModel.from_pretrained(f"{tmp_path}/again"), hf)


@pytest.mark.parametrize("form", ["zip", "legacy"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes_of_bin_files(tmp_path, vocab_file, form, dtype):
    hf = hf_model("XLNetModel").to(getattr(torch, dtype))
    convert(save(hf, tmp_path / "hf", vocab_file, form), f"{tmp_path}/again", "hf")
    assert_same_weights(transformers.XLNetModel.from_pretrained(f"{tmp_path}/again"), hf.float())


@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_damaged_bin_files(tmp_path, vocab_file, form):
    source = save(hf_model("XLNetModel"), tmp_path / "hf", vocab_file, form)
    path = f"{source}/pytorch_model.bin"
    with open(path, "rb") as file:
        whole = file.read()
    with open(path, "wb") as file:
        file.write(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"is not a valid PyTorch file|expected"):
        convert(source, f"{tmp_path}/out")
    if form == "zip":
        changed = bytearray(whole)
        changed[len(whole) // 2] ^= 4
        with open(path, "wb") as file:
            file.write(changed)
        with pytest.raises(DataError, match="Bad CRC-32"):
            convert(source, f"{tmp_path}/out")
    assert os.listdir(tmp_path) == ["hf"]


@pytest.mark.parametrize("kind", KINDS)
def test_heads(tmp_path, vocab_file, kind):
    name, settings = KINDS[kind]
    hf = hf_model(name, **settings)
    report = convert(save(hf, tmp_path / "hf", vocab_file), f"{tmp_path}/ours")
    assert report["left_over"] == [] and report["not_filled"] == ["lm_head/bias"]
    config = XLNetConfig.load(f"{tmp_path}/ours")
    assert config.task.name == kind
    assert config.task.labels == (("bad", "fair", "good") if "id2label" in settings else ())
    model = XLNetTaskModel(config)
    model_directory.restore(f"{tmp_path}/ours", encoder=model.encoder, head=model.head)
    ours, theirs = COMPARE.get(kind, compare_logits)(model, hf)
    for output, value in theirs.items():
        assert_close(ours[output], value)

    convert(f"{tmp_path}/ours", f"{tmp_path}/hf_again", "hf")
    again, info = getattr(transformers, name).from_pretrained(
        f"{tmp_path}/hf_again", output_loading_info=True
    )
    assert not any(info.values())
    assert_same_weights(again, hf)
    assert again.config.problem_type == hf.config.problem_type or hf.config.problem_type is None
    assert again.config.id2label == hf.config.id2label or "id2label" not in settings


def task_inputs(sequences=1):
    """Inputs [B, S, T] of a task's model: some padding on the left, CLS at the end."""
    rows = [random_inputs(seed, padding=True) for seed in range(sequences)]
    return {
        name: np.stack([row[name] for row in rows], axis=1)
        for name in ("token_ids", "segment_ids", "is_padding")
    }


def encoder_inputs(inputs):
    return {
        "input_ids": torch.tensor(inputs["token_ids"]).long(),
        "token_type_ids": torch.tensor(inputs["segment_ids"]).long(),
        "attention_mask": torch.tensor(~inputs["is_padding"]).float(),
    }


def compare_logits(model, hf):
    inputs = task_inputs()
    row = {name: value[:, 0] for name, value in inputs.items()}
    with torch.no_grad():
        logits = hf(**encoder_inputs(row)).logits
    return model(inputs), {"logits": logits}


def compare_tokens(model, hf):
    """Vectors of padding are nobody's business."""
    ours, theirs = compare_logits(model, hf)
    real = ~task_inputs()["is_padding"][:, 0]
    return {"logits": ours["logits"].numpy()[real]}, {
        "logits": theirs["logits"][torch.tensor(real)]
    }


def compare_choices(model, hf):
    inputs = task_inputs(sequences=5)
    with torch.no_grad():
        logits = hf(**encoder_inputs(inputs)).logits
    return model(inputs), {"logits": logits}


def compare_answers(model, hf):
    inputs = task_inputs()
    can_answer = np.zeros((BATCH, 1, TOKENS), bool)
    can_answer[:, :, 4:9] = True
    start = np.array([5, 4, 8])[:BATCH]
    inputs |= {
        "can_answer": can_answer,
        "may_start": can_answer,
        "start": (TOKENS - 1 - start).astype(np.int32),
    }
    row = {name: inputs[name][:, 0] for name in ("token_ids", "segment_ids", "is_padding")}
    p_mask = torch.tensor(~can_answer[:, 0]).float()
    p_mask[:, -1] = 0  # CLS is where "no answer" starts and ends.
    with torch.no_grad():
        hidden = hf.transformer(**encoder_inputs(row)).last_hidden_state
        start_logits = hf.start_logits(hidden, p_mask=p_mask)
        end_logits = hf.end_logits(hidden, start_positions=torch.tensor(start), p_mask=p_mask)
        states = torch.einsum("blh,bl->bh", hidden, start_logits.softmax(-1))
        no_answer = hf.answer_class(hidden, start_states=states)
    ours = model(inputs)
    is_open = (p_mask == 0).numpy()
    ours = {name: ours[name].numpy() for name in ("start_logits", "end_logits", "no_answer")}
    theirs = {"start_logits": start_logits, "end_logits": end_logits, "no_answer": no_answer}
    for name in ("start_logits", "end_logits"):
        ours[name], theirs[name] = ours[name][is_open], theirs[name][torch.tensor(is_open)]
    return ours, theirs


COMPARE = {
    "token_classification": compare_tokens,
    "multiple_choice": compare_choices,
    "question_answering": compare_answers,
}
