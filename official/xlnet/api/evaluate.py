"""`evaluate`: the loss of a model on held-out text, or the metrics of its task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from official.xlnet.api.verbs import TRAIN, register_verb
from official.xlnet.configs.choices import PRODUCTS
from official.xlnet.configs.experiment import require_model
from official.xlnet.configs.registry import BREAKDOWNS
from official.xlnet.data.lost_rows import MAX_LOST, MaxLost
from official.xlnet.files import file_system
from official.xlnet.files.arguments import AnyPath, OutputDirectory, Path
from official.xlnet.files.public import public
from official.xlnet.files.registry import NameIn
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb("evaluate", group=TRAIN)
@public()
def evaluate(
    model: AnyPath | Sequence[AnyPath],
    data: Path | Iterable[Any],
    split: Annotated[str, OneOf(("heldout", "train"))] = "heldout",
    mem_len: Annotated[int, Range(0)] | None = None,
    output: OutputDirectory | None = None,
    max_lost: MaxLost = MAX_LOST,
    follow: bool = False,
    products: Annotated[str, OneOf(PRODUCTS)] | None = None,
    by: Annotated[str, NameIn(BREAKDOWNS)] | None = None,
) -> dict[str, Any]:
    """Evaluates a model: held-out loss and perplexity, or task metrics.

    A pre-trained model is evaluated on a data set of `xlnet prepare`. The loss is in nats per
    target; unigram_loss is the loss of a unigram baseline. A fine-tuned model is evaluated on
    labelled data of its task; with an output, predictions, metrics, a plot and report.html are
    written.

    Args:
      model: a model directory, HF folder or TF1 release; or several fine-tuned models, whose
        predictions are combined (an ensemble).
      data: data set directory of `xlnet prepare`, or labelled examples of the model's task: a file,
        in Python also a table or a list of tuples, see `read_task`.
      split: split of a data set.
      mem_len: memory length in tokens, for pre-trained models, which may be longer than in
        training; default: as in training.
      output: directory for predictions, metrics, a plot and report.html of a task; default: none.
      max_lost: maximum fraction of bad rows to skip; above it, the command fails.
      follow: evaluate each new checkpoint of a run, alongside training, until its last step; output
        gets the metrics for TensorBoard.
      products: type of the operands of matrix products, see `matmul_precision`; default: float32.
      by: also the loss of a pre-trained model by this property of its targets, with a picture in
        output; default: none.

    Returns:
      For a data set `loss`, `unigram_loss`, `perplexity` and `targets`; for a task its metrics,
      and in `baselines` those of a run that is reranked.
      With `follow` those of the last checkpoint.

    Raises:
      ConfigError: the configuration of the model is invalid or does not match the data set, or
        `output` is an input or the directory of a run.
      DataError: the model or the data cannot be read, or more than `max_lost` of the rows of a
        file are unusable.

    Example:
      $ xlnet evaluate --model=runs/model --data=runs/data

      >>> evaluate("runs/task", [("A fine film.", "good"), ("Dull.", "bad")])["accuracy"]
      1.0
    """
    models = [model] if isinstance(model, str) else model
    for path in models:
        if not follow and not file_system.is_remote(path):  # A run that starts may have none yet.
            require_model(path)
    with loading_tensorflow():
        from official.xlnet.jobs.prediction import evaluate_models
    return evaluate_models(
        models,
        data,
        split=split,
        mem_len=mem_len,
        output=output,
        max_lost=max_lost,
        follow=follow,
        products=products,
        by=by,
    )
