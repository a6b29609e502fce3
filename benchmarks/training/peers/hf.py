"""HF transformers' XLNet (PyTorch): all threads, fused AdamW, eager mode or `torch.compile`."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from benchmarks.harness.worker import Work
from benchmarks.harness.workload import LEARNING_RATE, Shape, config_of, masked_batch
from official.xlnet.runtime.cores import num_cores

_MODELS = {
    "pretrain": transformers.XLNetLMHeadModel,
    "finetune": transformers.XLNetForSequenceClassification,
    "encode": transformers.XLNetModel,
}


def build(kind: str, shape: dict, compile: bool = False) -> Work:
    """Builds the workload of one step.

    Args:
      kind: `pretrain`, `finetune` or `encode`.
      shape: fields of `Shape`.
      compile: whether to use `torch.compile`.
    """
    torch.manual_seed(0)
    torch.set_num_threads(num_cores())
    sizes = Shape(**shape)
    model: Any = _MODELS[kind](
        configuration(
            config_of(sizes),
            mem_len=sizes.mem_len or None,
            reuse_len=sizes.reuse_len or None,
            bi_data=kind == "pretrain" and sizes.batch_size % 2 == 0,
        )
    ).train(kind != "encode")
    if compile:
        (model if kind == "encode" else model.transformer).compile()
    inputs = _inputs(kind, sizes)

    def encode() -> float:
        with torch.inference_mode():
            return float(model(**inputs).last_hidden_state[0, 0, 0])

    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)

    def train() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        return float(loss)

    num_parameters = sum(p.numel() for p in model.parameters())
    return Work(encode if kind == "encode" else train, num_parameters)


def configuration(config, **options: Any) -> transformers.XLNetConfig:
    """HF's configuration of a model of the shape and initial scale of ours."""
    model = config.model
    return transformers.XLNetConfig(
        vocab_size=model.vocab_size,
        d_model=model.d_model,
        n_layer=model.num_layers,
        n_head=model.num_heads,
        d_inner=model.d_inner,
        ff_activation="gelu_new",
        untie_r=model.untie_r,  # type: ignore[call-arg, unused-ignore]
        dropout=model.dropout,
        initializer_range=model.init_std,
        **options,
    )


def _inputs(kind: str, sizes: Shape) -> dict[str, Any]:
    batch = {name: torch.from_numpy(value) for name, value in masked_batch(sizes).items()}
    inputs = {
        "input_ids": batch["token_ids"].long(),
        "token_type_ids": batch["segment_ids"].long(),
        "use_mems": kind == "pretrain" and sizes.mem_len > 0,
    }
    if kind == "finetune":
        inputs["labels"] = torch.arange(sizes.batch_size) % 2
    if kind == "pretrain":
        inputs |= {
            "perm_mask": batch["is_hidden"],
            "target_mapping": batch["target_one_hot"],
            "labels": batch["labels"].long(),
        }
    if inputs["use_mems"]:
        inputs["mems"] = list(batch["memory"].transpose(1, 2).contiguous())
    return inputs
