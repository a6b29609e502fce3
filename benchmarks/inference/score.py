"""Benchmark of scoring sentences from left to right, beside GPT-2 small and HF's XLNet.

    python -m benchmarks.inference.score --table=docs/scoring_and_generation.md

All have random weights of the published sizes and score the same sentences, whose lengths are those
of English text: ours with `Scorer`, HF's XLNet with `perm_mask` and `target_mapping` for all
positions at once, GPT-2 as minicons does, both in batches of 32 sentences that are sorted by
length. They take turns in processes of their own. The last line is JSON: sentences per second.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.contest import Contestant, compete
from benchmarks.harness.tables import fill_table, markdown_table
from benchmarks.harness.worker import Work
from official.xlnet.runtime.cores import num_cores

_BATCH = 32
_FIRST_ID = 100  # An ordinary token.
_VOCAB = 32_000
_NAMES = {
    "ours": "`Scorer`, XLNet-base",
    "hf": "HF's XLNet-base, `perm_mask`",
    "gpt2": "HF's GPT-2 small, as minicons",
}


def main() -> None:
    flags = parse(
        __doc__,
        sentences=flag(128, "number of sentences"),
        rounds=flag(5, "turns of each"),
        table=flag(None, "document to write the table into"),
    )
    contestants = {
        name: Contestant(__spec__.name, {"kind": name, "num_sentences": flags.sentences})
        for name in _NAMES
    }
    results = compete(contestants, flags.rounds)
    rates = {name: flags.sentences / result["seconds"] for name, result in results.items()}
    if flags.table:
        rows = [(_NAMES[name], f"{rate:.1f}") for name, rate in rates.items()]
        table = markdown_table([("", "sentences per second"), *rows])
        mean = np.mean([len(ids) for ids in sentences(flags.sentences)])
        text = (
            f"{flags.sentences} sentences of {mean:.0f} tokens on average, {num_cores()} CPU cores"
        )
        fill_table(flags.table, "score", f"{text}:\n\n{table}")
    print(json.dumps({name: round(rate, 2) for name, rate in rates.items()}))


def sentences(number: int) -> list[np.ndarray]:
    """Token ids of sentences, of 4 to 64 tokens."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(3.0, 0.5, number), 4, 64).astype(int)
    return [rng.integers(_FIRST_ID, _VOCAB, length) for length in lengths]


def build(kind: str, num_sentences: int) -> Work:
    """Builds a contestant; see `contest`.

    Args:
      kind: `ours`, `hf` or `gpt2`.
      num_sentences: number of sentences.
    """
    rows = sentences(num_sentences)
    if kind == "ours":
        return _ours(rows)
    import torch
    import transformers

    torch.set_num_threads(num_cores())
    config: Any
    if kind == "hf":
        config = transformers.XLNetConfig(
            vocab_size=_VOCAB, d_model=768, n_layer=12, n_head=12, d_inner=3072
        )
        model: Any = transformers.XLNetLMHeadModel(config).eval()
    else:
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    by_length = sorted(rows, key=len)

    def run() -> float:
        total = 0.0
        for first in range(0, len(rows), _BATCH):
            batch = by_length[first : first + _BATCH]
            length = max(map(len, batch))
            ids_BT = torch.tensor(np.stack([np.pad(ids, [0, length - len(ids)]) for ids in batch]))
            real_BT = torch.tensor([[n < len(ids) for n in range(length)] for ids in batch])
            inputs = {"input_ids": ids_BT, "attention_mask": real_BT.float()}
            if kind == "hf":
                inputs["perm_mask"] = torch.triu(torch.ones(len(batch), length, length))
                inputs["target_mapping"] = torch.eye(length).expand(len(batch), -1, -1)
            with torch.inference_mode():
                logits = model(**inputs).logits
                if kind == "gpt2":
                    logits, ids_BT, real_BT = logits[:, :-1], ids_BT[:, 1:], real_BT[:, 1:]
                log_p = torch.log_softmax(logits, -1).gather(-1, ids_BT[..., None])[..., 0]
                total += float((log_p * real_BT).sum())
        return total

    return Work(run, sum(weight.numel() for weight in model.parameters()))


def _ours(rows: list[np.ndarray]) -> Work:
    from official import xlnet

    class Numbers(xlnet.Tokenizer):
        """Reads numbers as those ids."""

        def __init__(self):
            self.vocab_size = _VOCAB

        def encode_with_offsets(self, text):
            return [int(word) for word in text.split()], [(0, 1)] * (text.count(" ") + 1)

        def id_to_piece(self, i):
            return str(i)

    steps = ("batch_size", "accumulate_steps", "parallel_slices")
    overrides = ["training.precision=float32", *(f"training.{key}=1" for key in steps)]
    config = xlnet.XLNetConfig.load("configs/base.yaml", overrides)
    model = xlnet.XLNetPretrainer(config)
    scorer = xlnet.Scorer(model, Numbers())
    texts = [" ".join(map(str, ids)) for ids in rows]
    return Work(lambda: sum(each.total for each in scorer(texts)), model.count_params())


if __name__ == "__main__":
    main()
