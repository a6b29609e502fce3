"""`predict`: predictions for the rows of a file, by models here or on TF Serving."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model
from official.xlnet.api.verbs import USE, register_verb
from official.xlnet.configs.choices import PRODUCTS
from official.xlnet.configs.validation import require
from official.xlnet.errors import require_config
from official.xlnet.files.arguments import OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb("predict", group=USE)
@public()
def predict_file(
    input: Path,
    output: OutputFile,
    model: Sequence[Model] = (),
    endpoint: str | None = None,
    name: str = "model",
    signature: str = "serving_default",
    task: str | None = None,
    batch_size: Annotated[int, Range(1, 65_536)] = 32,
    timeout: Annotated[float, Range(0.001, 100_000)] = 60.0,
    retries: Annotated[int, Range(0, 1000)] = 5,
    shard: str | None = None,
    products: Annotated[str, OneOf(PRODUCTS)] | None = None,
) -> dict[str, Any]:
    """Predicts with a fine-tuned model: locally, or on a TF Serving endpoint.

    Reads a file of any size and writes predictions as JSON lines, in order. To resume a killed
    command with local models, run it again.

    Args:
      input: input file, folder or tfds:NAME:SPLIT; - for standard input, of lines of text or of
        JSON objects.
      output: output file (JSON lines); - for standard output.
      model: model directory, for local prediction; repeat it to combine the predictions of several
        models (an ensemble).
      endpoint: TF Serving endpoint: host:port of gRPC.
      name: name of the model on the server.
      signature: serving signature.
      task: task type or data set of the served model; default: by the signature.
      batch_size: rows of a request to the server.
      timeout: timeout per attempt, in seconds.
      retries: maximum number of retries of a request.
      shard: part of the rows to predict, 3/16 for the third of sixteen; default: all.
      products: type of the operands of matrix products, see `matmul_precision`; default: float32.

    Returns:
      `rows`, `rows_per_second` and counts of truncated inputs.

    Example:
      $ xlnet predict --model=runs/sst2 --input=new.tsv --output=new.jsonl
    """
    require_config(
        bool(model) != bool(endpoint), "model and endpoint", "one of them", "both or none"
    )
    if endpoint:
        _require_unused({"products": products}, "model", "endpoint")
    else:
        endpoint_options: dict[str, Any] = {
            "name": name,
            "signature": signature,
            "task": task,
            "timeout": timeout,
            "retries": retries,
        }
        _require_unused(endpoint_options, "endpoint", "model")
    from official.xlnet.checkpoints.any_format import load_config

    for path in model:
        is_tuned = bool(load_config(path).task.name)
        require_config(is_tuned, path, "a fine-tuned model", "one without a task")
    with loading_tensorflow():
        from official.xlnet.jobs import file_prediction
    if endpoint:
        return file_prediction.predict_on_server(
            input,
            output,
            endpoint,
            name=name,
            signature=signature,
            task=task,
            batch_size=batch_size,
            timeout=timeout,
            retries=retries,
            shard=shard,
        )
    call = file_prediction.PredictionCall(
        model=model, input=input, output=output, shard=shard, products=products
    )
    return file_prediction.predict_here(call)


def _require_unused(options: dict[str, Any], reader: str, used: str) -> None:
    """Raises `ConfigError` if an option is given that the other of model and endpoint reads."""
    parameters = inspect.signature(predict_file).parameters
    for name, value in options.items():
        require(value == parameters[name].default, name, f"{reader}, which reads it", used)
