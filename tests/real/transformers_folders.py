"""Folders as users of transformers make them and use ours: does the job in a file JOB.json.

Runs with transformers 5 or 4; where PyTorch is not installed, it comes from the environment that
the job names. The answer goes to `<output>/answer.json`.

A job to write is {"torch", "vocab", "output", "texts": {kind: columns}}: a folder for each row of
`FOLDERS`, with what HF computes from the texts. A job to read is {"torch", "output", "models":
{kind: folder}, "texts"}.
"""

import json
import os
import pathlib
import sys

os.environ["USE_TF"] = "0"
JOB = json.loads(pathlib.Path(sys.argv[1]).read_text())
sys.path.append(JOB["torch"])

import sentencepiece  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.utils import sentencepiece_model_pb2_new  # noqa: E402

# SentencePiece's own needs a newer protobuf than TensorFlow takes.
sentencepiece.sentencepiece_model_pb2 = sentencepiece_model_pb2_new

IS_OLD = transformers.__version__.startswith("4.")
SIZES = {"d_model": 22, "n_layer": 2, "n_head": 2, "d_inner": 29, "mem_len": None}
LABELS = {"id2label": {0: "bad", 1: "fair", 2: "good"}}
MANY = {**LABELS, "problem_type": "multi_label_classification"}
SEQUENCE = "XLNetForSequenceClassification"
# name: (class, settings of its configuration, options of `save_pretrained`)
FOLDERS = {
    "encoder": ("XLNetModel", {"ff_activation": "gelu"}, {}),
    "lm": ("XLNetLMHeadModel", {"ff_activation": "gelu_new"}, {"max_shard_size": "40KB"}),
    "classification": (SEQUENCE, LABELS, {}),
    "pairs": (SEQUENCE, {**LABELS, "clamp_len": 5}, {"max_shard_size": "40KB"}),
    "half": (SEQUENCE, {"torch_dtype": "float16"}, {}),
    "multi_label": (SEQUENCE, MANY, {}),
    "regression": (SEQUENCE, {"num_labels": 1, "ff_activation": "relu"}, {}),
    "token_classification": ("XLNetForTokenClassification", LABELS, {}),
    "multiple_choice": ("XLNetForMultipleChoice", {}, {}),
    "question_answering": ("XLNetForQuestionAnswering", {"start_n_top": 3, "end_n_top": 2}, {}),
    "simple_answers": ("XLNetForQuestionAnsweringSimple", {}, {}),
}


# Folders whose tokenizer gives segments where it would not by default (5), and the other way (4).
OTHER_SEGMENTS = ("encoder", "pairs", "regression", "token_classification")
WITH_TOKENS = ("pairs", "half", "token_classification", "simple_answers")  # Added ones.
WITH_SEGMENTS = ["input_ids", "token_type_ids", "attention_mask"]


def new_model(name):
    """A model in which every parameter is random."""
    kind, settings, _ = FOLDERS[name]
    settings = {"ff_activation": "gelu_new", **settings}
    config = transformers.XLNetConfig(vocab_size=JOB["vocab_size"], **SIZES, **settings)
    torch.manual_seed(len(name))
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape) * 0.25
            parameter.copy_(noise + ("norm.weight" in parameter_name.lower()))
    return model.half() if name == "half" else model


def outputs(model, tokenizer, columns):
    """Vectors of all tokens but padding, in one list, and the logits."""
    batch = tokenizer(*columns, padding=True, return_tensors="pt")
    with torch.no_grad():
        encoder = getattr(model, "transformer", model)
        vectors = encoder(**batch).last_hidden_state[batch["attention_mask"].bool()]
        if "MultipleChoice" in type(model).__name__:
            batch = {key: value[None] for key, value in batch.items()}
        has_beam = type(model).__name__ == "XLNetForQuestionAnswering"
        masked = {"p_mask": 1.0 - batch["attention_mask"]} if has_beam else {}
        result = model(**batch, **masked)
    answer = {"content": vectors.tolist()}
    if has_beam:
        answer |= answers(result, batch)
    if "logits" in result:
        answer["logits"] = result.logits.tolist()
    if "start_logits" in result:
        both = (result.start_logits, result.end_logits)
        answer["spans"] = [torch.where(batch["attention_mask"] > 0, x, 0).tolist() for x in both]
    if "LMHead" in type(model).__name__:  # A target that sees all tokens but itself.
        rows, length = batch["input_ids"].shape
        only_last = torch.zeros(rows, length, length)
        only_last[:, :, -1] = 1
        with torch.no_grad():
            result = model(**batch, perm_mask=only_last, target_mapping=only_last[:, :1])
        answer = {**answer, "logits": result.logits.tolist()}
    if "TokenClassification" in type(model).__name__:
        answer["logits"] = result.logits[batch["attention_mask"].bool()].tolist()
    return answer


def answers(result, batch):
    """{place of a start, or of start and end, from the right: its probability} of each text."""
    rows, length = batch["input_ids"].shape
    found = []
    ends = [x.reshape(rows, -1, 3) for x in (result.end_top_index, result.end_top_log_probs)]
    for row in range(rows):
        places = {}
        for n, start in enumerate(result.start_top_index[row].tolist()):
            start = length - 1 - start
            places[f"{start}"] = result.start_top_log_probs[row, n].item()
            for end, value in zip(*(x[row, :, n].tolist() for x in ends), strict=True):
                places[f"{start} {length - 1 - end}"] = value
        found.append(places)
    return {"answers": found, "no_answer": result.cls_logits.tolist()}


def piped(name, folder, columns, **options):
    """What `pipeline` says with defaults: numbers in the order of labels or tokens."""
    if name in ("classification", "pairs", "multi_label", "half", "regression"):
        rows = zip(*columns, strict=True)
        inputs = [dict(zip(("text", "text_pair"), row, strict=False)) for row in rows]
        run = transformers.pipeline("text-classification", folder, **options)
        found = run(inputs, top_k=None)
        return [[e["score"] for e in sorted(row, key=lambda e: e["label"])] for row in found]
    if name == "encoder":
        found = transformers.pipeline("feature-extraction", folder, **options)(*columns)
        return [vector for [rows] in found for vector in rows]
    if name == "token_classification":
        names = list(LABELS["id2label"].values())
        found = transformers.pipeline("token-classification", folder, **options)(*columns)
        return [[names.index(e["entity"]), float(e["score"])] for row in found for e in row]
    return None


def make(name):
    folder = pathlib.Path(JOB["output"], name)
    model = new_model(name)
    options = FOLDERS[name][2]
    is_slow = IS_OLD and name != "pairs"
    kind = transformers.XLNetTokenizer if is_slow else transformers.XLNetTokenizerFast
    model.save_pretrained(folder, **options)
    if name in ("half", "multi_label"):  # As PyTorch wrote weights, today and before 1.6.
        (folder / "model.safetensors").unlink()
        file = folder / "pytorch_model.bin"
        torch.save(model.state_dict(), file, _use_new_zipfile_serialization=name == "half")
    names = WITH_SEGMENTS[:: 2 if IS_OLD else 1] if name in OTHER_SEGMENTS else None
    given = {} if names is None else {"model_input_names": names}
    tokenizer = kind.from_pretrained(JOB["vocab"], **given)
    if name in WITH_TOKENS:
        tokenizer.add_tokens(["<new>", "of the", "zuzu"])
        tokenizer.add_special_tokens({"additional_special_tokens": ["[E1]"]})
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        model.save_pretrained(folder, **options)
    tokenizer.save_pretrained(folder)  # Fast ones of version 5 save `tokenizer.json` alone.
    columns, options = JOB["texts"][name], {}
    if is_slow:  # AutoTokenizer would take the fast one, which has other pieces after "(" or ".".
        options = {"use_fast": False}
    if name == "half":
        options["dtype"] = torch.float32
    if name == "regression":  # One logit would be a probability.
        options["function_to_apply"] = "none"
    found = {"pipeline": piped(name, str(folder), columns, **options)}
    return {**found, **outputs(model.float(), tokenizer, columns)}


def read(name):
    """What a user there gets with defaults only."""
    folder, columns = JOB["models"][name], JOB["texts"][name]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    of_texts = transformers.AutoModelForSequenceClassification
    loader = {
        "lm": transformers.AutoModelForCausalLM,
        "encoder": transformers.AutoModel,
        "token_classification": transformers.AutoModelForTokenClassification,
        "multiple_choice": transformers.AutoModelForMultipleChoice,
        "question_answering": transformers.XLNetForQuestionAnswering,
        "simple_answers": transformers.AutoModelForQuestionAnswering,
    }.get(name, of_texts)
    model, info = loader.from_pretrained(folder, output_loading_info=True)
    unexpected = {key: sorted(map(str, value)) for key, value in info.items() if value}
    found = {"info": unexpected, "pipeline": piped(name, folder, columns)}
    found["labels"] = [label for _, label in sorted(model.config.id2label.items())]
    return {**found, **outputs(model.eval(), tokenizer, columns)}


names = JOB.get("models", FOLDERS)
answer = {name: (read if "models" in JOB else make)(name) for name in names}
pathlib.Path(JOB["output"], "answer.json").write_text(json.dumps(answer))
