"""Epochs of transformers' `Trainer`: rows grouped by length, padded to the longest of a batch."""

from __future__ import annotations

import math
import tempfile
from typing import Any

import torch
import transformers
from torch.utils.data import Sampler
from transformers.trainer_pt_utils import get_length_grouped_indices

from benchmarks.harness.worker import Work
from benchmarks.harness.workload import LEARNING_RATE, Shape, config_of
from benchmarks.training.finetuning import rows_of
from benchmarks.training.peers.hf import configuration
from official.xlnet.runtime.cores import num_cores
from official.xlnet.tokenization.special_tokens import PAD_ID

_ROWS_GROUPED = 50  # Batches that are sorted together: the most that `Trainer` takes.


class _Trainer(transformers.Trainer):
    """Sorts as many rows together as with a large table, so that a small one is as fast."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return _ByLength(self.train_dataset, self.args.train_batch_size)


class _ByLength(Sampler):
    def __init__(self, rows: Any, batch_size: int):
        self._lengths = [len(row["input_ids"]) for row in rows]
        self._batch_size = batch_size

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self):
        return iter(get_length_grouped_indices(self._lengths, self._batch_size, _ROWS_GROUPED))


def build(
    shape: dict, num_short: int, num_long: int, bfloat16: bool = False, compile: bool = False
) -> Work:
    """Builds an epoch.

    Args:
      shape: fields of `Shape`.
      num_short: number of short texts.
      num_long: number of long ones.
      bfloat16: whether products are bfloat16 (autocast).
      compile: whether to use `torch.compile`.
    """
    torch.manual_seed(0)
    torch.set_num_threads(num_cores())
    sizes = Shape(**shape)
    config = config_of(sizes)
    model: Any = transformers.XLNetForSequenceClassification(configuration(config))
    rows = rows_of(num_short, num_long, sizes.vocab_size)
    data = [{"input_ids": ids.tolist(), "labels": n % 2} for n, ids in enumerate(rows)]
    folder = tempfile.mkdtemp()
    arguments = transformers.TrainingArguments(
        folder,
        per_device_train_batch_size=sizes.batch_size,
        num_train_epochs=1,
        learning_rate=LEARNING_RATE,
        weight_decay=config.training.weight_decay,
        adam_epsilon=config.training.adam_epsilon,
        max_grad_norm=config.training.clip_norm,
        lr_scheduler_type="constant",
        bf16=bfloat16,
        torch_compile=compile,
        use_cpu=True,
        optim="adamw_torch_fused",
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    trainer = _Trainer(model, arguments, _padded, train_dataset=data)

    def epoch() -> float:
        loss = trainer.train().training_loss
        assert math.isfinite(loss)
        return loss

    return Work(epoch, sum(p.numel() for p in model.parameters()))


def _padded(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """A batch, padded on the left as XLNet's tokenizer does."""
    longest = max(len(row["input_ids"]) for row in rows)
    ids, is_token, segments = [], [], []
    for row in rows:
        padding = longest - len(row["input_ids"])
        ids.append([PAD_ID] * padding + row["input_ids"])
        is_token.append([0] * padding + [1] * len(row["input_ids"]))
        segments.append([3] * padding + [0] * (len(row["input_ids"]) - 1) + [2])
    labels = torch.tensor([row["labels"] for row in rows])
    batch = {"input_ids": ids, "attention_mask": is_token, "token_type_ids": segments}
    return {**{name: torch.tensor(values) for name, values in batch.items()}, "labels": labels}
