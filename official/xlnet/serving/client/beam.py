"""Terabytes of text through an exported model, on Apache Beam.

    JSON lines → RunInference(SavedModelHandler) → JSON lines

Every worker loads the version once and needs tensorflow, tensorflow-text and this module. A row
that is wrong does not stop the others: it goes to a file of its own with what is wrong with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.io import ReadFromText, WriteToText
from apache_beam.ml.inference.base import ModelHandler, RunInference
from apache_beam.options.pipeline_options import PipelineOptions

from official.xlnet.errors import DataError
from official.xlnet.serving.client.prediction import row_of

_WRONG = "wrong"
Row = dict[str, Any]


class SavedModelHandler(ModelHandler[Row, Row, Any]):
    """Runs `serving_default` of a version for `RunInference`.

    Elements are dictionaries with the signature's inputs and, if it is there, an `id` that goes
    through. What comes out are predictions as `xlnet predict` writes them, or, for a row that
    cannot be used, `{"error": …, "row": …}`.

    Args:
      version_dir: directory of a version, on a file system that all workers share.
      batch_size: most rows of a batch. Rows of any lengths may be in one.

    Example:
      >>> rows | RunInference(SavedModelHandler("exported/1"))
    """

    def __init__(self, version_dir: str, batch_size: int = 64):
        super().__init__(max_batch_size=batch_size)
        self._version_dir = version_dir

    def load_model(self) -> Any:
        """Returns the loaded version."""
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  Registers the operations.

        return tf.saved_model.load(self._version_dir)

    def run_inference(
        self, batch: Sequence[Row], model: Any, inference_args: dict[str, Any] | None = None
    ) -> Iterable[Row]:
        """Returns a prediction for each row."""
        import tensorflow as tf

        signature = model.signatures["serving_default"]
        names = list(signature.structured_input_signature[1])
        try:
            columns = {name: [row[name] for row in batch] for name in names}
            outputs = signature(**{n: _tensor(column) for n, column in columns.items()})
        except (KeyError, ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
            if len(batch) > 1:
                return [self.run_inference([row], model)[0] for row in batch]  # type: ignore[index]
            what = f"expected {', '.join(names)}" if isinstance(error, KeyError) else str(error)
            return [{"error": what, "row": batch[0]}]
        arrays = {name: x.numpy() for name, x in outputs.items()}
        ids = [{"id": row["id"]} if "id" in row else {} for row in batch]
        return [own | row_of(arrays, number) for number, own in enumerate(ids)]

    def get_metrics_namespace(self) -> str:
        """Name of Beam's metrics of it."""
        return "xlnet"


def predict_in_bulk(
    version_dir: str,
    pattern: str,
    output: str,
    batch_size: int = 64,
    beam_options: Sequence[str] = (),
) -> dict[str, int]:
    """Predicts for files of JSON lines.

    Args:
      version_dir: directory of a version that `xlnet export` wrote.
      pattern: of the files, e.g. `gs://bucket/texts-*.jsonl`.
      output: prefix of the files with predictions; those with `-wrong` in their names hold rows
        that could not be used.
      batch_size: see `SavedModelHandler`.
      beam_options: command-line options of Beam and its runner.

    Returns:
      rows: predictions that were written.
      wrong_rows: rows that could not be used.

    Raises:
      DataError: there is no exported version.
    """
    if not os.path.exists(os.path.join(version_dir, "saved_model.pb")):
        raise DataError(f"no exported model at {version_dir!r}: expected a version's directory")
    pipeline = beam.Pipeline(options=PipelineOptions(list(beam_options)))
    lines = pipeline | "Read" >> ReadFromText(pattern)
    rows = lines | "Parse" >> beam.Map(_parse).with_outputs(_WRONG, main="rows")
    handler = SavedModelHandler(version_dir, batch_size)
    predictions = rows["rows"] | "Predict" >> RunInference(handler)
    split = predictions | "Split" >> beam.Map(_tagged).with_outputs(_WRONG, main="rows")
    wrong = (rows[_WRONG], split[_WRONG]) | "All wrong rows" >> beam.Flatten()
    for name, part in (("", split["rows"]), ("-wrong", wrong)):
        _ = (
            part
            | f"Json{name}" >> beam.Map(lambda row: json.dumps(row, ensure_ascii=False))
            | f"Write{name}" >> WriteToText(output + name, ".jsonl")
        )
    result = pipeline.run()
    result.wait_until_finish()
    counters = result.metrics().query()["counters"]  # One for each step that counts.
    return {
        name: sum(c.committed for c in counters if c.key.metric.name == name)
        for name in ("rows", "wrong_rows")
    }


def _parse(line: str) -> Any:
    try:
        row = json.loads(line)
        if isinstance(row, dict):
            return row
    except ValueError:
        pass
    return _wrong({"error": "expected a JSON object", "row": line})


def _tagged(prediction: Row) -> Any:
    if "error" in prediction:
        return _wrong(prediction)
    beam.metrics.Metrics.counter("xlnet_bulk", "rows").inc()
    return prediction


def _wrong(row: Row) -> Any:
    beam.metrics.Metrics.counter("xlnet_bulk", "wrong_rows").inc()
    return beam.pvalue.TaggedOutput(_WRONG, row)


def _tensor(column: list[Any]) -> Any:
    """String [B], or [B, most] where rows hold lists."""
    import tensorflow as tf

    if isinstance(column[0], list):
        most = max(map(len, column))
        column = [row + [""] * (most - len(row)) for row in column]
    return tf.constant(column, tf.string)
