"""Next-sentence prediction (BERT): does B follow A? XLNet does without it."""
