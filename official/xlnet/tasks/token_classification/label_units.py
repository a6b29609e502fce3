"""The units of a text that are labelled: words here; projects register others, such as letters.

A subclass of `LabelUnit` says how its units are read from rows, which tokens they have, what a
model is trained on and which metrics compare labels. It is registered in `LABEL_UNITS` under the
value of `task.label_unit` that selects it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from official.xlnet.configs.registry import LABEL_UNITS
from official.xlnet.configs.task import TaskConfig

if TYPE_CHECKING:  # Reading examples needs no TensorFlow.
    import tensorflow as tf

    from official.xlnet.tasks.token_classification.windows import WordWindows
    from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
    from official.xlnet.tokenization.tokenizer import Tokenizer

TAG_COLUMNS = ("tags", "ner_tags", "labels", "label")
NO_TAG = -1  # Label of tokens that the loss ignores.
Tags = Sequence[Sequence[str]]  # Of each example, the tag of each unit.


class LabelUnit:
    """Base class of what has a label in a text.

    Attributes:
      name: value of `task.label_unit` that selects it.
      separator: text between two units.
      columns: usual names of the column that has the units.
      metric: metric that selects the best checkpoint.
      may_have_digits: whether digits may be names of classes; otherwise they are probably indices.
    """

    name: ClassVar[str]
    separator: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    metric: ClassVar[str]
    may_have_digits: ClassVar[bool] = False

    def takes(self, value: Any) -> bool:
        """Whether the value of a row has the type that stands for these units."""
        raise NotImplementedError

    def takes_labels(self, value: Any) -> bool:
        """Whether the value of a row has the type that stands for the labels of these units."""
        return isinstance(value, list)

    def units_of(self, row: dict[str, Any], column: str) -> tuple[str, ...]:
        """Returns the units of a row; raises `WrongRowError` for another value."""
        raise NotImplementedError

    def row_of(self, text: str) -> dict[str, Any]:
        """Returns the row of a text without labels."""
        raise NotImplementedError

    def has_rows(self, names: Collection[str], settings: TaskConfig) -> bool:
        """Whether a CSV or TSV file with these column names has an example in each row."""
        return False

    def windows(
        self, tokenizer: Tokenizer, examples: Sequence[Any], lengths_B: np.ndarray, length: int
    ) -> WordWindows:
        """Packs the units of examples into windows.

        Args:
          tokenizer: the tokenizer.
          examples: B instances of `TaggedExample`.
          lengths_B: number of units of each example, int64 [B].
          length: maximum number of tokens of a window, T.
        """
        raise NotImplementedError

    def splitter(self, tokenizer: GraphTokenizer) -> tf.Module:
        """Returns what splits and packs texts in an exported model.

        It is called with texts, string [B], the number of tokens of a window, and a function that
        checks the number of windows of each text. It returns the units, ragged string
        [B, (number of units)], and their `WordWindows`.
        """
        raise NotImplementedError

    def targets(
        self, classes: np.ndarray, places: np.ndarray, size: int, num_classes: int
    ) -> dict[str, np.ndarray]:
        """Returns what the loss of a window needs, by name.

        Args:
          classes: class of each unit of the window.
          places: the token of each unit.
          size: number of tokens, T.
          num_classes: number of classes, C.
        """
        raise NotImplementedError

    def metrics(self, true: Tags, predicted: Tags, entities: tuple[Tags, Tags]) -> dict[str, Any]:
        """Computes the metrics of predicted tags.

        Args:
          true: the labels.
          predicted: the predicted tags.
          entities: both in the letters of BIOES, see `entity_tags`.
        """
        raise NotImplementedError

    def details(
        self, labels: Sequence[str], true: Tags, predicted: Tags, entities: tuple[Tags, Tags]
    ) -> dict[str, Any]:
        """Computes metrics of each class or kind; for the arguments see `metrics`."""
        raise NotImplementedError


@LABEL_UNITS.register("word")
class WordUnit(LabelUnit):
    """Words of a sentence, each tokenized alone; the first token of a word has its label."""

    name = "word"
    separator = " "
    columns = ("words", "tokens")
    metric = "f1"

    def takes(self, value):
        return isinstance(value, list)

    def units_of(self, row, column):
        from data_prep.tasks.rows import texts

        return tuple(texts(row, column))

    def row_of(self, text):
        return {"words": text.split()}

    def windows(self, tokenizer, examples, lengths_B, length):
        from official.xlnet.tasks.token_classification.windows import windows_of
        from official.xlnet.tokenization.graph.ragged import ragged

        words = [word for example in examples for word in example.words]
        return windows_of(ragged(tokenizer.encode_batch(words)), lengths_B, length)

    def splitter(self, tokenizer):
        from official.xlnet.tasks.token_classification.windows import WordSplitter

        return WordSplitter(tokenizer)

    def targets(self, classes, places, size, num_classes):
        tags = np.full(size, NO_TAG, np.int32)
        tags[places] = classes
        return {"tags": tags}

    def metrics(self, true, predicted, entities):
        """Computes entity-level precision, recall and F1 (seqeval), and word accuracy."""
        from seqeval import metrics

        true_entities, predicted_entities = entities
        has_entities = any(tag != "O" for tags in true_entities for tag in tags)
        values: dict[str, float | None] = {}
        for name, score in (
            ("precision", metrics.precision_score),
            ("recall", metrics.recall_score),
            ("f1", metrics.f1_score),
        ):
            values[name] = None
            if has_entities:
                values[name] = float(score(true_entities, predicted_entities, zero_division=0))
        values["word_accuracy"] = float(metrics.accuracy_score(true, predicted))
        return values

    def details(self, labels, true, predicted, entities):
        from seqeval import metrics

        report = metrics.classification_report(*entities, output_dict=True, zero_division=0)
        details = {}
        for entity_type, values in report.items():
            if not entity_type.endswith(" avg"):
                details[entity_type] = {
                    "precision": float(values["precision"]),
                    "recall": float(values["recall"]),
                    "f1": float(values["f1-score"]),
                    "support": int(values["support"]),
                }
        return {"entities": details}
