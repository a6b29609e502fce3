"""Ids, offsets and text of the tokenizer against the rules of the release, word by word."""

import hashlib
import itertools
import pathlib
import re
import string
import unicodedata

import pytest
import sentencepiece
import tensorflow as tf

from official.xlnet.tokenization import tokenizer as tokenizer_module
from official.xlnet.tokenization.batches.cleaning import clean_all
from official.xlnet.tokenization.offsets import clean_with_alignment
from official.xlnet.tokenization.special_tokens import SPECIAL_PIECES
from official.xlnet.tokenization.text_cleaning import clean
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.compare import assert_refused, assert_same_items
from tests.helpers.oracles.tokenizer_oracle import (
    SPECIAL_TEXT,
    nasty_lines,
    real_lines,
    release_clean,
    release_encode,
)


@pytest.mark.parametrize("num_lines", [70, pytest.param(20000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("lowercase", "keep_accents"), itertools.product([False, True], repeat=2))
def test_ids_follow_the_release_rules(vocab_file, num_lines, lowercase, keep_accents, monkeypatch):
    monkeypatch.setattr(tokenizer_module, "_TEXTS_PER_CALL", 50)
    processor = sentencepiece.SentencePieceProcessor(model_file=vocab_file)
    tokenizer = Tokenizer(vocab_file, lowercase, keep_accents)
    texts = [
        *real_lines(num_lines),
        *nasty_lines(num_lines),
        *SPECIAL_TEXT,
        "",
        " ",
        "a  b",
        "\u0301 a",
    ]
    expected = [release_encode(processor, text, lowercase, keep_accents) for text in texts]
    assert_same_items([ids.tolist() for ids in tokenizer.encode_batch(texts)], expected)
    assert_same_items([*map(tokenizer.encode, texts)], expected)
    found = [*itertools.chain(*expected)]
    numbers = {"tokens": len(found), "unknown_tokens": found.count(0)}
    numbers |= characters_of(processor, tokenizer, texts)
    assert tokenizer.counts == {name: 2 * number for name, number in numbers.items()}
    for text, wanted in zip(texts, expected, strict=True):
        cleaned, start, end = clean_with_alignment(text, lowercase, keep_accents)
        assert cleaned == clean(text, lowercase, keep_accents)
        assert cleaned == release_clean(text, lowercase, keep_accents)
        assert len(start) == len(end) == len(cleaned)
        ids, offsets = tokenizer.encode_with_offsets(text)
        assert ids == wanted and len(offsets) == len(ids)
        assert all(0 <= start <= end <= len(text) for start, end in offsets)
        for (start, end), (next_start, next_end) in itertools.pairwise(offsets):
            assert start <= next_start and (end <= next_end or next_start == next_end)
    assert tokenizer.counts == {name: 3 * number for name, number in numbers.items()}


def characters_of(processor, tokenizer, texts):
    """Counts of characters, by the pieces of the library."""
    encoded = [processor.encode(tokenizer.clean(text), return_type="proto") for text in texts]
    pieces = [piece for proto in encoded for piece in proto.pieces]
    unknown = [piece.piece for piece in pieces if piece.id == 0]
    known = {processor.id_to_piece(i) for i in range(processor.vocab_size())}
    letters = "".join(
        processor.normalize(tokenizer.clean(text))
        for text, proto in zip(texts, encoded, strict=True)
        if any(piece.id == 0 for piece in proto.pieces)
    )
    other_case = sum(x not in known and x.swapcase() in known for x in letters)
    counts = {
        "characters": sum(len(piece.piece) for piece in pieces),
        "unknown_characters": sum(map(len, unknown)),
        "other_case": other_case,
    }
    return {name: count for name, count in counts.items() if count or name == "characters"}


@pytest.mark.parametrize("cleaning", itertools.product([False, True], repeat=2))
def test_batches_are_cleaned_as_each_text(cleaning):
    """Wherever the one text is that has something to clean, and at any place of it."""
    odd = ("\t", " ", "  ", "''", "'", "``", "\0", "\x7f", "\x1f", "é", "\u3000", "\ud800", "ﬁ")
    for fault in odd:
        for text in (fault, f"{fault}A b", f"A {fault}b", f"A{fault}b", f"A b{fault}"):
            for texts in ([text], [text, "C"], ["C d", text, "E"], ["", text], ["C", "", text]):
                expected = [clean(each, *cleaning) for each in texts]
                assert clean_all(texts, *cleaning) == expected, (texts, cleaning)


def test_digit_commas_are_split(vocab_file, tokenizer):
    processor = sentencepiece.SentencePieceProcessor(model_file=vocab_file)
    text = "on 5, 3,2, 1,000 and a,"
    # Which pieces there are depends on the version of the manual, and so on that of Python.
    assert any(re.search(r"\d,$", piece) for piece in processor.encode(text, return_type=str))
    pieces = [tokenizer.id_to_piece(i) for i in tokenizer.encode(text)]
    assert not any(len(piece) > 1 and piece.endswith(",") for piece in pieces if piece != "a,")
    assert "".join(pieces) == "▁on▁5,▁3,2,▁1,000▁and▁a,"


def test_special_tokens_in_text_are_text(tokenizer):
    for piece in SPECIAL_PIECES[1:-1]:
        assert not {*tokenizer.encode(f"in {piece} in")} & {*range(1, 9)}
    assert tokenizer.piece_to_id("<eop>") in tokenizer.encode("<eop>")  # A user-defined symbol.


def test_offsets_are_those_of_the_original_text(tokenizer):
    text = "  the\u3000café  “x” ''in'' ½ e\u0301\u0302 ﬁ 🙂 on 5,"
    _, offsets = tokenizer.encode_with_offsets(text)
    visible = [text[start:end] for start, end in offsets if end > start]
    assert visible[-2:] == ["5", ","]
    assert {"the", "é", "''", "½", "e\u0301\u0302", "🙂"} <= {*visible}
    assert visible.count("½") == 3  # 1, fraction slash and 2 come from it.
    assert not any(part != part.strip() for part in visible)
    covered = {k for start, end in offsets for k in range(start, end)}
    assert covered == {k for k, character in enumerate(text) if not character.isspace()}
    cleaned, start, end = clean_with_alignment("  Cafe\u0301\t\n``ﬁ''İ", lowercase=True)
    assert cleaned == 'cafe "fi"i'
    assert start.tolist() == [2, 3, 4, 5, 7, 9, 11, 11, 12, 14]
    assert end.tolist() == [3, 4, 5, 7, 9, 11, 12, 12, 14, 15]
    # A mark belongs to all characters of the ligature before it.
    cleaned, start, end = clean_with_alignment("xﬁ\u0301\u0302n")
    assert (cleaned, start.tolist(), end.tolist()) == ("xfin", [0, 1, 1, 4], [1, 4, 4, 5])


def test_decode_gives_cleaned_text_back(tokenizer):
    texts = ["the Python statement", "", "on page 5, 1,000 or a.b(c)"]
    assert tokenizer.decode(tokenizer.encode(texts)) == texts
    assert tokenizer.decode(tf.constant(tokenizer(texts)["token_ids"])) == texts
    assert tokenizer.decode([5, 3, *tokenizer.encode("the"), 4, 7]) == "the"
    for wrong in (-1, tokenizer.vocab_size):
        for method, ids in ((tokenizer.decode, [3, wrong]), (tokenizer.id_to_piece, wrong)):
            assert_refused(f"got {wrong}", method, ids)
    for wrong in ("now", 7, [1.0, 2.0], [[1], ["a"]]):
        with pytest.raises(TypeError, match="ids: expected integers"):
            tokenizer.decode(wrong)


def test_lone_surrogates_are_replaced(vocab_file, tokenizer):
    text = "the\ud800x \udfff"
    ids = tokenizer.encode(text.replace("\ud800", "\ufffd")[:-1])
    assert tokenizer.encode(text) == tokenizer.encode_with_offsets(text)[0] == ids
    assert Tokenizer(vocab_file, keep_accents=True).encode(text) == ids


def test_properties_of_pieces(vocab_file, tokenizer):
    assert tokenizer.is_word_start.size == tokenizer.vocab_size == len(tokenizer) == 2000
    for i, starts in enumerate(tokenizer.is_word_start):
        piece = tokenizer.id_to_piece(i)
        is_unspaced = "CJK" in unicodedata.name(piece[0], "")
        assert starts == (piece[0] in "▁<" or piece in [*string.punctuation] or is_unspaced)
    assert tokenizer.sha256 == hashlib.sha256(pathlib.Path(vocab_file).read_bytes()).hexdigest()
    ids = (tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id)
    assert [tokenizer.id_to_piece(i) for i in ids] == ["<cls>", "<sep>", "<pad>"]


def test_vocabularies_that_cannot_be_used(tmp_path, vocab_file):
    not_utf8 = pathlib.Path(vocab_file).read_bytes().replace(b"<unk>", b"\xbcunk>", 1)
    contents = {"broken": b"no model at all" * 50, "empty": b"", "not_utf8": not_utf8}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    for name, message in {
        "none": "none.*expected a SentencePiece model.*No such file",
        "empty": "empty.*expected a SentencePiece model.*empty file",
        "broken": "broken.*expected a SentencePiece model.*750 bytes",
        "not_utf8": "expected pieces in UTF-8",
        "": "expected a SentencePiece model",
    }.items():
        assert_refused(message, Tokenizer, str(tmp_path / name))
