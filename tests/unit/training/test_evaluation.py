"""Language models against what their text is: words, characters and frequencies of tokens."""

import math
import pathlib
import unicodedata
from collections import Counter

import numpy as np
import pytest

from benchmarks.data.random_records import write_data_set
from official.xlnet.api.convert import convert
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint
from official.xlnet.checkpoints.saving import save_pretrained
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data import first_windows
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.data.schema import Manifest
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.training.evaluation import _text_units, evaluate, text_metrics
from official.xlnet.training.run_health import UnigramBaseline, unigram_distribution
from tests.helpers.corpora import chinese_vocabulary, read_lane

VOCAB, FIRST_TOKEN, REUSE = 211, 9, 11


def tokens(data, split, stop=None):
    """Tokens of the records, but for special ones."""
    for path in sorted(pathlib.Path(data).glob(f"{split}-*.tfrecord")):
        for window in read_lane(path):
            yield from (i for i in window["token_ids"][stop and 1 : stop] if i >= FIRST_TOKEN)


def test_words_and_characters_are_those_of_the_text(world, tmp_path):
    model = XLNetPretrainer(XLNetConfig.load(world.config, ["objective.kind=causal"]))
    save_pretrained(model, str(tmp_path), f"{world.vocab}/spiece.model")
    metrics = evaluate(str(tmp_path), world.data)
    ids = [*tokens(world.data, "heldout", REUSE + 1)]
    pieces = map(Tokenizer(f"{world.vocab}/spiece.model").id_to_piece, ids)
    text = "".join(pieces).replace("▁", " ")
    nats, words = metrics["loss"] * len(ids), text.count(" ")
    assert [metrics[name] for name in ("targets", "words", "characters")] == [
        *(len(ids), words, len(text))
    ]
    assert metrics["word_perplexity"] == pytest.approx(math.exp(nats / words))
    assert metrics["bits_per_character"] == pytest.approx(nats / math.log(2) / len(text))


@pytest.mark.parametrize("words", [0, 1])
def test_text_without_spaces_has_no_perplexity_of_words(words):
    metrics = text_metrics(1000.0, words, 500)
    assert metrics == {
        **{"words": words, "characters": 500},
        "bits_per_character": pytest.approx(2 / math.log(2)),
    }


def test_words_without_spaces_are_pieces_that_begin_with_a_letter():
    tokenizer = Tokenizer(f"{chinese_vocabulary()}/spiece.model")
    words = _text_units(tokenizer)[0]
    for i in range(FIRST_TOKEN, tokenizer.vocab_size):
        piece = tokenizer.id_to_piece(i)
        is_word = piece[0] == "▁" or unicodedata.name(piece[0]).startswith("CJK UNIFIED")
        assert words[i] == is_word, piece
    assert sum(words) > 99


def test_the_unigram_baseline_has_smoothed_counts_and_needs_few_windows(world):
    counts, records = Counter(tokens(world.data, "train")), Records(world.data)
    total = sum(counts.values()) + VOCAB
    expected = [(counts[i] + 1) / total for i in range(VOCAB)]
    found = unigram_distribution(records.first_windows(10**6), VOCAB)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    entropy = -sum(p * math.log(p) for p in expected)
    assert UnigramBaseline(found, 0, 10).loss == pytest.approx(entropy)
    some = unigram_distribution(records.first_windows(2), VOCAB)
    assert some.sum() == pytest.approx(1) and np.abs(some - found).max() > 0


@pytest.mark.parametrize("bidirectional", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_first_windows_are_of_lanes_at_equal_distances(tmp_path, monkeypatch, bidirectional):
    """Of both directions, and of more lanes where these have too few windows."""
    monkeypatch.setattr(first_windows, "_FIRST_ROWS", 4)
    num_lanes = 14 if bidirectional else 17
    write_data_set(str(tmp_path), 13, 5, num_lanes, 3, bidirectional)
    records = Records(str(tmp_path))
    for number, lanes, windows in (
        (3, [0, 1, 6 + 2 * (not bidirectional), 7 + 2 * (not bidirectional)], 1),
        (8, [0, 1, 6 + 2 * (not bidirectional), 7 + 2 * (not bidirectional)], 2),
        (99, range(num_lanes), 3),
    ):
        batches = [batch["window_id"].numpy() for batch in records.first_windows(number)]
        ids = [3 * lane + window for lane in lanes for window in range(windows)]
        assert sorted(np.concatenate(batches)) == ids and max(map(len, batches)) == 4
    reversed_B = np.concatenate([b["is_reversed"] for b in records.first_windows(4)])
    assert reversed_B.tolist() == [False, bidirectional] * 2


@pytest.mark.parametrize(
    ("warmup_steps", "last_step", "due"), [(0, 5000, 1000), (700, 5000, 1400), (10, 450, 450)]
)
@pytest.mark.parametrize(("better", "is_told"), [(0, True), (0.2, False)])
@pytest.mark.parametrize("resumes_every", [None, 30])
def test_a_run_is_told_once_when_it_should_have_left_the_baseline(
    warmup_steps, last_step, due, better, is_told, resumes_every
):
    loss = math.log(VOCAB) - better
    # A run that is resumed has the losses of its history; of the last steps alone, it would not be
    # as bad as the baseline.
    losses = {step: loss - 0.1 * (step > due - 30) for step in range(3, last_step + 1, 3)}
    told = {}
    for step in losses:  # Three steps an execution.
        if step == 3 or (resumes_every and step % resumes_every == 0):
            baseline = UnigramBaseline(np.full(VOCAB, 1 / VOCAB), warmup_steps, last_step)
            for earlier in range(3, step, 3):
                if not baseline.is_checked(step - 3):
                    baseline.add(losses[earlier])
        told[step] = baseline.not_beaten(step - 3, step, losses[step])
    told = {step: recent for step, recent in told.items() if recent is not None}
    assert told == ({-(-due // 3) * 3: pytest.approx(loss, abs=0.02)} if is_told else {})


@pytest.mark.slow
def test_a_folder_of_hf_reads_records_of_any_window(world, tmp_path):
    """It does not say what windows its model was trained on."""
    report = convert(world.pretrained, f"{tmp_path}/hf", "hf")
    assert report["left_over"] == []  # The state of training stays behind without a word.
    assert Manifest.load(world.data).seq_len != load_config(f"{tmp_path}/hf").data.seq_len
    found = evaluate(f"{tmp_path}/hf", world.data)
    expected = newest_checkpoint(world.pretrained).record["heldout_loss"]
    assert found["targets"] > 0
    assert found["loss"] == pytest.approx(expected, rel=0.1)  # Of other targets.
