"""What verbs should have found, computed in another way than they do."""

import json
import pathlib

import numpy as np
import sentencepiece
import tensorflow as tf

from official.xlnet.data.schema import Manifest
from official.xlnet.tokenization.special_tokens import CLS_ID, EOD_ID, SEP_ID
from tests.helpers.oracles.tokenizer_oracle import release_encode
from tests.property.journeys.promises import promise


def json_lines(path) -> list[dict]:
    return [json.loads(line) for line in pathlib.Path(path).read_text("utf-8").splitlines()]


def encode(vocab, text: str, config) -> list[int]:
    """Token ids of a text, by the rules of the release."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(vocab))
    return release_encode(processor, text, config.data.lowercase, config.data.keep_accents)


def records_hold_the_text(documents, vocab, config, records, counts: dict) -> None:
    """Checks that the windows of a data set decode to the documents, less what was counted."""
    manifest, data = Manifest.load(str(records)), config.data
    processor = sentencepiece.SentencePieceProcessor(model_file=str(vocab))
    wanted = {}
    for document in documents:
        tokens = [
            token
            for line in document
            for token in release_encode(processor, line, data.lowercase, data.keep_accents)
        ]
        if tokens:
            wanted.setdefault(bytes(str([*tokens, EOD_ID]), "ascii"), []).append(tokens)
    total = sum(len(t) + 1 for group in wanted.values() for t in group)
    # A document that is divided between the splits has an <eod> in each.
    most = total + sum(map(len, wanted.values()))
    promise(total <= counts["tokens"] <= most, "prepare counts the tokens", (counts, total))
    seen = dropped = 0
    for name, split in manifest.splits.items():
        dropped += split.dropped_tokens
        lanes = [_windows(records / file, manifest.compression) for file in split.files]
        forward = lanes[:: 2 if data.bidirectional else 1]
        stream = [t for lane in forward for w in lane for t in w[: data.reuse_len]]
        seen += len(stream)
        for lane in lanes:
            for window in lane:
                shape = len(window), window.count(SEP_ID), window[-2:]
                promise(
                    shape == (data.seq_len, 2, [SEP_ID, CLS_ID]), "windows have their marks", shape
                )
        *whole, cut = _split_at(stream, EOD_ID)
        for document in whole:
            key = bytes(str([*document, EOD_ID]), "ascii")
            # Where the split begins or ends inside a document only a part of it is there.
            if wanted.get(key):
                wanted[key].pop()
            else:
                promise(_is_part(document, wanted), f"{name} records decode to the text", document)
        promise(not cut or _is_part(cut, wanted), f"{name} records end in the text", cut)
    there = seen, dropped, counts["tokens"]
    promise(seen + dropped == counts["tokens"], "tokens are in records or counted", there)


def _windows(path, compression) -> list[list[int]]:
    return [
        list(tf.train.Example.FromString(r).features.feature["token_ids"].int64_list.value)
        for r in tf.data.TFRecordDataset(str(path), compression).as_numpy_iterator()
    ]


def _split_at(stream: list[int], mark: int) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    for token in stream:
        if token == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _is_part(tokens: list[int], wanted: dict) -> bool:
    shown = str(tokens)[1:-1]
    return any(shown in str(document) for group in wanted.values() for document in group)


def mean_loss(outputs: dict) -> tuple[float, int]:
    """Mean cross entropy in nats of what `predict` returned, and the number of targets."""
    logits = outputs["logits"].astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    nats = -np.take_along_axis(log_p, outputs["labels"][..., None], -1)[..., 0]
    mask = outputs["target_mask"]
    return float((nats * mask).sum() / max(mask.sum(), 1)), int(mask.sum())


def metrics_of(kind: str, labels: tuple, true: list, predictions: list[dict]) -> dict:
    """Metrics of predictions as they were written, by scikit-learn, scipy, seqeval or SQuAD."""
    if kind == "classification":
        from sklearn import metrics

        said = [p["label"] for p in predictions]
        true = [str(y) for y in true]
        return {
            "accuracy": metrics.accuracy_score(true, said),
            "matthews": metrics.matthews_corrcoef(true, said),
            "macro_f1": metrics.f1_score(
                true, said, labels=labels, average="macro", zero_division=0
            ),
        }
    if kind == "multi_label":
        from sklearn import metrics

        said = [[name in p["labels"] for name in labels] for p in predictions]
        rows = [[name in y for name in labels] for y in true]
        return {
            "micro_f1": metrics.f1_score(rows, said, average="micro", zero_division=0),
            "exact_match": metrics.accuracy_score(rows, said),
        }
    if kind == "regression":
        said = np.array([p["score"] for p in predictions])
        found = {"mean_squared_error": np.mean((said - np.array(true)) ** 2)}
        if np.ptp(said) > 1e-6 * np.abs(said).max():
            found["pearson"] = np.corrcoef(said, true)[0, 1]
        return found
    if kind == "token_classification":
        from seqeval import metrics

        said = [p["tags"] for p in predictions]
        true = [list(tags) for tags in true]
        return {"f1": metrics.f1_score(true, said, zero_division=0)}
    if kind == "question_answering":
        return _squad(true, [p["answer"] for p in predictions])
    if kind == "multiple_choice":
        return {
            "accuracy": np.mean([p["choice"] == y for p, y in zip(predictions, true, strict=True)])
        }
    return {"pair_accuracy": _pairs_in_order(true, [p["score"] for p in predictions])}


def _pairs_in_order(true: list[tuple[str, float]], scores: list[float]) -> float:
    """Share of the pairs of documents of a query that are ranked by their (query, grade)."""
    rows = list(zip(true, scores, strict=True))
    pairs = [(x > y) for (q, a), x in rows for (r, b), y in rows if q == r and a > b]
    return float(np.mean(pairs))


def _squad(true: list[str], said: list[str]) -> dict:
    """SQuAD's exact match and F1, in percent, by its published definition."""
    import collections
    import re
    import string

    def words(text):
        text = "".join(c for c in text.lower() if c not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    exact, f1 = [], []
    for answer, got in zip(true, said, strict=True):
        a, b = words(answer), words(got)
        exact.append(a == b)
        common = sum((collections.Counter(a) & collections.Counter(b)).values())
        if not a or not b:
            f1.append(float(a == b))
        else:
            f1.append(2 * common / (len(a) + len(b)))
    return {"exact_match": 100 * np.mean(exact), "f1": 100 * np.mean(f1)}
