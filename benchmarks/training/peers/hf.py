"""HF transformers' XLNet (PyTorch): all threads, fused AdamW, eager mode or `torch.compile`."""

from __future__ import annotations

import torch
import transformers

from benchmarks.harness.worker import Work
from benchmarks.harness.workload import (
    DROPOUT,
    LEARNING_RATE,
    Shape,
    masked_batch,
    tokens_and_segments,
)
from official.xlnet.runtime.cores import num_cores


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
    config = transformers.XLNetConfig(
        vocab_size=sizes.vocab_size,
        d_model=sizes.d_model,
        n_layer=sizes.num_layers,
        n_head=sizes.num_heads,
        d_inner=sizes.d_inner,
        ff_activation="gelu_new",
        mem_len=sizes.mem_len or None,
        reuse_len=sizes.reuse_len or None,
        bi_data=kind == "pretrain" and sizes.batch_size % 2 == 0,
        dropout=DROPOUT,
    )
    return {"pretrain": _pretrain, "finetune": _finetune, "encode": _encode}[kind](
        config, sizes, compile
    )


def _pretrain(config, sizes: Shape, compile: bool) -> Work:
    model = transformers.XLNetLMHeadModel(config).train()
    if compile:
        model.transformer.compile()
    batch = {name: torch.from_numpy(value) for name, value in masked_batch(sizes).items()}
    inputs = {
        "input_ids": batch["token_ids"].long(),
        "token_type_ids": batch["segment_ids"].long(),
        "perm_mask": batch["is_hidden"],
        "target_mapping": batch["target_one_hot"],
        "labels": batch["labels"].long(),
        "use_mems": sizes.mem_len > 0,
    }
    if sizes.mem_len:
        inputs["mems"] = list(batch["memory"].transpose(1, 2).contiguous())
    return _training(model, inputs)


def _finetune(config, sizes: Shape, compile: bool) -> Work:
    model = transformers.XLNetForSequenceClassification(config).train()
    if compile:
        model.transformer.compile()
    token_ids, segment_ids = (torch.from_numpy(x).long() for x in tokens_and_segments(sizes))
    inputs = {
        "input_ids": token_ids,
        "token_type_ids": segment_ids,
        "labels": torch.arange(sizes.batch_size) % 2,
        "use_mems": False,
    }
    return _training(model, inputs)


def _training(model, inputs) -> Work:
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)

    def run() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        return float(loss)

    return Work(run, sum(p.numel() for p in model.parameters()))


def _encode(config, sizes: Shape, compile: bool) -> Work:
    model = transformers.XLNetModel(config).eval()
    if compile:
        model.compile()
    token_ids, segment_ids = (torch.from_numpy(x).long() for x in tokens_and_segments(sizes))

    def run() -> float:
        with torch.inference_mode():
            out = model(token_ids, token_type_ids=segment_ids, use_mems=False)
            return float(out.last_hidden_state[0, 0, 0])

    return Work(run, sum(p.numel() for p in model.parameters()))
