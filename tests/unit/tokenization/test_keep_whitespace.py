"""A vocabulary that keeps white space: ids, offsets and records give back a text as it is."""

import json
import random

import pytest
import tensorflow as tf

from data_prep.corpus.vocabulary import read_sample
from data_prep.corpus.vocabulary_extension import extend_vocabulary
from data_prep.settings import SampleOptions
from official.xlnet.api.vocab import train_vocabulary
from official.xlnet.data.schema import Manifest
from official.xlnet.tokenization.blanks import parse_blanks
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.special_tokens import UNK_ID, WORD_START
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.word_starts import word_starts
from tests.helpers.corpora import WORDS, documents_in, prepare, random_documents

BLANKS = [" ", "\n", "\n\n", "  ", "    ", "\t", "\r\n", " " * 23, " " * 24, " " * 57]
ODD = ["''", "``", "é", "e\u0301", "ﬁ", "Σ", "İ", "\u00a0", "\u2028", "1,", "<p>", "\v", "漢", "x"]
NEW = [
    "<sep>",
    "\ue0f0",
    "한",
    "\ufdd0",
    "\0",
]  # Not in the text that the vocabulary is trained on.


def texts_of(seed, number, odd):
    """Words, odd characters and white space in any order."""
    rng = random.Random(seed)
    parts = [BLANKS, odd, WORDS[:40]]
    return [
        "".join(rng.choice(rng.choice(parts)) for _ in range(rng.randint(0, 19)))
        for _ in range(number)
    ]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("vocabulary")
    texts = [*texts_of(0, 900, ODD)]
    texts += ["\n".join(lines) for lines in random_documents(random.Random(0), 300)]
    (directory / "text.jsonl").write_text("\n".join(json.dumps({"text": t}) for t in texts))
    found = train_vocabulary(directory / "text.jsonl", directory, 307, keep_whitespace=True)
    assert found == {"vocab_size": 307, "coverage": 1.0}
    return directory


@pytest.mark.parametrize("number", [200, pytest.param(900, marks=pytest.mark.slow)])
@pytest.mark.parametrize("lowercase", [False, True])
def test_ids_and_offsets_are_of_the_text_as_it_is(directory, lowercase, number):
    tokenizer = Tokenizer(directory / "spiece.model", lowercase)
    texts = [
        "",
        " ",
        "\n",
        "  a",
        "a  ",
        *texts_of(1, number, ODD),
        *texts_of(2, number // 2, ODD + NEW),
    ]
    batch = [row.tolist() for row in tokenizer.encode_batch(texts)]
    graph = GraphTokenizer(tokenizer)
    assert tf.function(graph.__call__)(tf.constant(texts)).to_list() == batch
    rows = zip(*(x.to_list() for x in OffsetTokenizer(tokenizer, graph)(texts)), strict=True)
    for text, ids, row in zip(texts, batch, rows, strict=True):
        assert tokenizer.encode(text) == ids
        found, offsets = tokenizer.encode_with_offsets(text)
        assert found == ids == row[0] and offsets == [*zip(*row[1:], strict=True)]
        if UNK_ID in ids:
            continue
        assert tokenizer.decode(ids) == (text.lower() if lowercase else text)
        for i, (start, end) in zip(ids, offsets, strict=True):
            assert lowercase or text[start:end] == tokenizer.id_to_piece(i).lstrip(WORD_START)


def test_words_begin_after_white_space(directory):
    tokenizer = Tokenizer(directory / "spiece.model")
    pieces = ["▁the", "t", "\n", "t", "\t", "▁▁▁", "▁the", "▁", "t"]
    ids = [*map(tokenizer.piece_to_id, pieces)]
    is_start = word_starts(tokenizer)(tf.constant([ids]), tf.constant([False]))[0].numpy()
    assert is_start.tolist() == [True, False, True, True, True, True, True, True, False]


@pytest.mark.parametrize(
    ("text", "parts", "begin_word"),
    [
        ("the ____ of", ["▁the", "▁of"], True),
        ("the\n____\n", ["▁the \n", "\n"], False),
        ("x____x", ["▁ x", "x"], False),
        ("____  the", ["", "▁▁ the"], True),
        ("the ____ ", ["▁the", "▁"], True),
        ("the  ____the", ["▁the ▁", "the"], True),
    ],
)
def test_blanks_are_filled_between_what_stands_there(directory, text, parts, begin_word):
    tokenizer = Tokenizer(directory / "spiece.model")
    parsed = parse_blanks(tokenizer, text)
    assert [" ".join(map(tokenizer.id_to_piece, ids)) for ids in parsed.ids] == parts
    assert [blank.begins_word for blank in parsed.blanks] == [begin_word]


def test_records_give_back_documents_as_they_are(directory, tmp_path):
    texts = [text for text in texts_of(3, 150, ODD[:9]) if text.strip()]
    (tmp_path / "text.jsonl").write_text("\n".join(json.dumps({"text": t}) for t in texts))
    plain = ["the\n  of\tand ", "    to\n\tin   that", "it\nwas"]  # Blank lines separate them.
    (tmp_path / "text.txt").write_text("\n\n \n".join(plain) + "\n\n" + "for\r\n on\r\n\r\n")
    counts = prepare(
        [tmp_path / "text.txt", tmp_path / "text.jsonl"],
        tmp_path / "out",
        vocab=str(directory),
        keep_accents=False,
    )
    assert Manifest.load(str(tmp_path / "out")).source["settings"]["keep_whitespace"]
    expected = [*plain, "for\n on", *texts]
    assert counts["documents"] == len(expected)
    found = Tokenizer(directory / "spiece.model").decode(documents_in(tmp_path / "out"))
    assert found[:-1] == expected[: len(found) - 1] and len(found) > 0.9 * len(expected)
    assert expected[len(found) - 1].startswith(found[-1])


def test_pieces_of_a_domain_are_added_with_the_white_space_kept(directory, tmp_path):
    tokenizer, text = Tokenizer(directory / "spiece.model"), tmp_path / "text.txt"
    text.write_text("\n".join(["  tension station", "\ttension stations"] * 200))
    sample = read_sample(text, SampleOptions(keep_whitespace=True), False, False)
    (tmp_path / "spiece.model").write_bytes(extend_vocabulary(tokenizer, sample, 3).model_proto)
    extended = Tokenizer(tmp_path / "spiece.model")
    texts = [*texts_of(4, 100, ODD), "  tension\n\tstation"]
    assert extended.keep_whitespace and extended.decode(extended.encode(texts)) == texts
    assert len(extended.encode(texts[-1])) < len(tokenizer.encode(texts[-1]))
