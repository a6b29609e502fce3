"""RoBERTa's inputs: contiguous text in one segment, across documents or within each."""
