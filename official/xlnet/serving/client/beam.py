"""Bulk (batch) inference with an exported model on Apache Beam.

    JSON lines → RunInference(SavedModelHandler) → JSON lines

Each worker loads the model once and needs tensorflow, tensorflow-text and this module. Invalid
rows do not stop the pipeline: they are written to a separate file with the error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from absl import logging
from apache_beam.coders import BytesCoder
from apache_beam.io import ReadFromText, WriteToText
from apache_beam.ml.inference.base import ModelHandler, RunInference
from apache_beam.options.pipeline_options import PipelineOptions

from official.xlnet.data.graph_names import COLUMNS_FILE
from official.xlnet.errors import DataError, require_data
from official.xlnet.files import file_system
from official.xlnet.files.checksums import check_checksums
from official.xlnet.files.compression import ending
from official.xlnet.files.json_files import json_text, parse_json, read_json
from official.xlnet.files.schema import conform
from official.xlnet.files.staging import is_plain, local_copy, plain_folder
from official.xlnet.serving.client.prediction import padded, row_of

_WRONG = "wrong"
_TABLES = (".csv", ".tsv")
Row = dict[str, Any]


@dataclasses.dataclass
class _Exported:
    """A loaded version, and {text input: column of the training data}; Beam holds it weakly."""

    saved_model: Any
    columns: dict[str, str]


class SavedModelHandler(ModelHandler[Row, Row, Any]):
    """Beam model handler that runs `serving_default` of an exported model in `RunInference`.

    Elements are dictionaries with the inputs of the signature, by their names or the names of the
    columns that they stand for, and optionally an `id`, which is passed through. Outputs are
    predictions as `xlnet predict` writes them, or `{"error": …, "row": …}` for an invalid row.

    Args:
      version_dir: directory of an exported version, in a bucket or on a file system that all
        workers mount.
      batch_size: maximum number of rows of a batch. Texts of a batch may have different lengths.

    Example:
      >>> rows | RunInference(SavedModelHandler("exported/1"))
    """

    def __init__(self, version_dir: str, batch_size: int = 64):
        super().__init__(max_batch_size=batch_size)
        self._version_dir = version_dir

    def load_model(self) -> _Exported:
        """Loads the exported model."""
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  Registers the operations.

        with local_copy(self._version_dir) as copy, plain_folder(copy) as folder:
            path = os.path.join(folder, COLUMNS_FILE)
            columns = read_json(path, dict[str, str]) if os.path.exists(path) else {}
            return _Exported(tf.saved_model.load(folder), columns)

    def run_inference(
        self, batch: Sequence[Row], model: Any, inference_args: dict[str, Any] | None = None
    ) -> Iterable[Row]:
        """Returns the prediction or error of each row."""
        import tensorflow as tf

        signature = model.saved_model.signatures["serving_default"]
        column_of = {n: model.columns.get(n, n) for n in signature.structured_input_signature[1]}
        try:
            columns = {
                name: [row[name] if name in row else row[column] for row in batch]
                for name, column in column_of.items()
            }
            outputs = signature(
                **{n: tf.constant(padded(x), tf.string) for n, x in columns.items()}
            )
        except (KeyError, ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
            if len(batch) > 1:
                return [self.run_inference([row], model)[0] for row in batch]  # type: ignore[index]
            expected = f"expected {', '.join(column_of.values())}"
            what = expected if isinstance(error, KeyError) else str(error)
            return [{"error": what, "row": batch[0]}]
        arrays = {name: x.numpy() for name, x in outputs.items()}
        ids = [{"id": row["id"]} if "id" in row else {} for row in batch]
        return [own | row_of(arrays, number) for number, own in enumerate(ids)]


def predict_in_bulk(
    version_dir: str,
    pattern: str,
    output: str,
    batch_size: int = 64,
    beam_options: Sequence[str] = (),
) -> dict[str, int]:
    """Runs batch inference over JSON lines files.

    Args:
      version_dir: directory of a version written by `xlnet export`.
      pattern: glob pattern of the input files, e.g. `gs://bucket/texts-*.jsonl`.
      output: prefix of the output files. Files with `-wrong` in their names hold invalid rows, if
        there are any.
      batch_size: maximum number of rows of a batch.
      beam_options: command-line options of Beam and its runner.

    Returns:
      A dictionary with
        rows: number of predictions.
        wrong_rows: number of invalid rows.

    Raises:
      DataError: `version_dir` holds no exported model, or its files do not have the checksums of
        the export; an input is a table, or no row of the input is valid; or Beam does not know the
        options.
      OSError: `output` cannot be written.
    """
    is_exported = file_system.exists(os.path.join(version_dir, "saved_model.pb"))
    expected = "the directory of an exported version"
    require_data(is_exported, repr(version_dir), expected, "one without saved_model.pb")
    check_checksums(version_dir)
    is_one = file_system.is_remote(pattern) or os.path.exists(pattern)
    for path in (pattern,) if is_one else file_system.glob(pattern):
        is_table = ending(path) in _TABLES
        is_folder = not file_system.is_remote(path) and file_system.is_dir(path)
        got = "a directory" if is_folder else "a table, which --model and --endpoint read"
        require_data(not (is_table or is_folder), path, "JSON lines for --saved_model", got)
    if not file_system.is_remote(output):  # Beam's own error is a traceback in another's text.
        os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    try:
        pipeline = beam.Pipeline(options=PipelineOptions(list(beam_options)))
    except ValueError as error:
        raise DataError(f"Beam cannot use {' '.join(beam_options)}: {error}") from None
    with _prefix_for_beam(output) as prefix:
        # A file with the name of a pattern is read itself.
        names = glob.escape(pattern) if os.path.exists(pattern) else pattern
        lines = pipeline | "Read" >> ReadFromText(names, coder=BytesCoder())
        rows = lines | "Parse" >> beam.Map(_parse).with_outputs(_WRONG, main="rows")
        handler = SavedModelHandler(version_dir, batch_size)
        predictions = rows["rows"] | "Predict" >> RunInference(handler)
        split = predictions | "Split" >> beam.Map(_tagged).with_outputs(_WRONG, main="rows")
        wrong = (rows[_WRONG], split[_WRONG]) | "All wrong rows" >> beam.Flatten()
        for name, part in (("", split["rows"]), ("-wrong", wrong)):
            _ = (
                part
                | f"Json{name}" >> beam.Map(lambda row: json_text(row))
                # Beam cannot write empty files to S3.
                | f"Write{name}" >> WriteToText(prefix + name, ".jsonl", skip_if_empty=True)
            )
        result = pipeline.run()
        result.wait_until_finish()
    counters = result.metrics().query()["counters"]  # One for each step that counts.
    counts = {
        name: sum(c.committed for c in counters if c.key.metric.name == name)
        for name in ("rows", "wrong_rows")
    }
    if counts["wrong_rows"]:
        message = f"{counts['wrong_rows']} invalid rows of {pattern} are in {output}-wrong…"
        require_data(bool(counts["rows"]), pattern, "valid rows", f"none: {message}")
        logging.warning("%s", message)
    return counts


@contextlib.contextmanager
def _prefix_for_beam(output: str) -> Iterator[str]:
    """A prefix for Beam, which looks for its files by patterns."""
    folder, start = os.path.split(output)
    expected = "a name without the characters of patterns, which Beam takes for one"
    require_data(is_plain(start), output, expected, repr(start))
    with plain_folder(folder) as plain, warnings.catch_warnings():
        # Of Beam's regular expressions, for a `[` in the name of a file.
        warnings.filterwarnings("ignore", "Possible nested set", FutureWarning)
        yield os.path.join(plain, start)


def _parse(line: bytes) -> Any:
    try:
        return conform(parse_json(line.decode("utf-8-sig"), "row"), dict[str, Any], "row")
    except (DataError, UnicodeDecodeError):
        return _wrong({"error": "expected a JSON object", "row": line.decode("utf-8", "replace")})


def _tagged(prediction: Row) -> Any:
    if "error" in prediction:
        return _wrong(prediction)
    beam.metrics.Metrics.counter("xlnet_bulk", "rows").inc()
    return prediction


def _wrong(row: Row) -> Any:
    beam.metrics.Metrics.counter("xlnet_bulk", "wrong_rows").inc()
    return beam.pvalue.TaggedOutput(_WRONG, row)
