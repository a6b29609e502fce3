"""Text in: readers, filters, documents, and the vocabulary that is trained on them."""
