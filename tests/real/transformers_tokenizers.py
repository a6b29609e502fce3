"""Tokenizers as users of transformers save and load them: does the job in a file JOB.json.

Runs with transformers 5 or 4, as `transformers_folders.py`. A job to save is {"torch", "vocab",
"output", "lines"}: a folder for each kind of tokenizer, and `<folder>/ids.json` with its ids of the
lines. A job to load is {"torch", "folders", "lines"}: writes `<folder>/ids.json` again.
"""

import json
import os
import pathlib
import sys

os.environ["USE_TF"] = "0"
JOB = json.loads(pathlib.Path(sys.argv[1]).read_text())
sys.path.append(JOB["torch"])

import sentencepiece  # noqa: E402
import transformers  # noqa: E402
from transformers.utils import sentencepiece_model_pb2_new  # noqa: E402

# SentencePiece's own needs a newer protobuf than TensorFlow takes.
sentencepiece.sentencepiece_model_pb2 = sentencepiece_model_pb2_new

KINDS = {"fast": transformers.XLNetTokenizerFast}
if transformers.__version__.startswith("4."):
    KINDS["slow"] = transformers.XLNetTokenizer
TOKENS, SPECIAL = ["<new>", "zuzu", "of the"], ["<ent>", "[E1]"]


def answer(tokenizer, folder):
    ids = tokenizer(JOB["lines"], add_special_tokens=False)["input_ids"]
    (pathlib.Path(folder) / "ids.json").write_text(json.dumps(ids))


def save(name):
    for has_tokens in (False, True):
        for lowercase in (False, True):
            tokenizer = KINDS[name].from_pretrained(JOB["vocab"], do_lower_case=lowercase)
            if has_tokens:
                tokenizer.add_tokens(TOKENS)
                tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
            folder = f"{JOB['output']}/{name}{'_tokens' * has_tokens}{'_lower' * lowercase}"
            tokenizer.save_pretrained(folder)
            answer(KINDS[name].from_pretrained(folder), folder)


if "folders" in JOB:
    for folder in JOB["folders"]:
        answer(transformers.AutoTokenizer.from_pretrained(folder), folder)
else:
    for name in KINDS:
        save(name)
