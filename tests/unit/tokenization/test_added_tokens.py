"""Tokens added to a vocabulary: texts are cut at them, whatever is between them is a text alone.

The ids of HF's tokenizers on many lines: tests/real/test_transformers_tokenizers.py.
"""

import json
import pathlib
import random
import re
import shutil

import pytest
import tensorflow as tf

from official.xlnet.api.convert import convert
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers import checkpoints
from tests.helpers.compare import assert_refused, assert_same_items
from tests.helpers.oracles.tokenizer_oracle import nasty_lines, real_lines

TOKENS = ["<new>", "of the", "zu.zu", "zu", "(a|b)", "Ünïcode", "…"]


@pytest.fixture(scope="module")
def tokenizer(vocab_file, tmp_path_factory):
    """Its ids leave one out."""
    folder = tmp_path_factory.mktemp("folder")
    shutil.copy(vocab_file, folder)
    first = len(Tokenizer(vocab_file)) + 1
    tokens = {token: first + number for number, token in enumerate(TOKENS)}
    (folder / "added_tokens.json").write_text(json.dumps(tokens))
    decoder = {i: {"content": token, "normalized": False} for token, i in tokens.items()}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}))
    return Tokenizer(str(folder / "spiece.model"))


@pytest.fixture(
    scope="module",
    params=[150, pytest.param(450, marks=pytest.mark.slow)],
)
def texts(request):
    rng = random.Random(3)
    found = []
    for line in real_lines(request.param * 2 // 3) + nasty_lines(request.param // 3):
        words = line.split(" ")
        for _ in range(rng.randrange(4)):
            words.insert(rng.randrange(len(words) + 1), rng.choice(TOKENS) * rng.randrange(1, 3))
        found.append(rng.choice([" ", "", " x"]).join(words))
    # Runs of a character tie, and where they are cut depends on what is before them.
    return [text for text in found if not re.search(r"(.)\1{15}", text)]


def test_a_text_is_cut_at_them_in_python_and_in_a_graph(vocab_file, tokenizer, texts):
    plain, first = Tokenizer(vocab_file), min(tokenizer.added_tokens)
    assert first == len(plain) + 1 and len(tokenizer) == first + len(TOKENS)
    assert [tokenizer.piece_to_id(token) - first for token in TOKENS] == [*range(len(TOKENS))]
    assert tokenizer.decode(tokenizer.encode("now <new> now")) == "now <new> now"
    longest_first = sorted(TOKENS, key=len, reverse=True)
    pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
    expected = []
    for text in texts:
        ids = []
        for part in pattern.split(text):
            ids += [first + TOKENS.index(part)] if part in TOKENS else plain.encode(part)
        expected.append(ids)
    assert sum(max(ids, default=0) > first for ids in expected) > len(texts) // 2
    assert_same_items([ids.tolist() for ids in tokenizer.encode_batch(texts)], expected)
    graph = GraphTokenizer(tokenizer)
    assert_same_items(graph(tf.constant(texts)).to_list(), expected)
    for text, ids in zip(texts, expected, strict=True):
        found, offsets = tokenizer.encode_with_offsets(text)
        assert found == ids
        for i, (start, end) in zip(ids, offsets, strict=True):
            if i >= first:
                assert text[start:end].startswith(TOKENS[i - first])


def test_who_cannot_have_them_says_so(tokenizer, vocab_file, tmp_path):
    assert_refused(
        r"without added tokens, got .*of the", OffsetTokenizer, tokenizer, GraphTokenizer(tokenizer)
    )
    number = len(Tokenizer(vocab_file))
    shapes = checkpoints.tf1_shapes(vocab_size=number + 1)
    values = checkpoints.hf_of_tf1(checkpoints.random_values(shapes))
    source = checkpoints.write_hf(tmp_path / "hf", vocab_file, values, number + 1)
    path = pathlib.Path(source, "tokenizer_config.json")
    token = {"content": "<new>"}
    path.write_text(json.dumps({"added_tokens_decoder": {number: token}}))
    assert convert(source, f"{tmp_path}/hf_again", "hf")["differences"] == []
    assert Tokenizer(f"{tmp_path}/hf_again/spiece.model").added_tokens == {number: "<new>"}
    [sentence] = convert(source, f"{tmp_path}/tf1", "tf1")["differences"]
    assert "splits <new> into pieces" in sentence
    token["single_word"] = True
    path.write_text(json.dumps({"added_tokens_decoder": {number: token}}))
    assert_refused("got single_word for '<new>'", convert, source, f"{tmp_path}/ours")
