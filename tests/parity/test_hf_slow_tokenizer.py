"""Ids and packing against HF's slow tokenizer, which lives in an environment of its own.

`XLNET_HF4_PYTHON` names the interpreter of an environment with transformers 4 and sentencepiece.
"""

import itertools
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from official.xlnet.tokenization import special_tokens
from official.xlnet.tokenization.graph.packing import pack_columns
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.oracles.tokenizer_oracle import nasty_lines, real_lines

HF4_PYTHON = os.environ.get("XLNET_HF4_PYTHON", "")
SCRIPT = Path(__file__).with_name("hf_slow_tokenizer.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.path.isfile(HF4_PYTHON), reason="XLNET_HF4_PYTHON names no interpreter"
    ),
]


def ask_hf(vocab_file: str, job: dict) -> list:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    run = subprocess.run(
        [HF4_PYTHON, str(SCRIPT), vocab_file],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return json.loads(run.stdout)


def differences(vocab_file: str, num_lines: int, lowercase: bool, keep_accents: bool) -> list:
    texts = real_lines(num_lines) + nasty_lines(num_lines, seed=1)
    if lowercase:  # HF lower-cases single characters before NFKD: no sigma is ever final.
        texts = [text.replace("Σ", "Ω").replace("Ϲ", "C") for text in texts]
    job = {"texts": texts, "lowercase": lowercase, "keep_accents": keep_accents}
    ours = Tokenizer(vocab_file, lowercase, keep_accents).encode_batch(texts)
    return [
        (text, ids.tolist(), hf)
        for text, ids, hf in zip(texts, ours, ask_hf(vocab_file, job), strict=True)
        if ids.tolist() != hf
    ]


@pytest.mark.parametrize(
    ("lowercase", "keep_accents"), itertools.product([False, True], [False, True])
)
def test_same_ids(vocab_file, lowercase, keep_accents):
    assert differences(vocab_file, 3000, lowercase, keep_accents) == []


def test_same_pairs(vocab_file):
    length = 23
    lines = real_lines(600)
    pairs = [[lines[i][: 7 * (i % 13)], lines[i + 1]] for i in range(0, 600, 2)]
    job = {"pairs": pairs, "length": length, "lowercase": False, "keep_accents": False}
    tokenizer = Tokenizer(vocab_file)
    columns = [[tokenizer.encode(text) for text in column] for column in zip(*pairs, strict=True)]
    batch = pack_columns(columns, length)
    for row, answer in enumerate(ask_hf(vocab_file, job)):
        packed = {name: x[row] for name, x in batch.items()}
        hf_ids, hf_segments, hf_attention = map(np.array, answer)
        np.testing.assert_array_equal(packed["is_padding"], hf_attention == 0)
        used = ~packed["is_padding"]
        np.testing.assert_array_equal(packed["segment_ids"][used], hf_segments[used])
        # HF pads with segment 3, the release with 4.
        np.testing.assert_array_equal(packed["token_ids"], hf_ids)
        assert set(packed["segment_ids"][~used]) <= {special_tokens.SEGMENT_PAD}
    assert row == len(pairs) - 1
