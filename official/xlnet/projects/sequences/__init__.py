"""Sequences of letters: FASTA, labels of letters, and numbers of words or letters."""
