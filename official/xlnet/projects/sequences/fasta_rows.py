"""FASTA as a table: a row for each sequence, to predict, embed or score."""

from __future__ import annotations

from collections.abc import Iterator

from data_prep.tasks.row_formats import register_row_format
from data_prep.tasks.rows import Row
from official.xlnet.data.reading import Reading
from official.xlnet.errors import require_data
from official.xlnet.files.compression import open_stream
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text
from official.xlnet.projects.sequences.fasta import (
    ENDINGS,
    FASTQ_ENDINGS,
    FASTQ_MARK,
    MARK,
    NO_HEADER,
    check_is_not_fastq,
    fasta_records,
    has_sequences,
    is_fastq,
)

_CHECKED_BYTES = 1 << 12


@register_row_format(endings=FASTQ_ENDINGS, mark=FASTQ_MARK, is_marked=is_fastq)
@register_row_format(
    endings=ENDINGS, mark=MARK, is_marked=has_sequences, is_always_table=True, has_labels=False
)
def fasta_rows(reading: Reading) -> Iterator[Row]:
    """Rows of an id, the first word of the header, as in Biopython, and a sequence.

    Files of FASTQ are recognized, and refused.
    """
    with open_stream(reading.path) as (stream, _):
        check_is_not_fastq(stream.read(_CHECKED_BYTES).lstrip(), reading.path)
    text_columns = reading.settings.text_columns
    if len(text_columns) == 1:
        column = text_columns[0]
    else:
        column = "sequence" if reading.settings.name else "text"
    with open_text(reading.path) as file:
        for line_number, header, sequence in fasta_records(file):
            where = f"{reading.path}, line {line_number}"
            require_data(header is not None, where, NO_HEADER, shown(sequence[:40]))
            words = (header or "").split()
            yield {"id": words[0] if words else f"line {line_number}", column: sequence}
