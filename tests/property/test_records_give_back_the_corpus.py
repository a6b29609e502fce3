"""Records against the corpus, by a reader that knows only the schema of official.xlnet.data.schema.

The oracle is the token stream itself: every document's lines through the tokenizer, then EOD.
"""

import random

import numpy as np
import pytest

from data_prep.corpus import corpus
from official.xlnet.data.schema import Manifest
from official.xlnet.tokenization.special_tokens import CLS_ID, EOD_ID, SEP_ID
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.corpora import (
    WORDS,
    as_text,
    contents,
    data_config,
    documents_in,
    prepare,
    random_documents,
    read_lane,
    vocabulary_dir,
)

CASES = {
    "bidirectional": {},
    "forward only": dict(bidirectional=False, num_lanes=3),
    "short reuse": dict(seq_len=23, reuse_len=2, num_lanes=2),
    "long reuse": dict(seq_len=23, reuse_len=18, num_lanes=4),
    "held out": dict(heldout_fraction=0.2),
    "lower case": dict(lowercase=True, keep_accents=True, seed=5),
}


def read_split(directory, split):
    return [read_lane(directory / name) for name in split.files]


def reuse_parts(lane, reuse_len):
    return [token for window in lane for token in window["token_ids"][:reuse_len]]


def spans(window, reuse_len):
    """A and B of a window, after checking its shape."""
    tokens, a_length, b_length = (window[k] for k in ("token_ids", "a_length", "b_length"))
    assert a_length >= 1 and b_length >= 1
    a_end = reuse_len + a_length
    assert tokens[a_end] == SEP_ID
    assert tokens[a_end + 1 + b_length :] == [SEP_ID, CLS_ID]
    for special in (SEP_ID, CLS_ID):
        assert tokens.count(special) == (2 if special == SEP_ID else 1)
    return tokens[reuse_len:a_end], tokens[a_end + 1 : a_end + 1 + b_length]


@pytest.fixture(scope="module", params=CASES, ids=str)
def prepared(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    rng = random.Random(request.param)
    documents = random_documents(rng, 60)
    (directory / "b.txt").write_text(as_text(documents[:37]), encoding="utf-8")
    (directory / "c.txt").write_text(as_text(documents[37:]), encoding="utf-8")
    data = data_config(**CASES[request.param]).data
    figures = prepare(directory / "*.txt", directory / "out", **CASES[request.param])
    tokenizer = Tokenizer(f"{vocabulary_dir()}/spiece.model", data.lowercase, data.keep_accents)
    tokens = [
        [i for line in document for i in tokenizer.encode(line)] + [EOD_ID]
        for document in documents
    ]
    manifest = Manifest.load(str(directory / "out"))
    lanes = {name: read_split(directory / "out", split) for name, split in manifest.splits.items()}
    documents = {name: documents_in(directory / "out", name) for name in manifest.splits}
    return data, figures, manifest, lanes, tokens, documents


def test_reuse_parts_tile_the_corpus_or_are_counted_as_dropped(prepared):
    data, figures, manifest, _, documents, streams = prepared
    assert [*streams] == ["train", "heldout"][: 2 if data.heldout_fraction else 1]
    for name, split in manifest.splits.items():
        assert sum(map(len, streams[name])) + split.dropped_tokens == split.tokens
        assert split.dropped_tokens < split.num_lanes / (1 + data.bidirectional) * data.reuse_len
    assert figures["documents"] == len(documents)
    assert figures["tokens"] == sum(map(len, documents))
    # Each stream holds documents in their order; every document is in one of them, or cut or
    # missing at its end.
    left = list(documents)
    for stream in streams.values():
        *whole, cut = stream
        places = [documents.index(document) for document in whole]
        assert places == sorted(places)
        for document in whole:
            left.remove(document)
        assert not cut or any(document[: len(cut)] == cut for document in left)
    num_cut = sum(len(stream[-1]) for stream in streams.values())
    assert sum(map(len, left)) == num_cut + figures["dropped_tokens"]


def test_reversed_lanes_mirror_forward_ones(prepared):
    data, _, _, lanes, *_ = prepared
    for split in lanes.values():
        assert len({len(lane) for lane in split}) == 1
        for index, lane in enumerate(split):
            is_reversed = data.bidirectional and index % 2 == 1
            assert {window["is_reversed"] for window in lane} == {int(is_reversed)}
            assert [w["window_id"] for w in lane] == list(
                range(index * len(lane), (index + 1) * len(lane))
            )
            if is_reversed:
                mirrored = reuse_parts(split[index - 1], data.reuse_len)[::-1]
                assert reuse_parts(lane, data.reuse_len) == mirrored


def test_a_follows_the_reuse_part_and_b_follows_a_when_it_says_so(prepared):
    data, _, _, lanes, *_ = prepared
    labels = []
    for split in lanes.values():
        for lane in split:
            text = reuse_parts(lane, data.reuse_len)
            for i, window in enumerate(lane):
                a, b = spans(window, data.reuse_len)
                assert len(window["token_ids"]) == data.seq_len
                assert len(a) + len(b) == data.seq_len - data.reuse_len - 3
                following = text[(i + 1) * data.reuse_len :]
                known = min(len(a), len(following))
                assert a[:known] == following[:known]
                if window["is_next"]:
                    assert (a + b)[: len(following)] == following[: len(a + b)]
                labels.append(window["is_next"])
    # Half of the labels are 1: within four standard deviations.
    assert abs(np.mean(labels) - 0.5) < 4 * 0.5 / np.sqrt(len(labels))


def test_context_is_the_tokens_of_the_document_that_the_lane_has_shown(prepared):
    data, _, _, lanes, *_ = prepared
    for split in lanes.values():
        for lane in split:
            text = reuse_parts(lane, data.reuse_len)
            for i, window in enumerate(lane):
                start, context = i * data.reuse_len, 0
                # EOD belongs to the document that it ends: in reversed text it comes first.
                while start - context > 0:
                    nearer = text[start - context] if window["is_reversed"] else None
                    before = text[start - context - 1]
                    if (nearer if window["is_reversed"] else before) == EOD_ID:
                        break
                    context += 1
                assert window["context_length"] == context


@pytest.mark.parametrize("seed", range(8))
def test_held_out_text_is_a_share_of_tokens_whatever_the_sizes_of_documents(
    tmp_path, monkeypatch, caplog, seed
):
    rng, path = random.Random(seed), tmp_path / "text.txt"
    fraction, tail = rng.choice([0.02, 0.05, 0.1, 0.3, 0.7]), rng.choice([0.4, 0.8, 1.3])
    sizes = [
        min(1500, int(20 * rng.paretovariate(tail))) for _ in range(rng.choice([1, 3, 10, 50]))
    ]
    ends = rng.choice([[""], ["", "", ".", "?"]])
    texts = [" ".join(rng.choice(WORDS) + rng.choice(ends) for _ in range(n)) for n in sizes]
    texts += rng.choices(texts, k=rng.choice([0, 3]))
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    options = dict(heldout_fraction=fraction, num_lanes=2, seed=seed)
    options["drop_duplicates"] = rng.random() < 0.5
    figures = prepare(path, tmp_path / "out", **options)
    splits = Manifest.load(str(tmp_path / "out")).splits
    total = sum(split.tokens for split in splits.values())
    if "heldout" in splits:
        deviation = 0.5 * min(fraction, 1 - fraction) * total
        assert 26 <= splits["heldout"].tokens <= max(fraction * total + deviation, 2 * 26)
        assert splits["heldout"].tokens >= fraction * (total - 2) - deviation
    else:
        assert fraction * total < 26 or len(set(texts)) < len(texts)
    assert ("no held-out split: data.heldout_fraction=" in caplog.text) != ("heldout" in splits)
    # Every token is in one split; a divided document has an EOD in each.
    tokenizer = Tokenizer(f"{vocabulary_dir()}/spiece.model")
    kept = dict.fromkeys(texts) if options["drop_duplicates"] else texts
    whole = [[*tokenizer.encode(text), EOD_ID] for text in kept]
    assert total == sum(map(len, whole)) + figures["divided_documents"]
    assert figures["documents"] == len(whole) + figures["divided_documents"]
    streams = {name: documents_in(tmp_path / "out", name) for name in splits}
    *complete, cut = streams["train"]
    for end in streams.get("heldout", [])[:-1]:
        # It is the end of a document; what is before it is in the other split, but at its end.
        beginnings = [document[: -len(end)] for document in whole if document[-len(end) :] == end]
        assert any(
            not beginning or [*beginning, EOD_ID] in complete or beginning[: len(cut)] == cut
            for beginning in beginnings
        )
    before = contents(tmp_path / "out", "*.tfrecord")
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: 1999)
    prepare(path, tmp_path / "shards", **options)
    assert contents(tmp_path / "shards", "*.tfrecord") == before
