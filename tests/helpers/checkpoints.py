"""Makes folders in the TF1 release's form and in HF's, with random weights, for tests."""

import json
import pathlib
import shutil
import struct
import zipfile

import numpy as np
import safetensors.numpy
import tensorflow as tf

# D = 2·11, F 29, L 3; V is that of the tests' vocabulary.
SIZES = {"n_layer": 3, "d_model": 22, "n_head": 2, "d_head": 11, "d_inner": 29}
VOCAB_SIZE = 2000

TF1_HEADS = {
    "classification_mnli": [
        ("model/sequnece_summary/summary/kernel", "DD"),
        ("model/sequnece_summary/summary/bias", "D"),
        ("model/classification_mnli/logit/kernel", "D3"),
        ("model/classification_mnli/logit/bias", "3"),
    ],
    "regression_sts-b": [
        ("model/sequnece_summary/summary/kernel", "DD"),
        ("model/sequnece_summary/summary/bias", "D"),
        ("model/regression_sts-b/logit/kernel", "D1"),
        ("model/regression_sts-b/logit/bias", "1"),
    ],
    "race": [
        ("model/sequnece_summary/summary/kernel", "DD"),
        ("model/sequnece_summary/summary/bias", "D"),
        ("logits/dense/kernel", "D1"),
        ("logits/dense/bias", "1"),
    ],
    "squad": [
        ("start_logits/dense/kernel", "D1"),
        ("start_logits/dense/bias", "1"),
        ("end_logits/dense_0/kernel", "ED"),
        ("end_logits/dense_0/bias", "D"),
        ("end_logits/LayerNorm/beta", "D"),
        ("end_logits/LayerNorm/gamma", "D"),
        ("end_logits/dense_1/kernel", "D1"),
        ("end_logits/dense_1/bias", "1"),
        ("answer_class/dense_0/kernel", "ED"),
        ("answer_class/dense_0/bias", "D"),
        ("answer_class/dense_1/kernel", "D1"),
    ],
}


def tf1_shapes(untie_r=True, head=None, sizes=None, vocab_size=VOCAB_SIZE):
    """Names and shapes of the release's variables."""
    sizes = sizes or SIZES
    width, inner, layers = sizes["d_model"], sizes["d_inner"], sizes["n_layer"]
    heads = [sizes["n_head"], sizes["d_head"]]
    biases = [layers, *heads] if untie_r else heads
    shapes = {
        "word_embedding/lookup_table": [vocab_size, width],
        "mask_emb/mask_emb": [1, 1, width],
        "r_w_bias": biases,
        "r_r_bias": biases,
        "r_s_bias": biases,
        "seg_embed": [layers, 2, *heads],
    }
    for i in range(layers):
        shapes |= {f"layer_{i}/rel_attn/{x}/kernel": [width, *heads] for x in "qkvro"}
        shapes |= {
            f"layer_{i}/{part}/LayerNorm/{x}": [width]
            for part in ("rel_attn", "ff")
            for x in ("beta", "gamma")
        }
        shapes |= {
            f"layer_{i}/ff/layer_1/kernel": [width, inner],
            f"layer_{i}/ff/layer_1/bias": [inner],
            f"layer_{i}/ff/layer_2/kernel": [inner, width],
            f"layer_{i}/ff/layer_2/bias": [width],
        }
    shapes = {f"model/transformer/{name}": shape for name, shape in shapes.items()}
    if head is None:
        shapes["model/lm_loss/bias"] = [vocab_size]
    letters = {"D": width, "E": 2 * width, "1": 1, "3": 3}
    shapes |= {name: [letters[x] for x in shape] for name, shape in TF1_HEADS.get(head, ())}
    return shapes


def random_values(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal(shape, np.float32) * 0.2 + name.endswith("gamma"))
        for name, shape in shapes.items()
    }


def write_tf1(folder, vocab_file, values, untie_r=True, sizes=None, vocab_size=VOCAB_SIZE):
    """A folder of the release's form."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    shutil.copyfile(vocab_file, folder / "spiece.model")
    config = {
        **(sizes or SIZES),
        "ff_activation": "gelu",
        "n_token": vocab_size,
        "untie_r": untie_r,
    }
    (folder / "xlnet_config.json").write_text(json.dumps(config))
    names = list(values)
    tf.raw_ops.SaveV2(
        prefix=str(folder / "xlnet_model.ckpt"),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[values[name] for name in names],
    )
    return str(folder)


def read_tf1(folder):
    """All variables of a folder of the release's form."""
    reader = tf.train.load_checkpoint(f"{folder}/xlnet_model.ckpt")
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def hf_of_tf1(values, num_layers=SIZES["n_layer"]):
    """HF's variables for the release's, by the rules of HF's own loader of the release."""
    renamed = {}
    for name, value in values.items():
        if name.endswith("/kernel") and "rel_attn" not in name:
            value = value.T
        if name.split("/")[-1] in ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed"):
            last = name.split("/")[-1]
            is_shared = last != "seg_embed" and value.ndim == 2
            for i in range(num_layers):
                target = f"transformer.layer.{i}.rel_attn.{last}"
                renamed[target] = value if is_shared else value[i]
            continue
        is_norm = "LayerNorm" in name
        for old, new in (
            ("model/transformer/word_embedding/lookup_table", "transformer.word_embedding.weight"),
            ("model/transformer/mask_emb/mask_emb", "transformer.mask_emb"),
            ("model/transformer/layer_", "transformer.layer."),
            ("model/lm_loss/", "lm_loss."),
            ("model/sequnece_summary/", "sequence_summary."),
            ("model/classification_mnli/logit", "logits_proj"),
            ("model/regression_sts-b/logit", "logits_proj"),
            ("logits/dense/", "logits_proj.") if name.startswith("logits/") else ("\0", ""),
        ):
            name = name.replace(old, new)
        name = name.replace("/", ".")
        if "rel_attn" in name:
            name = name.removesuffix(".kernel")
        if is_norm:
            name = name.replace(".gamma", ".weight").replace(".beta", ".bias")
            if name.startswith("transformer"):
                name = name.replace("LayerNorm", "layer_norm")
        renamed[name.replace(".kernel", ".weight")] = np.ascontiguousarray(value)
    return renamed


def write_hf(folder, vocab_file, values, vocab_size=VOCAB_SIZE, **settings):
    """A folder of HF's form."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    shutil.copyfile(vocab_file, folder / "spiece.model")
    config = {"model_type": "xlnet", **SIZES, "vocab_size": vocab_size, "untie_r": True}
    config |= {"ff_activation": "gelu_new", "mem_len": 7, "reuse_len": 5, **settings}
    (folder / "config.json").write_text(json.dumps(config))
    safetensors.numpy.save_file(values, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


def write_torch(path, values):
    """A file of PyTorch, written opcode by opcode: `c` names, `(…t` is a tuple, `R` calls."""

    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def numbers(values):
        return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"

    pickled = b"\x80\x02}("
    with zipfile.ZipFile(path, "w") as archive:
        for key, (name, value) in enumerate(values.items()):
            steps = [stride // value.itemsize for stride in value.strides]
            pickled += text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage")
            pickled += b"ctorch\nFloatStorage\n" + text(str(key)) + text("cpu")
            pickled += b"J" + struct.pack("<i", value.size) + b"tQK\x00"
            pickled += numbers(value.shape) + numbers(steps) + b"\x89}tR"
            archive.writestr(f"a/data/{key}", np.ascontiguousarray(value, np.float32).tobytes())
        archive.writestr("a/data.pkl", pickled + b"u.")


def read_hf(folder):
    """All variables of a folder of HF's form."""
    return safetensors.numpy.load_file(f"{folder}/model.safetensors")


def assert_same(found, expected):
    """Two dictionaries of arrays are equal to the last bit."""
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert found[name].shape == value.shape, name
        assert found[name].tobytes() == np.ascontiguousarray(value).tobytes(), name
