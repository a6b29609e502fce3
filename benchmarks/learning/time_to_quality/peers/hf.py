"""HF transformers' XLNet (PyTorch) with HF's collator for permutation language modeling.

    python -m benchmarks.learning.time_to_quality.peers.hf --config=… (see `runs`)

AdamW with the momentum and clipping of our recipe, no dropout, all cores.
"""

from __future__ import annotations

import os
import shutil

import numpy as np
import torch
import transformers

from benchmarks.learning.time_to_quality.peers.common import WEIGHT_DECAY, arguments, steps
from benchmarks.training.peers.hf import configuration
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.runtime.cores import num_cores
from official.xlnet.tokenization.special_tokens import CLS_ID, MASK_ID, PAD_ID, SEP_ID, UNK_ID
from official.xlnet.tokenization.tokenizer import num_pieces

_PROBABILITY = 1 / 3  # Of a token to be a target, about.


class _Tokenizer:
    """What the collator asks of a tokenizer."""

    mask_token, mask_token_id = "<mask>", MASK_ID
    pad_token, pad_token_id = "<pad>", PAD_ID
    _pad_token = "<pad>"

    def get_special_tokens_mask(self, token_ids, already_has_special_tokens=True):
        return [int(token_id in (CLS_ID, SEP_ID, PAD_ID, UNK_ID)) for token_id in token_ids]


def main() -> None:
    flags = arguments()
    torch.manual_seed(flags.seed)
    torch.set_num_threads(num_cores())
    config = XLNetConfig.load(flags.config)
    config.model.fit_vocabulary(num_pieces(flags.vocab), flags.vocab)
    windows = torch.from_numpy(np.load(flags.windows)).long()
    model = transformers.XLNetLMHeadModel(configuration(config, mem_len=None)).train()
    training = config.training
    optimizer = torch.optim.AdamW(
        model.parameters(),
        betas=(training.adam_beta_1, training.adam_beta_2),
        eps=training.adam_epsilon,
        weight_decay=WEIGHT_DECAY,
        fused=True,
    )
    collator = transformers.DataCollatorForPermutationLanguageModeling(
        _Tokenizer(),  # type: ignore[arg-type, unused-ignore]
        plm_probability=_PROBABILITY,
        max_span_length=config.data.max_span,
    )

    def save(step: int) -> None:
        # Under its name only once it is complete.
        folder = os.path.join(flags.output, "unfinished")
        model.save_pretrained(folder)
        shutil.copy(flags.vocab, os.path.join(folder, "spiece.model"))
        os.replace(folder, os.path.join(flags.output, f"step-{step}"))

    for rate, generator in steps(flags, save):
        for group in optimizer.param_groups:
            group["lr"] = rate
        rows = generator.integers(0, len(windows), training.batch_size)
        batch = collator([{"input_ids": windows[row]} for row in rows])
        loss = model(**batch, use_mems=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    main()
