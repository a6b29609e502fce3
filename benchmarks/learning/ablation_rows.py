"""Rows of the ablation study: recipes in configs/ablation, and their titles."""

from __future__ import annotations

ROWS = {
    "bert": "BERT",
    "dae_transformer_xl": "DAE + Transformer-XL",
    "dae_equal_compute": "DAE + Transformer-XL, equal compute",
    "xlnet_k7": "XLNet, K = 7",
    "xlnet_k6": "XLNet, K = 6",
    "no_memory": "− memory",
    "no_span": "− span targets",
    "no_bidirectional": "− bidirectional data",
    "next_sentence": "+ next-sentence prediction",
}
