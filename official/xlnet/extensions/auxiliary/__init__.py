"""Auxiliary objectives of BERT and ERNIE 2.0 (Sun et al., 2020), which XLNet does without."""
