"""Rescoring of speech recognition: n-best lists, and Kaldi's files of texts."""
