"""Labels by letter: `task.label_unit=letter`."""

from __future__ import annotations

import itertools

import numpy as np

from official.xlnet.configs.registry import LABEL_UNITS
from official.xlnet.files.schema import shown
from official.xlnet.tasks.token_classification.label_units import TAG_COLUMNS, LabelUnit


@LABEL_UNITS.register("letter")
class LetterUnit(LabelUnit):
    """Letters of a string without spaces, which is tokenized as a whole.

    Letters of one token share its prediction; the loss counts each of them.
    """

    name = "letter"
    separator = ""
    columns = ("sequence",)
    metric = "matthews"
    may_have_digits = True

    def takes(self, value):
        return isinstance(value, str)

    def takes_labels(self, value):
        return isinstance(value, list | str)

    def units_of(self, row, column):
        from data_prep.tasks.rows import WrongRowError, text

        letters = tuple(text(row, column))
        if any(map(str.isspace, letters)):
            got = shown(row[column])
            raise WrongRowError(f"expected letters without spaces in {column!r}, got {got}")
        return letters

    def row_of(self, text):
        return {"sequence": text}

    def has_rows(self, names, settings):
        has_sequence = not names.isdisjoint({*self.columns, *settings.text_columns})
        has_labels = not names.isdisjoint({*TAG_COLUMNS, settings.label_column})
        return has_sequence and has_labels

    def windows(self, tokenizer, examples, lengths_B, length):
        from official.xlnet.projects.sequences.letter_windows import letter_windows
        from official.xlnet.tokenization.graph.ragged import ragged

        token_ids, token_starts = [], []
        for example in examples:
            ids, spans = tokenizer.encode_with_offsets("".join(example.words))
            token_ids.append(ids)
            token_starts.append([start for start, _ in spans])
        return letter_windows(ragged(token_ids), ragged(token_starts), lengths_B, length)

    def splitter(self, tokenizer):
        from official.xlnet.projects.sequences.letter_windows import LetterSplitter

        return LetterSplitter(tokenizer)

    def targets(self, classes, places, size, num_classes):
        counts = np.zeros((size, num_classes), np.float32)
        np.add.at(counts, (places, classes.astype(int)), 1)
        return {"tag_counts": counts}

    def metrics(self, true, predicted, entities):
        """Computes accuracy and Matthews correlation (scikit-learn)."""
        from sklearn.metrics import accuracy_score, matthews_corrcoef

        true_letters = [*itertools.chain(*true)]
        predicted_letters = [*itertools.chain(*predicted)]
        return {
            "accuracy": float(accuracy_score(true_letters, predicted_letters)),
            "matthews": float(matthews_corrcoef(true_letters, predicted_letters)),
        }

    def details(self, labels, true, predicted, entities):
        from official.xlnet.tasks.reports import class_details

        true_letters = [*itertools.chain(*true)]
        predicted_letters = [*itertools.chain(*predicted)]
        return {"classes": class_details(labels, true_letters, predicted_letters)}
