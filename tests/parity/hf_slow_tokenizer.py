"""Runs HF's slow XLNet tokenizer (transformers 4), in the environment that has it.

usage: hf_slow_tokenizer.py spiece.model < jobs.jsonl > answers.jsonl

A job is {"texts": [...], "lowercase": bool, "keep_accents": bool}, answered by a list of ids for
every text; with "pairs": [[a, b], ...] and "length": T, by [input_ids, token_type_ids,
attention_mask] for every pair.
"""

import json
import sys

from transformers import XLNetTokenizer

for line in sys.stdin:
    job = json.loads(line)
    tokenizer = XLNetTokenizer(
        sys.argv[1], do_lower_case=job["lowercase"], keep_accents=job["keep_accents"]
    )
    if "texts" in job:
        answer = [tokenizer.encode(text, add_special_tokens=False) for text in job["texts"]]
    else:
        packed = [
            tokenizer(
                a, b, truncation="longest_first", padding="max_length", max_length=job["length"]
            )
            for a, b in job["pairs"]
        ]
        answer = [[p["input_ids"], p["token_type_ids"], p["attention_mask"]] for p in packed]
    print(json.dumps(answer), flush=True)
