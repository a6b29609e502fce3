"""Data preparation of scripts without spaces: sentence ends, filters, and targets of windows."""

import pytest

from data_prep.corpus.filters import reason_to_drop
from data_prep.record_settings import Settings
from official.xlnet.api.prepare import prepare
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.training.target_counts import targets_per_window
from tests.helpers.corpora import (
    UDHR,
    sentences,
    vocabulary_of,
)

# Each with the sentences that it has.
TEXTS = {
    "Chinese": (
        ["人人生而自由。", "他们有理性吗?", "有!", "「应以兄弟关系相对待。」", "第1.5条。"],
    ),
    "Japanese": (["すべての人間は自由である。", "「本当か。」", "はい."],),
    "Burmese": (["လူတိုင်းသည်လွတ်လပ်သည်။", "တူညီသော၊ဂုဏ်သိက္ခာ။"],),
    "Khmer": (["មនុស្សទាំងអស់កើតមកមានសេរីភាព។", "សមភាព៕"],),
    "Tibetan": (["འགྲོ་བ་མིའི་རིགས།", "རང་དབང་།"],),
    "Thai": (["มนุษย์ทั้งหลายเกิดมามีอิสระ", "และเสมอภาคกันในเกียรติศักดิ์"], " "),
    "Lao": (["ມະນຸດເກີດມາມີສິດເສລີພາບ", "ແລະສະເຫມີຫນ້າກັນ"], " "),
}


@pytest.mark.parametrize("language", TEXTS)
def test_sentences(language, tmp_path):
    expected, *space = TEXTS[language]
    text = "".join(space).join(expected) if space else "".join(expected)
    vocab = vocabulary_of("\n".join([text, *expected] * 9), tmp_path)
    assert sentences([text, expected[0]], vocab, tmp_path) == [*expected, expected[0]]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["กรุงเทพฯเป็นเมือง", "第3.5条", "有1.5人，和、人", "ကို၊ကို", "ต่าง ๆ"])
def test_abbreviations_numbers_and_commas_end_no_sentence(text, tmp_path):
    vocab = vocabulary_of("\n".join([text] * 9), tmp_path)
    assert len(sentences([text], vocab, tmp_path)) == 1


def filter_settings(**options):
    sizes = dict(seq_len=29, reuse_len=11, num_lanes=1, bidirectional=False, heldout_fraction=0.0)
    return Settings(**sizes, lowercase=False, keep_accents=True, seed=0, **options)


def test_characters_count_as_words_for_the_filters():
    document = ["人人生而自由，在尊严和权利上一律平等。", "他们赋有理性和良心。"]
    assert reason_to_drop(document, filter_settings(min_words=28)) is None
    assert reason_to_drop(document, filter_settings(min_words=33)) == "too_short"
    settings = filter_settings(drop_low_quality=True)
    assert reason_to_drop(document, settings) is None
    assert reason_to_drop(["。。。，，，、、、人"], settings) == "low_quality"
    assert reason_to_drop(["a b c d e f g 人权"], settings) == "low_quality"  # Words of a letter.
    assert reason_to_drop(["the words 人权 have letters"], settings) is None


def config(**data):
    sizes = dict(seq_len=61, reuse_len=29, num_predict=20, target_ratio=3.0, num_lanes=2)
    data = {**sizes, "heldout_fraction": 0.0, "keep_accents": True, **data}
    return XLNetConfig.from_dict({"data": data})


@pytest.mark.slow
@pytest.mark.skipif(not UDHR.is_dir(), reason="real text is not part of the clone")
@pytest.mark.parametrize("language", ["zh", "zh-Hant", "ja", "th", "lo", "km", "my"])
def test_targets_and_sentences_of_real_text(language, tmp_path):
    lines = (UDHR / f"{language}.txt").read_text().splitlines()
    vocab = vocabulary_of("\n".join(lines), tmp_path)
    lines = [line.strip() for line in lines if line.strip()]
    assert len(lines) + 9 < len(sentences(lines, vocab, tmp_path)) < 5 * len(lines)
    prepare([str(tmp_path / "document.txt")], vocab, config(), str(tmp_path / "out"), num_workers=1)
    assert targets_per_window(config(), str(tmp_path / "out"))["targets_per_window"] > 19.5
