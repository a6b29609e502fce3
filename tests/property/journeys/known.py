"""Violations that others are mending: (words of the violation, issue); empty at the end."""

KNOWN: tuple[tuple[str, str], ...] = (
    (
        r"expected \d+ pieces, as in the model's configuration, got",
        "34: a vocabulary of another size",
    ),
    (
        r"model.vocab_size: expected \d+, as in the vocabulary, got",
        "34: a vocabulary of another size",
    ),
    (r"all input arrays must have the same shape", "34: a vocabulary of another size"),
)
