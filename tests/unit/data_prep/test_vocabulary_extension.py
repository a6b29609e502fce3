"""New pieces for a domain: what becomes of ids, scores and segmentation."""

import random

import numpy as np
import pytest
import sentencepiece

from data_prep.corpus.vocabulary import read_sample
from data_prep.corpus.vocabulary_extension import extend_vocabulary
from data_prep.settings import MAX_VOCAB_SIZE, SampleOptions
from official.xlnet.tokenization.sentencepiece_proto import NORMAL, parse_model
from official.xlnet.tokenization.special_tokens import SPECIAL_PIECES, UNK_ID
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.vocabulary_file import write_vocabulary
from tests.helpers.compare import assert_refused
from tests.helpers.corpora import (
    as_text,
    chinese_documents,
    domain_text,
    random_documents,
    vocabulary_dir,
)

SIZE, NEW = 211, 23


def sample_of(text, directory, lowercase=False, keep_accents=False):
    (directory / "domain.txt").write_text(text, encoding="utf-8")
    inputs = [str(directory / "domain.txt")]
    return read_sample(inputs, SampleOptions(sample_bytes=1 << 30), lowercase, keep_accents)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(f"{vocabulary_dir()}/spiece.model")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return sample_of(domain_text(), tmp_path_factory.mktemp("domain"))


@pytest.fixture(scope="module")
def extension(tokenizer, sample):
    return extend_vocabulary(tokenizer, sample, NEW)


@pytest.fixture(scope="module")
def extended(extension, tmp_path_factory):
    """The tokenizer with the new pieces."""
    directory = str(tmp_path_factory.mktemp("extended"))
    write_vocabulary(extension.model_proto, directory)
    return Tokenizer(f"{directory}/spiece.model")


def test_old_pieces_keep_their_ids_and_scores(tokenizer, extended):
    old, new = parse_model(tokenizer.model_proto), parse_model(extended.model_proto)
    assert extended.vocab_size == new.trainer_spec.vocab_size == SIZE + NEW
    assert [*new.pieces[:SIZE]] == [*old.pieces]
    assert new.normalizer_spec == old.normalizer_spec
    assert [extended.id_to_piece(i) for i in range(9)] == [*SPECIAL_PIECES]
    scores = [piece.score for piece in old.pieces if piece.type == NORMAL]
    for piece in new.pieces[SIZE:]:
        assert piece.type == NORMAL
        # SentencePiece derives other scores from the highest and the lowest.
        assert min(scores) <= piece.score <= max(scores)
    assert len({piece.piece for piece in new.pieces}) == SIZE + NEW


def test_text_of_the_domain_takes_fewer_tokens(tokenizer, sample, extension, extended):
    counts = []
    for each in (tokenizer, extended):
        counts.append(sum(map(len, each.encode_batch(sample.sentences))))
        # A comma after a digit is a token of its own for the tokenizer, not for SentencePiece.
        raw = sentencepiece.SentencePieceProcessor(model_proto=each.model_proto)
        counts.append(sum(map(len, raw.encode(sample.sentences))))
    assert counts[2] < 0.75 * counts[0]
    assert counts[1::2] == [extension.tokens_before, extension.tokens_after]
    for term in ("tachycardia", "embolism", "angioplasty"):
        assert len(extended.encode(term)) < len(tokenizer.encode(term))


def test_text_without_new_pieces_is_segmented_as_before(tokenizer, extended):
    """Unknown characters and user-defined symbols included, whose scores depend on the others'."""
    rng = random.Random(7)
    pieces = [extended.id_to_piece(i) for i in range(SIZE, extended.vocab_size)]
    letters = [*"abcdeimnorstuy", *"  .()\"-–£€λ漢0123,'"]
    lines = ["".join(rng.choices(letters, k=rng.randint(1, 60))) for _ in range(1000)]
    lines += [line for document in random_documents(rng, 100) for line in document]
    unchanged = 0
    for line in lines:
        words = "▁" + "▁".join(tokenizer.clean(line).split())
        if not any(piece in words for piece in pieces):
            assert extended.encode(line) == tokenizer.encode(line), line
            unchanged += 1
    assert 200 < unchanged < len(lines)


def test_scores_are_log_probabilities_and_shares_are_those_by_hand(sample, extension):
    processor = sentencepiece.SentencePieceProcessor(model_proto=extension.model_proto)
    uses = [i for ids in processor.encode(sample.sentences) for i in ids]
    before = []  # The same text, new pieces spelled in old ones.
    for i in uses:
        before += extension.replaced[i - SIZE] if i >= SIZE else [i]
    lowest = min(processor.get_score(i) for i in range(17, SIZE))
    found = [processor.get_score(i) for i in range(SIZE, SIZE + NEW)]
    assert found == sorted(found, reverse=True)
    for number, ids in enumerate(extension.replaced):
        count = uses.count(SIZE + number)
        # The counts are those of the last round of pruning, with a few pieces more.
        assert abs(found[number] - max(np.log(count / len(uses)), lowest)) < 0.25
        expected = np.mean([np.log(count / before.count(i)) for i in ids])
        assert extension.log_share[number] == pytest.approx(expected, abs=1e-9)


def test_characters_that_the_vocabulary_lacks(tmp_path, tokenizer):
    text = as_text(chinese_documents(1, 40))
    extension = extend_vocabulary(tokenizer, sample_of(text, tmp_path, keep_accents=True), 41)
    processor = sentencepiece.SentencePieceProcessor(model_proto=extension.model_proto)
    assert processor.encode("自由")[-1] >= SIZE
    assert any(ids[-1] == UNK_ID for ids in extension.replaced)


def test_what_cannot_be_extended(tmp_path, tokenizer, sample):
    options = {"model_type": "bpe", "vocab_size": 150, "minloglevel": 2, "pad_id": -1}
    sentencepiece.SentencePieceTrainer.train(
        **options,
        sentence_iterator=iter(sample.sentences),
        model_prefix=f"{tmp_path}/spiece",
        control_symbols=[*SPECIAL_PIECES[3:]],
    )
    few = sample_of("the the of\n", tmp_path)
    for vocabulary, text, size, message in (
        (tokenizer, sample, 5000, "not enough text for 5,000 new pieces: found "),
        (tokenizer, sample, MAX_VOCAB_SIZE, "expected at most .* new pieces .* got 2,097,152"),
        (tokenizer, few, 1, "1 new pieces: found 0 that"),
        (Tokenizer(f"{tmp_path}/spiece.model"), sample, 1, "a unigram model, which can be extend"),
    ):
        assert_refused(message, extend_vocabulary, vocabulary, text, size)
