"""Words in scripts without spaces: which characters they have, and where they begin."""

import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.unspaced_scripts import begins_unspaced, ends_unspaced
from official.xlnet.tokenization.word_starts import word_starts
from tests.helpers.corpora import UDHR, chinese_vocabulary, vocabulary_of

UNSPACED = (
    *("CJK UNIFIED IDEOGRAPH", "HIRAGANA LETTER", "KATAKANA LETTER", "THAI CHARACTER"),
    *("LAO LETTER", "TIBETAN LETTER", "MYANMAR LETTER", "KHMER LETTER", "BOPOMOFO LETTER"),
)
SPACED = (
    *("LATIN", "GREEK", "CYRILLIC", "ARABIC", "HEBREW", "DEVANAGARI", "BENGALI", "TAMIL"),
    *("HANGUL", "ETHIOPIC", "GEORGIAN", "ARMENIAN", "DIGIT"),
)


def test_scripts_by_the_names_of_their_characters():
    found = dict.fromkeys((*UNSPACED, *SPACED), 0)
    for character in map(chr, range(0x21000)):
        name, category = unicodedata.name(character, ""), unicodedata.category(character)
        script = next((script for script in found if name.startswith(script)), None)
        if script in UNSPACED:
            assert begins_unspaced(character) != (category in ("Mn", "Mc", "Lm")), name
            assert ends_unspaced(character), name
        elif script and category not in ("Mn", "Mc"):
            assert not begins_unspaced(character) and not ends_unspaced(character), name
        if script:
            found[script] += 1
    assert min(found.values()) > 9


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        *[("人权", True), ("。", True), ("ありがとう", True), ("ーブル", False), ("々", False)],
        *[("ที่", True), ("ิน", False), ("ๆ", False), ("၁၉၄၈", True), ("ကို", True), ("ို", False)],
        *[("", False), ("▁人权", False), ("a人", False), ("한국", False), ("123", False)],
    ],
)
def test_what_begins_a_word(text, begins):
    assert begins_unspaced(text) == begins


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(f"{chinese_vocabulary()}/spiece.model", keep_accents=True)


def words(tokenizer, ids, phrases=()):
    """The words of token ids, which have to be the same in reversed text."""
    batch = tf.constant([ids, ids[::-1]])
    starts = word_starts(tokenizer, phrases)(batch, tf.constant([False, True])).numpy()
    np.testing.assert_array_equal(starts[0], starts[1, ::-1])
    joined = "".join(
        "|" * start + tokenizer.id_to_piece(i)
        for i, start in zip(ids, starts[0].tolist(), strict=True)
    )
    return [word.replace("▁", " ").strip() for word in joined.split("|") if word.strip("▁")]


def test_pieces_are_words_and_latin_words_among_them_stay_whole(tokenizer):
    ids = tokenizer.encode("他们享有自由，和平等。TensorFlow在2024年")
    found = words(tokenizer, ids)
    assert "".join(found) == "他们享有自由,和平等。TensorFlow在2024年"
    latin = [word for word in found if not begins_unspaced(word) and word != ","]
    assert latin == ["TensorFlow", "2024"]  # Whole words, also of several pieces.
    others = [tokenizer.id_to_piece(i).strip("▁") for i in ids]
    assert [w for w in found if begins_unspaced(w)] == [p for p in others if begins_unspaced(p)]
    assert len(found) >= 9
    *start, last = tokenizer.encode("人")
    flow = [tokenizer.piece_to_id(letter) for letter in "Flow"]
    assert words(tokenizer, [*start, last, *flow, last]) == ["人", "Flow", "人"]


def test_phrases_at_the_start_and_inside_of_text(tokenizer):
    phrase = "世界和平"
    ids = tokenizer.encode(phrase + "在" + phrase + "。")
    assert len(tokenizer.encode(phrase)) > 1
    assert phrase not in words(tokenizer, ids)
    assert words(tokenizer, ids, [phrase]).count(phrase) == 2
    assert words(tokenizer, ids, ["人"]) == words(tokenizer, ids)  # A single piece is a word.


@pytest.mark.slow
@pytest.mark.skipif(not UDHR.is_dir(), reason="real text is not part of the clone")
@pytest.mark.parametrize("language", ["ar", "hi", "ko", "ru"])
def test_languages_with_spaces_are_read_as_ever(language, tmp_path):
    text = (UDHR / f"{language}.txt").read_text()
    tokenizer = Tokenizer(f"{vocabulary_of(text, tmp_path)}/spiece.model", keep_accents=True)
    ids = np.concatenate(tokenizer.encode_batch(text.splitlines()))
    by_spaces = [tokenizer.id_to_piece(int(i)) for i in ids]
    by_spaces = [p[0] in "▁<" or p in [*"!\"#$%&'()*+,-./:;=>?@[]^_`{|}~\\"] for p in by_spaces]
    starts = word_starts(tokenizer)(tf.constant(ids[None]), tf.constant([False]))[0].numpy()
    np.testing.assert_array_equal(starts, by_spaces)
