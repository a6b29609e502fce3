"""Worker process of `benchmarks.serving`: runs the exported model or HF on token ids.

    python -m benchmarks.serving.worker ours VERSION_DIR
    python -m benchmarks.serving.worker hf HF_DIR

For each request {"batches": [[ids, …], …], "repeats": N}, a line of standard input, runs all
batches N times and writes {"seconds": [time of each batch], "logits": logits of the last repeat}.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np

from official.xlnet.runtime.cores import num_cores

Run = Callable[[list[list[int]]], list[list[float]]]
_SEGMENT_CLS, _SEGMENT_PAD = 2, 4


def ours(path: str) -> Run:
    """Loads the signature `token_ids` of an exported model in a session, as TF Serving does."""
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

    def run(rows):
        length = max(map(len, rows))
        token_ids = np.zeros([len(rows), length], np.int32)
        segment_ids = np.full([len(rows), length], _SEGMENT_PAD, np.int32)
        for row, ids in enumerate(rows):
            token_ids[row, length - len(ids) :] = ids
            segment_ids[row, length - len(ids) :] = 0
            segment_ids[row, -1] = _SEGMENT_CLS
        return call(token_ids, segment_ids)[0].tolist()

    return run


def hf(path: str) -> Run:
    """Loads HF's sequence classifier in PyTorch, in eager mode with all threads."""
    import torch
    import transformers

    torch.set_num_threads(num_cores())
    model = transformers.XLNetForSequenceClassification.from_pretrained(path).eval()

    def run(rows):
        length = max(map(len, rows))
        token_ids = torch.zeros([len(rows), length], dtype=torch.long)
        segments = torch.full([len(rows), length], _SEGMENT_PAD, dtype=torch.long)
        for row, ids in enumerate(rows):
            token_ids[row, length - len(ids) :] = torch.tensor(ids)
            segments[row, length - len(ids) :] = 0
            segments[row, -1] = _SEGMENT_CLS
        inputs = {"input_ids": token_ids, "token_type_ids": segments, "use_mems": False}
        if any(len(ids) < length for ids in rows):
            inputs["attention_mask"] = (segments != _SEGMENT_PAD).float()
        with torch.inference_mode():
            return model(**inputs).logits.tolist()

    return run


def main() -> None:
    kind, path = sys.argv[1:]
    run = {"ours": ours, "hf": hf}[kind](path)
    for line in sys.stdin:
        request = json.loads(line)
        seconds: list[float] = []
        logits: list[list[float]] = []
        for _ in range(request["repeats"]):
            logits = []
            for batch in request["batches"]:
                start = time.perf_counter()
                logits += run(batch)
                seconds.append(time.perf_counter() - start)
        print(json.dumps({"seconds": seconds, "logits": logits}), flush=True)


if __name__ == "__main__":
    main()
