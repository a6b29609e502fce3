"""Vocabularies that SentencePiece's own trainer writes with other options than `xlnet vocab`."""

import itertools
import random
from pydoc_data.topics import topics

import numpy as np
import pytest
import sentencepiece

from official.xlnet.errors import DataError
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.sentencepiece_proto import warn_of_export
from official.xlnet.tokenization.special_tokens import CONTROL_IDS, UNK_ID, VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.oracles.tokenizer_oracle import release_encode
from tests.helpers.world import command

SPECIALS = {"control_symbols": "<cls>,<sep>,<pad>,<mask>,<eod>", "user_defined_symbols": "<eop>"}
RELEASE = {
    **SPECIALS,
    "user_defined_symbols": '<eop>,.,(,),",-,–,£,€',
    "character_coverage": 0.9999,
}
WITHOUT_PAD = {**SPECIALS, "control_symbols": "<cls>,<sep>,<mask>,<eod>"}
USER_DEFINED = {"user_defined_symbols": "<cls>,<sep>,<pad>,<mask>,<eod>,<eop>"}
READ = {  # Options of the trainer, and why the vocabulary cannot be exported.
    "release": (RELEASE, ""),
    "bpe bytes": ({**SPECIALS, "model_type": "bpe", "byte_fallback": True}, ""),
    "identity": ({**SPECIALS, "normalization_rule_name": "identity"}, "a normalizer, got none"),
    "bytes": ({**SPECIALS, "byte_fallback": True}, "byte pieces, got <0x00>"),
}
READ_TOO = {
    "char": ({**SPECIALS, "model_type": "char", "vocab_size": 80}, ""),
    "user-defined": (USER_DEFINED, ""),
    "nfkc_cf": ({**SPECIALS, "normalization_rule_name": "nfkc_cf"}, ""),
    "pad_id": ({**WITHOUT_PAD, "pad_id": 5}, ""),
    "spaces": ({**SPECIALS, "remove_extra_whitespaces": False}, ""),
    "no prefix": ({**SPECIALS, "add_dummy_prefix": False}, "add_dummy_prefix, got one without"),
    "bpe": ({**RELEASE, "model_type": "bpe"}, ""),
    "bpe identity": ({**SPECIALS, "model_type": "bpe", "normalization_rule_name": "identity"}, ""),
    "word": ({**SPECIALS, "model_type": "word"}, ""),
}
KINDS = [pytest.param(*row, id=name) for name, row in READ.items()]
KINDS += [pytest.param(*row, id=name, marks=pytest.mark.slow) for name, row in READ_TOO.items()]
REFUSED = {
    "defaults": ({}, "expected its first pieces to be <unk> <s> </s> <cls> .*got <unk> <s> </s> "),
    "other ids": ({**SPECIALS, "unk_id": 2, "bos_id": 0, "eos_id": 1}, "expected its first piec"),
    "suffix": ({**SPECIALS, "treat_whitespace_as_suffix": True}, "expected a space before a word"),
}
ODD = [*"abe.,19 éÉ中国ー😀ﬁⅫ\ue000\u0301\u200b", "▁e", "``", "1,000", "<sep>", "<eop>", "3,"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A file of prose and numbers."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("text") / "text.txt"
    lines = [line for topic in topics.values() for line in topic.splitlines() if line.strip()]
    numbers = [f"on page {n}, {n % 7},{n % 10}00 of 3, or {draw.random()}," for n in range(300)]
    path.write_text("\n".join([*lines[:900], *numbers]) + "\n", encoding="utf-8")
    return path


def train(text, directory, options):
    prefix = f"{directory}/{VOCAB_FILE.removesuffix('.model')}"
    options = {"vocab_size": 500, "minloglevel": 2, "num_threads": 1, **options}
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=prefix, **options)
    return f"{prefix}.model"


@pytest.mark.parametrize(("options", "obstacle"), KINDS)
def test_our_ids_are_sentencepieces_own_up_to_the_records(
    text, tmp_path, world, caplog, options, obstacle
):
    path = train(text, tmp_path, options)
    tokenizer, processor = Tokenizer(path), sentencepiece.SentencePieceProcessor(model_file=path)
    lines, draw = text.read_text(encoding="utf-8").splitlines()[:40], random.Random(0)
    texts = ["".join(draw.choices(ODD, k=draw.randint(1, 13))) for _ in range(200)] + lines
    wanted = [tokenizer.encode_with_offsets(text) for text in texts]
    for each, (ids, offsets) in zip(texts, wanted, strict=True):
        assert not set(ids) & set(CONTROL_IDS)
        if "<sep>" not in each and UNK_ID not in ids:
            assert ids == release_encode(processor, each, False, False)
        assert offsets == sorted(offsets)
        assert all(0 <= start <= end <= len(each) for start, end in offsets)
        size = tokenizer.num_characters[ids]
        if "byte_fallback" in options:
            assert sum(size) == len(processor.normalize(tokenizer.clean(each)))
        assert all(offsets[k] == offsets[k - 1] for k in np.flatnonzero(size == 0))
    starts = tokenizer.is_word_start[tokenizer.encode("中ж")].tolist()  # Han begins a word.
    assert len(starts) < 6 or starts == [True, True, False, False, False, False]
    assert [ids for ids, _ in wanted] == tokenizer.encode(texts)
    settings = [f"--set={each}" for each in ("heldout_fraction=0", "max_unknown=1", "vocab_size=0")]
    flags = {"input": text, "vocab": tmp_path, "config": world.config, "output": tmp_path / "data"}
    tokens = itertools.chain(*tokenizer.encode(text.read_text("utf-8").splitlines()))
    assert command("prepare", "--num_workers=1", *settings, **flags)["tokens"] == len([*tokens]) + 1
    caplog.clear()
    warn_of_export(tokenizer.model_proto)
    assert ("xlnet export will refuse a model with this vocab" in caplog.text) == bool(obstacle)
    if obstacle:
        with pytest.raises(DataError, match=f"expected a unigram model with.*{obstacle}"):
            GraphTokenizer(tokenizer)
        return
    found = [row.to_list() for row in OffsetTokenizer(tokenizer, GraphTokenizer(tokenizer))(texts)]
    assert found[0] == [ids for ids, _ in wanted]
    spans = [[*zip(*row, strict=True)] for row in zip(*found[1:], strict=True)]
    same = [span == expected for span, (_, expected) in zip(spans, wanted, strict=True)]
    assert all(same[200:]) and np.mean(same) > 0.7  # Of ordinary lines; of odd characters.


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_other_conventions_are_refused_in_a_sentence(text, tmp_path, options, message):
    with pytest.raises(DataError, match=message):
        Tokenizer(train(text, tmp_path, options))


def test_places_of_bytes_that_spell_the_space_before_a_word(text, tmp_path):
    """A vocabulary of whole words spells all others, and their space, as bytes."""
    options = {**SPECIALS, "model_type": "word", "byte_fallback": True, "vocab_size": 700}
    tokenizer, draw = Tokenizer(train(text, tmp_path, options)), random.Random(0)
    for _ in range(200):
        words = ["".join(draw.choices("abc19ﬁ中😀", k=draw.randint(1, 4))) for _ in range(3)]
        written = " ".join(words)
        ids, offsets = tokenizer.encode_with_offsets(written)
        assert ids == tokenizer.encode(written)
        covered = {place for start, end in offsets for place in range(start, end)}
        assert covered == {place for place, c in enumerate(written) if c != " "}
        assert offsets == sorted(offsets)
    with pytest.raises(DataError, match="expected a vocabulary with spaces, got bytes in place"):
        OffsetTokenizer(tokenizer, GraphTokenizer.__new__(GraphTokenizer))
