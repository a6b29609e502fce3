"""Export of a model directory to a SavedModel version for TF Serving (`xlnet export`)."""

from __future__ import annotations

import glob
import os
import pathlib
import shutil
import uuid
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.data.graph_names import COLUMNS_FILE
from official.xlnet.errors import DataError
from official.xlnet.files.arguments import checks_arguments, require_apart
from official.xlnet.files.checksums import write_checksums
from official.xlnet.files.json_files import write_json
from official.xlnet.files.locks import only_writer
from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.modeling.kernels.tensorflow_internals import without_custom_gradients
from official.xlnet.serving.factory import create_service
from official.xlnet.serving.samples import write_samples, write_warmup
from official.xlnet.serving.services.base import Service, Settings

_INCOMPLETE = ".incomplete-"  # Names of versions that are being written begin so.


@checks_arguments(
    *("model_dir", "output"),
    version=1,
    max_length=1,
    max_characters=1,
    max_windows=1,
)
def export(
    model_dir: str,
    output: str,
    version: int | None = None,
    head: str | None = None,
    lengths: Sequence[int] = (),
    max_length: int | None = None,
    weights: str = "float32",
    text_columns: Sequence[str] = (),
    max_characters: int = Settings.max_characters,
    max_windows: int = Settings.max_windows,
) -> dict[str, Any]:
    """Exports a model directory as the SavedModel `OUTPUT/<version>/`.

    The version is written atomically, by a rename; TF Serving ignores the temporary directory, as
    its name is not a number. Example requests and server configuration are written to `output`.

    Args:
      model_dir: model directory to export.
      output: base path of the model on TF Serving; created if missing.
      version: version number. None: one more than the latest.
      head: `task`, `encoder` (embeddings) or `lm` (log-likelihoods); this and what follows: see
        `create_service`.
      lengths: bucket lengths that inputs are padded to, in tokens, ascending.
      max_length: maximum input length in tokens.
      weights: storage dtype of matrices.
      text_columns: names of the text inputs.
      max_characters: maximum length of a text in code points.
      max_windows: maximum number of windows of a text.

    Returns:
      A dictionary with
        path: directory of the version.
        signatures: {name: {"inputs": [...], "outputs": [...]}}.
        columns: {text input: column of the training data}; in `COLUMNS_FILE` of the version, too.
        bytes: size of the version.
        buckets: lengths that inputs are padded to, in tokens.
        warmup_requests: number of warmup requests.

    Raises:
      ConfigError: the settings do not fit the model; see `create_service`.
      DataError: the version number is invalid or exists, the model cannot be read, or its outputs
        for an example are NaN or infinite.
    """
    if version is not None and os.path.exists(os.path.join(output, str(version))):
        raise DataError(f"{os.path.join(output, str(version))} exists: expected a new version")
    require_apart("output", output, [model_dir])
    with only_writer(output):
        for left in glob.glob(os.path.join(glob.escape(output), f"{_INCOMPLETE}*")):
            shutil.rmtree(left)  # By an export that was killed.
        service = create_service(
            model_dir, head, lengths, max_length, weights, text_columns, max_characters, max_windows
        )
        return write_version(service, output, version)


def write_version(service: Service, output: str, version: int | None = None) -> dict[str, Any]:
    """Writes a service as a SavedModel version; see `export`.

    Args:
      service: the service.
      output: base path of the model on TF Serving; created if missing.
      version: version number. None: one more than the latest.
    """
    os.makedirs(output, exist_ok=True)
    temporary = os.path.join(output, f"{_INCOMPLETE}{uuid.uuid4().hex}")
    signatures = without_custom_gradients(service.signatures)
    samples = service.sample_texts(3)
    finite(signatures["serving_default"](**{name: tf.constant(x) for name, x in samples.items()}))
    try:
        tf.saved_model.save(
            service,
            temporary,
            signatures,
            tf.saved_model.SaveOptions(experimental_custom_gradients=False),
        )
        warmup_requests = write_warmup(temporary, service)
        write_json(os.path.join(temporary, COLUMNS_FILE), service.columns)
        write_checksums(temporary)
        path = os.path.join(output, str(version or 1 + max(versions(output), default=0)))
        write_samples(output, service)
        os.rename(temporary, path)  # Last: a version that is there has everything.
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    inputs: dict[str, Any] = {"token_ids": service.token_types, "examples": ["examples"]}
    inputs |= service.texts_of_signatures
    return {
        "path": path,
        "signatures": {
            name: {"inputs": sorted(inputs[name]), "outputs": sorted(function.structured_outputs)}
            for name, function in signatures.items()
        },
        "columns": service.columns,
        "bytes": sum(x.stat().st_size for x in pathlib.Path(path).rglob("*") if x.is_file()),
        "buckets": list(service.settings.lengths),
        "warmup_requests": warmup_requests,
    }


def versions(output: str) -> Sequence[int]:
    """Returns the version numbers in a base path, ascending."""
    return sorted(int(name) for name in os.listdir(output) if name.isascii() and name.isdigit())
