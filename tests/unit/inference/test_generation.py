"""Generation: the cache changes nothing, blanks see both sides, draws follow their distribution."""

import concurrent.futures
import functools
import os
import signal
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError, DataError, StoppedError
from official.xlnet.inference.decoding import target_rows
from official.xlnet.inference.decoding.sampling import Sampling, choose
from official.xlnet.inference.decoding.target_rows import OneByOne
from official.xlnet.inference.generation import TextWriter, fill_blanks, generate
from official.xlnet.inference.scoring import score
from official.xlnet.tokenization.blanks import parse_blanks
from official.xlnet.tokenization.special_tokens import EOD_ID
from tests.helpers.small_language_model import NumberTokenizer, random_model

NUMBERS, GREEDY = NumberTokenizer(31), Sampling(temperature=0)


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture(scope="module")
def text_model(tokenizer):
    return random_model(vocab_size=tokenizer.vocab_size, num_layers=1)


def uncached(model, ids, targets):
    """Logits [targets, V] by the whole encoder, every token placed in one factorization order."""
    order = np.zeros([1, len(ids)], np.int32)
    order[0, targets] = np.arange(1, len(targets) + 1)
    outputs = model(
        {
            "token_ids": tf.constant([ids], tf.int32),
            "order": tf.constant(order),
            "target_positions": tf.constant([targets], tf.int32),
        }
    )
    return outputs["logits"][0].numpy()


def causal(model, ids):
    """Logits [V] of the token after these."""
    inputs = {"order": tf.range(len(ids))[None], "content_positions": [[len(ids) - 1]]}
    return model({"token_ids": tf.constant([ids]), **inputs})["logits"][0, 0].numpy()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kind": "causal"},
        pytest.param(
            {"kind": "causal", "mem_len": 0, "attention_type": "uni"}, marks=pytest.mark.slow
        ),
    ],
    ids=str,
)
def test_greedy_continuation_is_that_of_a_loop_over_the_whole_encoder(settings):
    model, is_causal = random_model(**settings), "kind" in settings
    prompts = ["9 20 11", "30 29 28 27 26 10 12", "" if is_causal else "13"]
    results = generate(model, prompts, 5, GREEDY, tokenizer=NUMBERS)
    assert sum(map(len, map(NUMBERS.encode, results))) > 10 or not is_causal  # Not all end at once.
    for prompt, result in zip(prompts, results, strict=True):
        known = NUMBERS.encode(prompt)
        ids = [*known]
        while len(ids) < len(known) + 5 and (not ids or ids[-1] != EOD_ID):
            targets = [*range(len(known), len(ids) + 1)]
            logits = (
                causal(model, [EOD_ID, *ids])
                if is_causal
                else uncached(model, [*ids, 0], targets)[-1]
            )
            logits[:7] = -np.inf
            ids.append(int(logits.argmax()))
        assert NUMBERS.encode(result) == [i for i in ids if i != EOD_ID]


def test_seeds_and_neighbours(text_model, tokenizer):
    """In two batches."""
    prompts = ["The first", "The second, which is longer"] * 5
    options = {"tokenizer": tokenizer}
    first = generate(text_model, prompts, 7, Sampling(seed=3), tokenizer=tokenizer)
    assert generate(text_model, prompts, 7, Sampling(seed=3), tokenizer=tokenizer) == first
    assert generate(text_model, prompts[:2], 7, Sampling(seed=3), tokenizer=tokenizer) == first[:2]
    assert generate(text_model, prompts, 7, Sampling(seed=4), tokenizer=tokenizer) != first
    blanks = fill_blanks(text_model, 3 * ["The ____{9} sat"], seed=3, temperature=1, **options)
    assert len({*blanks}) == 3
    mixed = ["a", "b", "The ____{9} sat"]
    assert generate(text_model, mixed, 1, seed=3, **options)[2] == blanks[2]
    assert first[0] != first[2]
    assert all(text.startswith(prompt) for prompt, text in zip(prompts, first, strict=True))


@pytest.mark.parametrize(
    "temperature, top_k, top_p",
    [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 4, 1.0), (1.0, 0, 0.6), (1.5, 5, 0.7), (1.0, 1, 1.0)],
)
def test_draws_follow_the_restricted_distribution(temperature, top_k, top_p):
    num_draws = 4001
    logits = np.random.default_rng(2).normal(0, 1.5, 13).astype(np.float32)
    logits[[3, 7]] = -np.inf
    p = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
    by_rank = np.argsort(-p)
    keep = np.cumsum(p[by_rank]) - p[by_rank] < top_p
    if top_k:
        keep[top_k:] = False
    p[by_rank[~keep]] = 0
    uniform = (np.arange(num_draws) / num_draws).astype(np.float32)
    tokens = choose(
        tf.constant(np.tile(logits, [num_draws, 1])),
        tf.constant(uniform),
        tf.constant(temperature),
        tf.constant(top_k),
        tf.constant(top_p),
    )
    found = np.bincount(tokens.numpy(), minlength=13) / num_draws
    np.testing.assert_allclose(found, p / p.sum(), atol=2 / num_draws)


def test_draw_at_the_end_of_the_distribution_is_a_token_that_was_kept():
    logits = tf.constant([[0.0, 3.0, -np.inf, 1.0]])
    largest = tf.constant([np.nextafter(1.0, 0.0, dtype=np.float32)])
    one = tf.constant(1.0)
    assert choose(logits, largest, one, tf.constant(0), one).numpy() == [0]
    assert choose(logits, largest, one, tf.constant(2), one).numpy() == [3]


@pytest.mark.parametrize(("temperature", "top_p"), [(1e-40, 1.0), (1.0, 1e-46), (1e-46, 1e-46)])
def test_restrictions_too_small_for_float32_leave_the_most_probable_token(temperature, top_p):
    logits = tf.constant([[-np.inf, 1.0, 1.25, -3.0], [500.0, -np.inf, 7.0, 8.0]])
    settings = map(tf.constant, (temperature, 0, top_p))
    assert choose(logits, tf.constant([0.9, 0.0]), *settings).numpy().tolist() == [2, 0]


def fill(model, tokenizer, text, lengths):
    """Ids in every blank, filled greedily, and their log-likelihoods, for rows of lengths."""
    writer = TextWriter(model, tokenizer, GREEDY, OneByOne())
    return writer._fillings(parse_blanks(tokenizer, text), lengths, place=0)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"untie_r": False, "clamp_len": 5}, marks=pytest.mark.slow),
        pytest.param({"attention_type": "uni", "mem_len": 0}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_blanks_are_filled_as_by_the_whole_encoder_given_everything_around_them(
    settings, tokenizer
):
    """Rows of different lengths; a blank before anything else."""
    model = random_model(vocab_size=tokenizer.vocab_size, **settings)
    text, lengths = "____ is evaluated first, then ____, and that is all.", [[2, 1], [1, 4], [3, 3]]
    _, middle, after = parse_blanks(tokenizer, text).ids
    for (one, two), (fillings, scores) in zip(
        lengths, fill(model, tokenizer, text, lengths), strict=True
    ):
        ids = [*fillings[0], *middle, *fillings[1], *after]
        second = one + len(middle)
        log_p = tf.nn.log_softmax(uncached(model, ids, [*range(one), *range(second, second + two)]))
        filled = np.concatenate(fillings)
        wanted = np.take_along_axis(log_p.numpy(), filled[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(np.concatenate(scores), wanted, atol=1e-5)
        groups = [1, *[3] * (one - 1), 1, *[3] * (two - 1)]
        allowed = target_rows.allowed_pieces(tokenizer, tokenizer.vocab_size)[groups]
        np.testing.assert_array_equal(filled, np.where(allowed, log_p, -np.inf).argmax(axis=1))


def test_text_around_blanks_stays_as_it_is(text_model, tokenizer):
    text = "  Näïve:\t____ sat, un____ly ____{3}  …\n"
    filled = fill_blanks(text_model, text, tokenizer=tokenizer)
    first, rest = filled.removeprefix("  Näïve:\t").split(" sat, un", 1)
    assert first.strip() == first and first
    inside, last = rest.split("ly ", 1)
    assert inside and not inside.startswith(" ")
    assert last.endswith("  …\n")


def test_length_of_a_blank_is_the_one_with_the_best_pieces(text_model, tokenizer):
    text = "The ____ sat"
    results = [fill(text_model, tokenizer, text, [[length]])[0] for length in (1, 2, 3)]
    best = max(results, key=lambda result: np.mean(result[1][0]))
    wanted = f"The {tokenizer.decode(best[0][0])} sat"
    assert fill_blanks(text_model, text, max_length=3, tokenizer=tokenizer) == wanted


@pytest.mark.parametrize(
    "text, around, begins_word",
    [
        ("____", [[], []], [True]),
        ("The ____ sat", [["▁The"], ["▁sat"]], [True]),
        ("(____)", [["▁", "("], [")"]], [False]),
        ("The ______, which", [["▁The"], [",", "▁which"]], [True]),
    ],
)
def test_pieces_around_a_blank_are_those_of_the_whole_text(tokenizer, text, around, begins_word):
    parsed = parse_blanks(tokenizer, text)
    pieces = ["".join(tokenizer.id_to_piece(i) for i in ids) for ids in parsed.ids]
    assert pieces == ["".join(part) for part in around]
    assert [blank.begins_word for blank in parsed.blanks] == begins_word


def test_empty_prompt_is_continued_from_nothing(model):
    """By the distribution that scoring gives to the first token of a text."""
    scores = score(model, [str(i) for i in range(9, 31)], tokenizer=NUMBERS)
    best = 9 + int(np.argmax([result.total for result in scores]))
    texts = generate(model, ["11 12", "", "9"], 1, GREEDY, tokenizer=NUMBERS)
    assert texts[1].strip() == str(best)  # Not the end of the document.
    alone = [generate(model, [text], 1, GREEDY, tokenizer=NUMBERS)[0] for text in ("11 12", "9")]
    assert [texts[0], texts[2]] == alone


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (generate, ("The", 0), "num_tokens: expected at least 1, got 0"),
        (fill_blanks, ("The __ sat",), "expected a blank, written ____"),
        (fill_blanks, ("The ____{0} sat",), "expected at least 1 piece, got ____{0}"),
        (fill_blanks, ("The ____{35} for",), "at most 36 pieces, got 2 of text and 35 of"),
        (fill_blanks, ("The ____", 0), "max_length: expected at least 1, got 0"),
        (functools.partial(generate, temperature=1e300), ("The",), r"at most 3.4e\+38 .*1e\+300"),
    ],
)
def test_wrong_input_is_named(text_model, tokenizer, function, arguments, message):
    with pytest.raises((ConfigError, DataError), match=message):
        function(text_model, *arguments, tokenizer=tokenizer)


class HanTokenizer(NumberTokenizer):
    """A vocabulary of Chinese characters, none of them after a space."""

    def encode(self, text):
        return [ord(character) - 0x4E00 for character in text]

    def decode(self, ids):
        return "".join(map(self.id_to_piece, ids))

    def id_to_piece(self, i):
        return chr(0x4E00 + i)

    def piece_to_id(self, piece):
        return ord(piece) - 0x4E00


def test_words_of_scripts_without_spaces_begin_without_one(model):
    tokenizer = HanTokenizer(model.config.model.vocab_size)
    text = tokenizer.decode([11, 12, 13])
    filled = fill_blanks(model, f"____{{2}}{text}____", tokenizer=tokenizer)
    assert filled[2:5] == text and len(filled) == 6
    assert all(0x4E00 + 9 <= ord(character) < 0x4E00 + 31 for character in filled)


def test_texts_with_blanks_are_filled_and_others_continued(text_model, tokenizer):
    """With the settings of the sampling by their names, too."""
    texts, settings = (
        ["The ____ of the people.", "The people", "____ ____{2}"],
        {"top_k": 3, "seed": 5},
    )
    sampling = Sampling(**settings)
    found = generate(text_model, texts, 4, tokenizer=tokenizer, max_blank_length=2, **settings)
    filled = fill_blanks(text_model, [texts[0], "____", texts[2]], 2, sampling, tokenizer)[::2]
    assert found[::2] == filled and "____" not in "".join(filled)
    prompts = ["A", texts[1]]  # What is drawn depends on the place in the list.
    assert found[1] == generate(text_model, prompts, 4, sampling, tokenizer)[1] != texts[1]
    with pytest.raises(ConfigError, match="top_p"):
        generate(text_model, texts, tokenizer=tokenizer, top_p=2.0)


def test_a_stop_ends_the_loop_and_leaves_nothing_behind(interrupts, model, monkeypatch):
    expected = generate(model, "12 13", 50, tokenizer=NUMBERS, seed=3)
    submit = concurrent.futures.ThreadPoolExecutor.submit

    def interrupt_later(
        pool, *call
    ):  # TensorFlow's code that traces a graph breaks if interrupted.
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        return submit(pool, *call)

    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", interrupt_later)
    start = time.monotonic()
    with pytest.raises(StoppedError, match=r"^interrupted$") as error:
        generate(model, "12 13", 9_000, tokenizer=NUMBERS)
    assert time.monotonic() - start < 60
    assert error.value._render_traceback_() == ["KeyboardInterrupt: interrupted"]
    monkeypatch.undo()
    assert generate(model, "12 13", 50, tokenizer=NUMBERS, seed=3) == expected
