"""`xlnet inspect attention` and `runs`: the maps are the model's own, the page shows them."""

import base64
import html
import json
import pickle
import re

import matplotlib.image
import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.checkpoints.model_directory import create_model_dir
from official.xlnet.checkpoints.restoring import load_encoder
from official.xlnet.inference.score import Score
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.visibility import can_attend
from official.xlnet.projects.pictures.attention_maps import (
    AttentionMaps,
    TokenSteps,
    attention_maps,
)
from official.xlnet.projects.pictures.attention_page import as_html
from official.xlnet.projects.pictures.attention_patterns import PATTERNS, PRESENT, find_patterns
from official.xlnet.projects.pictures.masks import make_masks
from tests.helpers.compare import assert_refused
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.documents import rendered
from tests.helpers.tiny import randomize, tiny_config
from tests.helpers.world import command

TEXT = "The people of the world have been in this long before, and they would say so now."


@pytest.fixture(scope="module", params=["untied", "tied"])
def model_dir(request, tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("model"))
    config = tiny_config(
        vocab_size=211,
        untie_r=request.param == "untied",
        clamp_len=0 if request.param == "untied" else 5,
    )
    model = XLNetPretrainer(config)
    randomize(model.trainable_variables, seed=1)
    create_model_dir(directory, config, f"{vocabulary_dir()}/spiece.model")
    tf.train.CheckpointManager(tf.train.Checkpoint(model=model), directory, 1).save()
    return directory


@pytest.fixture(scope="module")
def maps(model_dir):
    return attention_maps(model_dir, TEXT, text_pair="So they say.")


@pytest.mark.quick
def test_maps_of_a_pair_give_what_the_layers_give(model_dir, maps):
    """Hidden states computed with the maps are those of the encoder."""
    encoder, tokenizer = load_encoder(model_dir), load_tokenizer(model_dir)
    first, second = (tokenizer.encode(text) for text in (TEXT, "So they say."))
    ids = np.array([[*first, 4, *second, 4, 3]], np.int32)
    segments = np.array([[0] * (len(first) + 1) + [1] * (len(second) + 1) + [2]], np.int32)
    assert maps.pieces == [tokenizer.id_to_piece(int(i)) for i in ids[0]]
    assert maps.weights.shape == (2, 2, ids.size, ids.size)
    hidden = encoder.word_embedding(ids)
    for block, weights in zip(encoder.blocks, maps.weights, strict=True):
        attention = block.attention
        value = np.einsum("btd,dnh->bnth", hidden, attention.value_kernel)
        attended = np.einsum("nij,bnjh,dnh->bid", weights, value, attention.output_kernel)
        hidden = block.attention_norm(hidden, tf.constant(attended, tf.float32))
        hidden = block.feed_forward_norm(hidden, block.feed_forward(hidden))
    content = encoder({"token_ids": ids, "segment_ids": segments})["content"]
    np.testing.assert_allclose(hidden, content, atol=1e-4)
    assert_refused("expected a text, got ' '", attention_maps, model_dir, TEXT, text_pair=" ")


def test_results_are_a_line_in_python_and_a_picture_in_a_notebook(model_dir, maps):
    """Also those of long texts, and of texts with what a picture would take for formulas."""
    encoder, tokenizer = load_encoder(model_dir), load_tokenizer(model_dir)
    again = attention_maps(encoder, TEXT, text_pair="So they say.", tokenizer=tokenizer)
    np.testing.assert_array_equal(again.weights, maps.weights)
    assert_refused(
        "tokenizer: expected the tokenizer of the encoder", attention_maps, encoder, TEXT
    )
    results = {
        f"AttentionMaps(pieces=[{len(maps.pieces)}], weights=float32": maps,
        "Masks(content=bool [3, 3], query=bool [1, 3])": make_masks([2, 0, 1], [0]),
        "Score('a $x$ b', 3 pieces, log-likelihood -3.50 nats)": Score(
            "a $x$ b", ["▁a", "▁$x$", "▁b"], np.array([-1.0, -2.0, -0.5])
        ),
        "Score('', 0 pieces, log-likelihood 0.00 nats)": Score("", [], np.zeros(0)),
        "Score('a a a ": Score("a " * 999, ["▁a"] * 999, np.full(999, -1.0)),
        "TokenSteps(pieces=[2], num_steps=int64 [2], most=3)": TokenSteps(
            ["▁a", "b"], np.array([1, 3]), 3
        ),
    }
    for line, result in results.items():
        assert repr(result).startswith(line) and len(repr(result)) < 200
        assert result._repr_png_().startswith(b"\x89PNG")
    assert repr(tokenizer) == "Tokenizer(211 pieces)"


def test_masks_are_those_of_the_model():
    rng = np.random.default_rng(0)
    for order in (rng.integers(0, 5, 7), rng.permutation(11).tolist(), np.zeros(3, np.uint8)):
        targets = rng.permutation(len(order))[:2]
        masks, of_all = make_masks(order, targets), make_masks(order)
        inputs = {"order": np.array([order], np.int32), "target_positions": targets[None]}
        of_model = TwoStreamAttentionMask()(inputs["order"], **inputs)
        for name in ("content", "query"):
            visible = can_attend(getattr(of_model, name), of_model.keys, causal=False)[0]
            np.testing.assert_array_equal(getattr(masks, name), visible)
        np.testing.assert_array_equal(masks.query, of_all.query[targets])
        np.testing.assert_array_equal(of_all.content, ~of_all.query.T)
    for wrong in ("ab", [[1, 2]], [], [0.5, 1.0]):
        assert_refused("order: expected a list of integers", make_masks, wrong)
    assert_refused(r"target_positions: expected from 0 to 1, got \[2\]", make_masks, [0, 1], [2])


def made_of(scores):
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)


def test_patterns_are_found_where_they_are():
    size = 41
    distance = np.arange(size)[:, None] - np.arange(size)
    noise = 0.1 * np.random.default_rng(0).standard_normal([size, size])
    part = np.arange(size) >= 17
    likes = 6.0 * (np.random.default_rng(1).random([size, size]) < 0.03)
    made = {
        "two segments": made_of(noise + 5.0 * (part[:, None] == part)),
        "symmetry": made_of(noise + np.maximum(likes, likes.T)),
        "stripes": made_of(noise + 5.0 * np.isin(np.arange(size), [3, 37])),
        "local": made_of(noise - np.abs(distance)),
        "self-exclusion": made_of(noise - 6.0 * (distance == 0)),
        "stride": made_of(noise + 2.0 * np.cos(2 * np.pi * distance / 5)),
        "one-sided": made_of(noise - 6.0 * (distance < 0)),
    }
    for name, weights in made.items():
        found = {other for other, strength in PATTERNS.items() if strength(weights) >= PRESENT}
        assert found == {name}
    plain = made_of(noise)
    assert max(strength(plain) for strength in PATTERNS.values()) < PRESENT
    layers = np.stack([[plain, made["stride"]], [made["stride"], made["local"]]])
    by_name = {found.pattern: found for found in find_patterns(layers)}
    assert (by_name["local"].layer, by_name["local"].head) == (1, 1)
    assert by_name["stride"].num_heads == 2 and by_name["stripes"].num_heads == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1, 2, 3, 23, 41, 67])
def test_patterns_are_not_found_where_they_are_not(size):
    rng = np.random.default_rng(size)
    distance = np.arange(size)[:, None] - np.arange(size)
    narrow = {"two segments", "self-exclusion", "symmetry"}
    for _ in range(7):
        noise = rng.normal(0, 2, [size, size])
        heads = [made_of(-50.0 * (distance != offset)) for offset in (0, 1)]
        heads.append(made_of(50.0 * (rng.integers(0, size, [size, 1]) == np.arange(size))))
        heads += [made_of(noise - 50.0 * (np.abs(distance) > radius)) for radius in (1, 2, 3)]
        for weights in (*heads, made_of(noise / 2)):
            strengths = {name: strength(weights) for name, strength in PATTERNS.items()}
            assert all(0 <= strength < 1 + 1e-9 for strength in strengths.values())
            if size >= 23:
                assert max(strengths[name] for name in narrow) < PRESENT
        assert size < 23 or max(strengths.values()) < PRESENT  # Of the last one, noise alone.


def test_page_is_self_contained_and_holds_the_maps(maps):
    page = as_html(maps, [1], [0, 1])
    assert page.count("<span") == len(maps.pieces) and not re.search(r"<[^>]* (src|href)=", page)
    data = json.loads(re.search(r"const data = (\{.*?\});", page)[1])
    size = len(maps.pieces)
    levels = np.frombuffer(base64.b64decode(data["levels"]), np.uint8).reshape(1, 2, size, size)
    np.testing.assert_allclose((levels / 255.0) ** 2, maps.weights[[1]], atol=0.005)
    assert "$" not in page.replace("${", "")


@pytest.mark.slow
def test_page_works_in_a_browser(maps, tmp_path):
    page = rendered(as_html(maps, [0, 1], [0, 1]), tmp_path / "page.html")
    elements = re.sub(r"(?s)<(style|script)\b.*?</\1>", "", page)  # They name the same things.
    assert elements.count('id="head-') == 4 and elements.count('aria-pressed="true"') == 1
    assert elements.count("rgba(41, 97, 159") == len(maps.pieces)
    labels = [html.unescape(label) for label in re.findall(r"<i>(.*?)</i>", elements)]
    names = [piece.replace("▁", " ").strip() or "␣" for piece in maps.pieces]
    assert labels == [*names, *names]  # Of the rows and of the columns.


def test_command_writes_pages_and_pictures_or_says_what_is_wrong(model_dir, tmp_path, capsys):
    output = str(tmp_path / "maps.html")
    flags = {"model": model_dir, "text": TEXT}
    found = command("inspect attention", "--layers=1", "--heads=0", output=output, **flags)
    assert found["output"] == output and set(found["patterns"]) == set(PATTERNS)
    more = {"output": f"{output[:-4]}png", "text_pair": "So they say.", "max_tokens": 11}
    maps = attention_maps(model_dir, TEXT, max_tokens=11, text_pair="So they say.")
    found = command("inspect attention", **more, **flags)
    assert found["tokens"] == len(maps.pieces) == 11 + 3  # SEP, SEP and CLS.
    assert matplotlib.image.imread(f"{output[:-4]}png").shape[0] > 300
    for wrong, message in (
        ({"output": "x.gif"}, "expected a file ending in .html, .png"),
        ({"output": output, "layers": "2"}, "--layers: expected integers from 0 to 1"),
    ):
        command("inspect attention", status=2, **flags, **wrong)
        assert message in capsys.readouterr().err


def test_maps_and_masks_are_equal_if_their_arrays_are():
    masks = make_masks([0, 2, 1])
    assert masks == make_masks([0, 2, 1]) and masks != make_masks([0, 1, 2])
    assert masks != make_masks([0, 1]) and masks not in (None, 3)
    maps = [AttentionMaps([piece], np.full([1, 1, 1, 1], x)) for piece in "ab" for x in (0.0, 1.0)]
    again = pickle.loads(pickle.dumps(maps))
    assert [[x == y for y in again] for x in maps] == np.eye(4, dtype=bool).tolist()
