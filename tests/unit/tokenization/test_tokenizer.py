import hashlib
import itertools
import re
import string
import unicodedata

import numpy as np
import pytest
import sentencepiece

from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import SPECIAL_PIECES
from official.xlnet.tokenization.text_cleaning import clean, clean_with_alignment
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.oracles.tokenizer_oracle import (
    SPECIAL_TEXT,
    nasty_lines,
    real_lines,
    release_clean,
    release_encode,
)

KINDS = list(itertools.product([False, True], [False, True]))


@pytest.fixture(scope="module")
def tokenizer(vocab_file):
    return Tokenizer(vocab_file)


def check_against_release_rules(vocab_file, num_lines, lowercase, keep_accents):
    processor = sentencepiece.SentencePieceProcessor(model_file=vocab_file)
    tokenizer = Tokenizer(vocab_file, lowercase, keep_accents)
    texts = [*real_lines(num_lines), *nasty_lines(num_lines), *SPECIAL_TEXT, "", " ", "\u0301 a"]
    expected = [release_encode(processor, text, lowercase, keep_accents) for text in texts]
    assert [ids.tolist() for ids in tokenizer.encode_batch(texts)] == expected
    assert [tokenizer.encode(text) for text in texts] == expected
    for text, ids in zip(texts, expected, strict=True):
        cleaned, start, end = clean_with_alignment(text, lowercase, keep_accents)
        assert cleaned == clean(text, lowercase, keep_accents)
        assert cleaned == release_clean(text, lowercase, keep_accents)
        assert len(start) == len(end) == len(cleaned)
        check_offsets(text, ids, *tokenizer.encode_with_offsets(text))


def check_offsets(text, expected_ids, ids, offsets):
    assert ids == expected_ids
    assert len(offsets) == len(ids)
    for (start, end), (next_start, next_end) in itertools.pairwise(offsets):
        assert start <= next_start
        assert end <= next_end or next_start == next_end
    assert all(0 <= start <= end <= len(text) for start, end in offsets)


@pytest.mark.parametrize(("lowercase", "keep_accents"), KINDS)
def test_ids_follow_the_release_rules(vocab_file, lowercase, keep_accents):
    check_against_release_rules(vocab_file, 700, lowercase, keep_accents)


@pytest.mark.slow
@pytest.mark.parametrize(("lowercase", "keep_accents"), KINDS)
def test_ids_follow_the_release_rules_on_many_lines(vocab_file, lowercase, keep_accents):
    check_against_release_rules(vocab_file, 20000, lowercase, keep_accents)


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
        assert tokenizer.piece_to_id(piece) not in tokenizer.encode(f"in {piece} in")
    assert not set(tokenizer.encode("<sep>")) & set(range(1, 9))
    assert tokenizer.piece_to_id("<eop>") in tokenizer.encode("<eop>")  # A user-defined symbol.


def test_offsets_are_those_of_the_original_text(tokenizer):
    text = "  the\u3000café  “x” ''in'' ½ e\u0301\u0302 ﬁ 🙂 on 5,"
    ids, offsets = tokenizer.encode_with_offsets(text)
    visible = [text[start:end] for start, end in offsets if end > start]
    assert text[offsets[-1][0] : offsets[-1][1]] == ","
    assert text[offsets[-2][0] : offsets[-2][1]] == "5"
    for part in ("the", "é", "''", "½", "e\u0301\u0302", "🙂"):
        assert part in visible
    assert visible.count("½") == 3  # 1, fraction slash and 2 come from it.
    assert not any(part != part.strip() for part in visible)
    covered = {k for start, end in offsets for k in range(start, end)}
    assert covered == {k for k, character in enumerate(text) if not character.isspace()}
    assert len(ids) == len(offsets)


def test_clean_alignment_by_hand():
    cleaned, start, end = clean_with_alignment("  Cafe\u0301\t\n``ﬁ''İ", lowercase=True)
    assert cleaned == 'cafe "fi"i'
    assert start.tolist() == [2, 3, 4, 5, 7, 9, 11, 11, 12, 14]
    assert end.tolist() == [3, 4, 5, 7, 9, 11, 12, 12, 14, 15]


def test_decode_gives_cleaned_text_back(tokenizer):
    for text in ("the Python statement", "on page 5, 1,000 or a.b(c)"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode([5, 3, *tokenizer.encode("the"), 4, 7]) == "the"
    assert tokenizer.decode(np.array(tokenizer.encode("the"), np.int32)) == "the"
    for wrong in (-1, tokenizer.vocab_size):
        with pytest.raises(DataError, match=f"got {wrong}"):
            tokenizer.decode([3, wrong])
        with pytest.raises(DataError, match=f"got {wrong}"):
            tokenizer.id_to_piece(wrong)


def test_lone_surrogates_are_replaced(tokenizer):
    text = "the\ud800x \udfff"
    assert tokenizer.encode(text) == tokenizer.encode(text.replace("\ud800", "\ufffd")[:-1])
    assert Tokenizer(tokenizer.model_file, keep_accents=True).encode(text) == tokenizer.encode(text)
    assert len(tokenizer.encode_with_offsets(text)[1]) == len(tokenizer.encode(text))


def test_word_starts(tokenizer):
    assert tokenizer.is_word_start.shape == (tokenizer.vocab_size,)
    for i, starts in enumerate(tokenizer.is_word_start):
        piece = tokenizer.id_to_piece(i)
        is_unspaced = "CJK" in unicodedata.name(piece[0], "")
        assert starts == (piece[0] in "▁<" or piece in list(string.punctuation) or is_unspaced)


def test_checksum_and_size(vocab_file, tokenizer):
    with open(vocab_file, "rb") as file:
        assert tokenizer.sha256 == hashlib.sha256(file.read()).hexdigest()
    assert tokenizer.vocab_size == 2000
    assert tokenizer.piece_to_id("▁no such piece") == 0


def test_vocabularies_that_cannot_be_used(tmp_path):
    missing, empty, broken = (str(tmp_path / name) for name in ("none", "empty", "broken"))
    open(empty, "wb").close()
    with open(broken, "wb") as file:
        file.write(b"no model at all" * 50)
    for path, why in ((missing, "No such file"), (empty, "empty file"), (broken, "750 bytes")):
        with pytest.raises(DataError, match=f"{path}.*expected a SentencePiece model.*{why}"):
            Tokenizer(path)
    with pytest.raises(DataError, match="expected a SentencePiece model"):
        Tokenizer(str(tmp_path))
