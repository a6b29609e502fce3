"""Classes of many texts by a model of XLNet's base size: `Predictor` beside a loop of transformers.

    python -m benchmarks.inference.classify --texts=10000 --table=docs/performance.md

All classify the same texts, 3 to 80 words of Python's manual each, with random weights and the same
vocabulary, from text to class. The loop encodes all texts with SentencePiece, sorts them by length,
pads each batch to its longest text, and so is faster than `transformers.pipeline`, which does not
sort. The contestants take turns, each in a process of its own. A first turn, which traces and
compiles, is not timed. The last line is JSON: texts per second.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from pydoc_data.topics import topics
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.contest import Contestant, compete
from benchmarks.harness.models import write_model
from benchmarks.harness.tables import fill_table, markdown_table
from benchmarks.harness.worker import Work
from official import xlnet
from official.xlnet.runtime.cores import num_cores
from official.xlnet.tokenization.special_tokens import CLS_ID, PAD_ID, SEP_ID

_BATCH = 32
_MAX_LENGTH = 128
_MOST_WORDS = 80
# {name: (title, options of `build`)}
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ours": ("`Predictor`", {"kind": "ours"}),
    "ours_bfloat16": ("`Predictor`, bfloat16 products", {"kind": "ours", "bfloat16": True}),
    "hf": ("transformers", {"kind": "hf"}),
    "hf_bfloat16": ("transformers, bfloat16", {"kind": "hf", "bfloat16": True}),
    "hf_compile": (
        "transformers, bfloat16 and `torch.compile`",
        {"kind": "hf", "bfloat16": True, "compile": True},
    ),
}


def main() -> None:
    flags = parse(
        __doc__,
        texts=flag(256, "number of texts"),
        layers=flag(12, "number of layers"),
        rounds=flag(2, "timed turns of each"),
        contestants=flag([*CONTESTANTS], f"which of {', '.join(CONTESTANTS)} to time"),
        table=flag(None, "document to write the table into"),
    )
    with tempfile.TemporaryDirectory() as folder:
        write_model(folder, _model, _config(flags.layers))
        task = {"model_dir": folder, "num_texts": flags.texts}
        everyone = {
            name: Contestant(__spec__.name, {**task, **CONTESTANTS[name][1]})
            for name in flags.contestants
        }
        results = compete(everyone, flags.rounds, 1)
    rates = {name: round(flags.texts / row["seconds"], 2) for name, row in results.items()}
    if flags.table:
        rows = [("", "texts per second", "peak memory, GB")]
        for name, rate in rates.items():
            peak = results[name]["peak_bytes"] / 1e9
            rows.append((CONTESTANTS[name][0], f"{rate:.1f}", f"{peak:.1f}"))
        text = (
            f"{flags.texts} texts of 3 to {_MOST_WORDS} words, {flags.layers} layers of "
            f"XLNet-base, at most {_MAX_LENGTH} tokens, batches of {_BATCH}, CPU "
            f"cores: {num_cores()}"
        )
        fill_table(flags.table, "classify", f"{text}:\n\n{markdown_table(rows)}")
    print(json.dumps(rates))


def texts_of(number: int) -> list[str]:
    """Returns texts of 3 to 80 words of Python's manual."""
    rng = np.random.default_rng(0)
    words = " ".join(topics.values()).split()
    sizes = np.clip(rng.lognormal(3.0, 0.8, number), 3, _MOST_WORDS).astype(int)
    starts = rng.integers(0, len(words) - _MOST_WORDS, number)
    return [" ".join(words[i : i + n]) for i, n in zip(starts, sizes, strict=True)]


def build(
    kind: str, model_dir: str, num_texts: int, bfloat16: bool = False, compile: bool = False
) -> Work:
    """Builds a contestant; see `contest`.

    Args:
      kind: `ours` or `hf`.
      model_dir: model directory; transformers' model has its sizes and vocabulary.
      num_texts: number of texts.
      bfloat16: whether products are bfloat16.
      compile: whether to use `torch.compile`.
    """
    texts = texts_of(num_texts)
    if kind == "ours":
        return _ours(model_dir, texts, "bfloat16" if bfloat16 else "float32")
    return _transformers(model_dir, texts, bfloat16, compile)


def _ours(model_dir: str, texts: list[str], products: str) -> Work:
    predictor = xlnet.Predictor(model_dir)

    def run() -> float:
        with xlnet.matmul_precision(products):
            return predictor(texts)[0]["probabilities"]["yes"]

    return Work(run)


def _transformers(model_dir: str, texts: list[str], bfloat16: bool, compile: bool) -> Work:
    import sentencepiece
    import torch
    import transformers

    from benchmarks.training.peers.hf import configuration

    torch.set_num_threads(num_cores())
    config = xlnet.XLNetConfig.load(model_dir)
    model: Any = transformers.XLNetForSequenceClassification(configuration(config)).eval()
    if compile:
        model.compile(dynamic=True)
    processor = sentencepiece.SentencePieceProcessor(model_file=f"{model_dir}/spiece.model")

    def batch_of(rows: list[list[int]]) -> dict[str, torch.Tensor]:
        longest = max(map(len, rows))
        padding = [longest - len(ids) for ids in rows]
        pairs = list(zip(rows, padding, strict=True))
        ids = [[PAD_ID] * num + row for row, num in pairs]
        is_token = [[0] * num + [1] * len(row) for row, num in pairs]
        segments = [[3] * num + [0] * (len(row) - 1) + [2] for row, num in pairs]
        batch = {"input_ids": ids, "attention_mask": is_token, "token_type_ids": segments}
        return {name: torch.tensor(values) for name, values in batch.items()}

    def run() -> float:
        rows = [ids[: _MAX_LENGTH - 2] + [SEP_ID, CLS_ID] for ids in processor.encode(texts)]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
        classes = [0.0] * len(rows)
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            if bfloat16:  # Entered once, so that the weights are rounded once.
                stack.enter_context(torch.autocast("cpu", torch.bfloat16))
            for start in range(0, len(order), _BATCH):
                members = order[start : start + _BATCH]
                logits = model(**batch_of([rows[i] for i in members])).logits
                for i, p in zip(members, logits.float().softmax(-1)[:, 1].tolist(), strict=True):
                    classes[i] = p
        return classes[0]

    return Work(run)


def _config(num_layers: int) -> Any:
    config = xlnet.XLNetConfig.load(
        "configs/base.yaml", [f"num_layers={num_layers}", "vocab_size=3000", "mem_len=0"]
    )
    config.task = xlnet.XLNetConfig.from_dict(
        {
            "task": {
                "name": "classification",
                "labels": ("no", "yes"),
                "text_columns": ("text",),
                "max_length": _MAX_LENGTH,
            }
        }
    ).task
    config.training.batch_size = _BATCH
    return config


def _model(config: Any) -> Any:
    from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel

    return XLNetTaskModel(config)


if __name__ == "__main__":
    main()
