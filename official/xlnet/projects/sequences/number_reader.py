"""Reader of words or letters with numbers."""

from __future__ import annotations

from collections.abc import Iterator

from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.tasks.token_classification import TaggedExample
from official.xlnet.tasks.token_classification.reader import read_conll


@register_reader("token_regression")
def read_numbers(reading: Reading) -> Iterator[TaggedExample]:
    """Reads sentences or sequences, with numbers in place of tags; see `read_conll`."""
    return read_conll(reading)
