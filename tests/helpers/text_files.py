"""The same documents as files of every format; a bad one is None, or has a lone surrogate."""

import bz2
import gzip
import json
import lzma

import pyarrow
import pyarrow.parquet as pq
import zstandard

from tests.helpers.corpora import as_text

MARK = b"\xef\xbb\xbf"
COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    # Of two frames.
    "zst": lambda data: zstandard.compress(data[:99]) + zstandard.compress(data[99:]),
}


def encoded(text: str) -> bytes:
    r"""UTF-8, in which `\udcff` is the byte 0xff."""
    return text.encode(errors="surrogateescape")


def as_bytes(documents, old="", new=""):
    return encoded(as_text(documents).replace(old, new) if old else as_text(documents))


def as_json(documents, number="7", field="text"):
    lines = []
    for place, document in enumerate(documents):
        text = json.dumps(document and "\n".join(document), ensure_ascii=place % 2 == 0)
        lines.append(f'{{"score": {number}, "{field}": {text}, "text_": null}}')
    return "\n".join(lines).encode()


def as_wiki(documents):
    pages = ("\n\n".join(document) for document in documents)
    return encoded("".join(f'<doc id="{i}">\n{x}\n\n</doc>\n' for i, x in enumerate(pages)))


def as_wikitext(documents, end="\n"):
    """Sections are set off by blank lines; a document begins with its title."""
    lines = (end.join(f" {line} {end} " for line in document) for document in documents)
    return end.join(f" {end}{document}" for document in lines).encode()


def as_wet(documents):
    records = [b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n"]
    head = "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nContent-Length: "
    for text in (encoded("\n".join(document)) for document in documents):
        records.append(f"{head}{len(text)}\r\n\r\n".encode() + text + b"\r\n\r\n")
    return b"".join(records)


def as_parquet(documents):
    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table({"text": [document and "\n".join(document) for document in documents]})
    pq.write_table(table, sink, compression="NONE", use_dictionary=False, row_group_size=7)
    return sink.getvalue().to_pybytes()


def store_tfds(documents, directory, patch):
    """Stores a TFDS data set `stories` in a directory, which TFDS then looks in."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    patch.setenv("TFDS_DATA_DIR", str(directory))
    patch.setattr(tfds.core.constants, "DATA_DIR", str(directory))
    texts = [encoded("\n".join(document)) for document in documents]
    tfds.dataset_builders.store_as_tfds_dataset(
        name="stories",
        version="1.0.0",
        features=tfds.features.FeaturesDict({"text": tfds.features.Text()}),
        split_datasets={"train": tf.data.Dataset.from_tensor_slices({"text": texts})},
        data_dir=str(directory),
    )
