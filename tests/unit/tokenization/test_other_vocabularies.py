"""Vocabularies that SentencePiece trains with other options than `xlnet vocab`."""

import random
from pydoc_data.topics import topics

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from official.xlnet.errors import DataError
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.sentencepiece_proto import warn_of_export
from official.xlnet.tokenization.special_tokens import CONTROL_IDS, SPECIAL_PIECES, UNK_ID
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.oracles.tokenizer_oracle import release_encode

CONTROLS = list(SPECIAL_PIECES[3:-1])
OPTIONS = {
    "bytes": {"byte_fallback": True},
    "user-defined": {"control_symbols": [], "user_defined_symbols": [*CONTROLS, "<eop>"]},
    "bpe": {"model_type": "bpe"},
    "bpe-bytes": {"model_type": "bpe", "byte_fallback": True},
    "char": {"model_type": "char"},
    "word": {"model_type": "word"},
    "identity": {"normalization_rule_name": "identity"},
    "nfkc_cf-bytes": {"normalization_rule_name": "nfkc_cf", "byte_fallback": True},
    "no-prefix": {"add_dummy_prefix": False},
    "spaces": {"remove_extra_whitespaces": False},
    "pad_id": {"pad_id": 5, "control_symbols": [c for c in CONTROLS if c != "<pad>"]},
}
REFUSED = {
    "suffix": ({"treat_whitespace_as_suffix": True}, "expected a space before a word"),
    "no-specials": ({"control_symbols": [], "user_defined_symbols": []}, "expected its first piec"),
    "other-ids": ({"unk_id": 2, "bos_id": 0, "eos_id": 1}, "expected its first pieces"),
}
CHARACTERS = [*"abe.,19 éÉ中国ー😀ﬁⅫ\ue000\u0301\u200b▁", "``", "1,000", "<sep>", "<eop>", "3,"]


def train(directory, options):
    lines = [line for topic in topics.values() for line in topic.splitlines() if line.strip()]
    numbers = [f"on page {i}, {i % 7},{i % 10}00 of 3, or 4," for i in range(300)]
    settings = {
        "sentence_iterator": iter([*lines[:900], *numbers]),
        "model_prefix": f"{directory}/spiece",
        "vocab_size": 500,
        "control_symbols": CONTROLS,
        "user_defined_symbols": ["<eop>"],
        "hard_vocab_limit": False,
        "num_threads": 1,
        "minloglevel": 2,
        **options,
    }
    if settings.get("model_type") in ("bpe", "char", "word"):
        del settings["hard_vocab_limit"]
    if settings.get("model_type") == "char":
        settings["vocab_size"] = 90
    sentencepiece.SentencePieceTrainer.train(**settings)
    return f"{directory}/spiece.model"


def random_texts(number):
    draw = random.Random(0)
    return ["".join(draw.choices(CHARACTERS, k=draw.randint(1, 13))) for _ in range(number)]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_ids_and_offsets(tmp_path, options):
    path = train(tmp_path, options)
    tokenizer, processor = Tokenizer(path), sentencepiece.SentencePieceProcessor(model_file=path)
    is_byte = np.array([processor.is_byte(i) for i in range(len(tokenizer))])
    for text in random_texts(400):
        ids, offsets = tokenizer.encode_with_offsets(text)
        assert ids == tokenizer.encode(text)
        assert not set(ids) & set(CONTROL_IDS)
        if "<sep>" not in text and UNK_ID not in ids:
            assert ids == release_encode(processor, text, False, False)
        assert offsets == sorted(offsets)
        assert all(0 <= start <= end <= len(text) for start, end in offsets)
        if options.get("byte_fallback"):
            assert UNK_ID not in ids
            check_bytes(tokenizer, is_byte, text, ids, offsets)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bytes", "byte pieces, got <0x00>"),
        ("nfkc_cf-bytes", "byte pieces, got <0x00>"),
        ("identity", "a normalizer, got none"),
        ("no-prefix", "add_dummy_prefix, got one without"),
    ],
)
def test_a_warning_of_what_export_refuses(tmp_path, name, message, caplog):
    caplog.set_level("WARNING", logger="absl")
    tokenizer = Tokenizer(train(tmp_path, OPTIONS[name]))
    warn_of_export(tokenizer.model_proto)
    assert "xlnet export will refuse a model with this vocabulary" in caplog.text
    with pytest.raises(DataError, match=f"expected a unigram model with.*{message}"):
        GraphTokenizer(tokenizer)


@pytest.mark.parametrize("name", ["bpe-bytes", "word"])
def test_ids_and_offsets_in_a_graph(tmp_path, name, caplog):
    tokenizer = Tokenizer(train(tmp_path, OPTIONS[name]))
    warn_of_export(tokenizer.model_proto)
    assert not caplog.text
    graph = GraphTokenizer(tokenizer)
    texts = [*random_texts(200), "a\0b", "", *next(iter(topics.values())).splitlines()[:40]]
    assert graph(tf.constant(texts)).to_list() == tokenizer.encode(texts)
    found = [x.to_list() for x in OffsetTokenizer(tokenizer, graph)(tf.constant(texts))]
    spans = [[*zip(*row, strict=True)] for row in zip(*found[1:], strict=True)]
    wanted = [tokenizer.encode_with_offsets(text) for text in texts]
    assert found[0] == [ids for ids, _ in wanted]
    same = [span == expected for span, (_, expected) in zip(spans, wanted, strict=True)]
    assert all(same[200:]) and np.mean(same) > 0.7  # Of ordinary lines; of odd characters.


def check_bytes(tokenizer, is_byte, text, ids, offsets):
    """Bytes that spell a character have its place, and count as one character."""
    index = 0
    while index < len(ids):
        size = 1
        if is_byte[ids[index]]:
            values = bytes(
                int(tokenizer.id_to_piece(i)[1:-1], 16) if is_byte[i] else 0
                for i in ids[index : index + 4]
            )
            size = next(n for n in (1, 2, 3, 4) if is_text(values[:n]))
            character = values[:size].decode()
            assert len(set(offsets[index : index + size])) == 1
            start, end = offsets[index]
            assert character in tokenizer.clean(text[start:end])
            assert tokenizer.num_characters[ids[index : index + size]].tolist() == [1] + [0] * (
                size - 1
            )
            starts = tokenizer.is_word_start[ids[index : index + size]]
            assert starts.tolist() == ["\u3000" <= character < "\ua000"] + [False] * (size - 1)
        index += size


def is_text(data):
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_conventions_that_differ_are_refused(tmp_path, options, message):
    with pytest.raises(DataError, match=message):
        Tokenizer(train(tmp_path, options))
