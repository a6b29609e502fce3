"""Export of a model directory to a SavedModel version for TF Serving (`xlnet export`)."""

from __future__ import annotations

import glob
import hashlib
import os
import pathlib
import shlex
import shutil
import sys
import uuid
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet import __version__
from official.xlnet.checkpoints.any_format import load_config, weights_checksum
from official.xlnet.data.graph_names import COLUMNS_FILE
from official.xlnet.errors import require_data
from official.xlnet.files.json_files import json_text, read_record, write_json
from official.xlnet.files.locks import only_writer
from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.modeling.kernels.product_type import matmul_precision
from official.xlnet.modeling.kernels.tensorflow_internals import without_custom_gradients
from official.xlnet.runtime.progress import Progress
from official.xlnet.serving.factory import create_service
from official.xlnet.serving.samples import served_name, write_samples, write_warmup
from official.xlnet.serving.services.base import Service
from official.xlnet.serving.version_checksums import has_checksums, write_checksums

EXPORT_FILE = os.path.join("assets.extra", "export.json")  # Of a version: how it was made.
_INCOMPLETE = ".incomplete-"  # Names of versions that are being written begin so.


def export_model(
    model: str,
    output: str,
    version: int | None,
    *,
    head: str | None,
    buckets: Sequence[int],
    max_length: int | None,
    weights: str,
    text_columns: Sequence[str],
    max_characters: int,
    max_windows: int,
    products: str | None,
) -> dict[str, Any]:
    """Exports a model; see `official.xlnet.api.export.export`."""
    options = {
        "head": head,
        "buckets": buckets,
        "max_length": max_length,
        "weights": weights,
        "text_columns": text_columns,
        "max_characters": max_characters,
        "max_windows": max_windows,
        "products": products,
    }
    made_from = [weights_checksum(model), load_config(model).as_dict(), options, __version__]
    checksum = hashlib.sha256(json_text(made_from).encode()).hexdigest()
    path = os.path.join(output, str(version))
    if version is not None and os.path.exists(path):
        record = read_record(os.path.join(path, EXPORT_FILE))
        is_same = record.get("made_from") == checksum and has_checksums(path)
        require_data(is_same, path, "a new version, or the same one", "one that exists")
        return _with_size(path, record["result"])
    with only_writer(output), matmul_precision(products):
        for left in glob.glob(os.path.join(glob.escape(output), f"{_INCOMPLETE}*")):
            shutil.rmtree(left)  # Remains of an export that was killed.
        service = create_service(
            model, head, buckets, max_length, weights, text_columns, max_characters, max_windows
        )
        result = write_version(service, output, version, checksum)
    if sys.stderr is not None and sys.stderr.isatty():
        for line in commands_to_try(output):
            Progress(sys.stderr).log_line(line)
    return result


def commands_to_try(output: str) -> tuple[str, str]:
    """Returns the commands that serve an export here and send it a file, a line each.

    Args:
      output: base path of the model.
    """
    name, path = served_name(output), shlex.quote(output)
    serve = f"cd {path} && docker compose up"
    if os.path.isfile("tools/serving_stand_in.py"):  # In a checkout of this project.
        stand_in = f"python -m tools.serving_stand_in --base_path={path} --name={name}"
        serve = f"{stand_in}  # a stand-in for TF Serving, to try it"
    ask = f"xlnet predict --endpoint=localhost:8500 --name={name}"
    return serve, f"{ask} --input=FILE --output=FILE.jsonl"


def write_version(
    service: Service, output: str, version: int | None = None, made_from: str = ""
) -> dict[str, Any]:
    """Writes a service as a SavedModel version; see `export`.

    Args:
      service: the service.
      output: base path of the model on TF Serving; created if missing.
      version: version number. None: one more than the latest.
      made_from: checksum of what the version is made from, for its record.
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
        inputs: dict[str, Any] = {"token_ids": service.token_types, "examples": ["examples"]}
        inputs |= service.texts_of_signatures
        result = {
            "signatures": {
                name: {
                    "inputs": sorted(inputs[name]),
                    "outputs": sorted(function.structured_outputs),
                }
                for name, function in signatures.items()
            },
            "columns": service.columns,
            "buckets": list(service.settings.lengths),
            "warmup_requests": warmup_requests,
        }
        write_json(os.path.join(temporary, EXPORT_FILE), {"made_from": made_from, "result": result})
        write_checksums(temporary)
        path = os.path.join(output, str(version or 1 + max(versions(output), default=0)))
        write_samples(output, service)
        os.rename(temporary, path)  # Last: a version that is there has everything.
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return _with_size(path, result)


def _with_size(path: str, result: dict[str, Any]) -> dict[str, Any]:
    size = sum(x.stat().st_size for x in pathlib.Path(path).rglob("*") if x.is_file())
    return {"path": path, "bytes": size, **result}


def versions(output: str) -> Sequence[int]:
    """Returns the version numbers in a base path, ascending."""
    return sorted(int(name) for name in os.listdir(output) if name.isascii() and name.isdigit())
