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
    (r"rows are those that were meant: .*\"p\d+\"", "34: columns such as pair_ID"),
    (r"rows are those that were meant: \('\[\[\"\d+\", ", "34: the index of pandas' to_csv"),
    (r"no row is made up", "34: an empty label"),
    (r"rows are read or counted", "34: a quote that is never closed"),
    (r"rows are those that were meant: .*\\?\"\\?\"\]'", "34: is_impossible of a text"),
    (r"train\.(CSV|TSV|JSONL).* expected a column", "34: TRAIN.CSV"),
)
