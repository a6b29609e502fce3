"""Contestants of `benchmarks.serving`: the exported model and HF, from token ids to logits."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.worker import Work
from official.xlnet.runtime.cores import num_cores

_SEGMENT_CLS, _SEGMENT_PAD = 2, 4


def build(kind: str, path: str) -> Work:
    """Loads a model; a run takes the token ids of each row, and returns their logits.

    Args:
      kind: `ours` or `hf`.
      path: directory of a version of an exported model, or of HF's model.
    """
    return Work({"ours": _ours, "hf": _hf}[kind](path))


def _ours(path: str):
    """The signature `token_ids` of an exported model in a session, as TF Serving runs it."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  Registers the operations.

    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph)
    with graph.as_default():
        meta = tf.compat.v1.saved_model.load(session, ["serve"], path)
    signature = meta.signature_def["token_ids"]
    call = session.make_callable(
        [signature.outputs["logits"].name],
        [signature.inputs[name].name for name in ("token_ids", "segment_ids")],
    )
    return lambda rows: call(*_padded(rows))[0].tolist()


def _hf(path: str):
    """HF's sequence classifier in PyTorch, in eager mode with all threads."""
    import torch
    import transformers

    torch.set_num_threads(num_cores())
    model = transformers.XLNetForSequenceClassification.from_pretrained(path).eval()

    def run(rows):
        token_ids, segments = (torch.from_numpy(array).long() for array in _padded(rows))
        inputs = {"input_ids": token_ids, "token_type_ids": segments, "use_mems": False}
        if (segments == _SEGMENT_PAD).any():
            inputs["attention_mask"] = (segments != _SEGMENT_PAD).float()
        with torch.inference_mode():
            return model(**inputs).logits.tolist()

    return run


def _padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and segment ids of rows, padded on the left, int32 [B, T]."""
    length = max(map(len, rows))
    token_ids = np.zeros([len(rows), length], np.int32)
    segment_ids = np.full([len(rows), length], _SEGMENT_PAD, np.int32)
    for row, ids in enumerate(rows):
        token_ids[row, length - len(ids) :] = ids
        segment_ids[row, length - len(ids) :] = 0
    segment_ids[:, -1] = _SEGMENT_CLS
    return token_ids, segment_ids
