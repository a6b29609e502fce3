"""Creation of the service to export from a model directory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from official.xlnet.checkpoints import model_directory
from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import SERVICES
from official.xlnet.data.graph_names import graph_names
from official.xlnet.errors import require_config
from official.xlnet.inference.language_model import loaded, window_length
from official.xlnet.inference.network.length_buckets import default_lengths
from official.xlnet.modeling.models.task_parts import TaskModule, TaskParts
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.serving.services.base import Service, Settings
from official.xlnet.serving.services.pretrained import EncoderService, LanguageModelService
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer


def create_service(
    model_dir: str,
    head: str | None = None,
    lengths: Sequence[int] = (),
    max_length: int | None = None,
    weights: str = "float32",
    text_columns: Sequence[str] = (),
    max_characters: int = Settings.max_characters,
    max_windows: int = Settings.max_windows,
) -> Service:
    """Creates the service of a model directory.

    Args:
      model_dir: the model directory.
      head: `task`, `encoder` (embeddings) or `lm` (log-likelihoods). None: `task` for a
        fine-tuned model, `encoder` for any other.
      lengths: bucket lengths that inputs are padded to, in tokens, ascending. Empty: powers of
        two and `max_length`.
      max_length: maximum input length in tokens. None: `task.max_length`; without a task
        `data.seq_len`, or `data.reuse_len` for the LM head of a causal model.
      weights: storage dtype of matrices; see `Settings`.
      text_columns: names of the text inputs, if the task does not give them theirs. Empty: the
        names of the task's columns (`graph_names`), or `text`.
      max_characters: maximum length of a text in code points; longer ones are rejected.
      max_windows: maximum number of windows of a text; longer ones are rejected.

    Returns:
      The service.

    Raises:
      ConfigError: the settings are invalid or do not fit the model.
      DataError: the model directory cannot be read.
    """
    config = load_config(model_dir)
    head = head or ("task" if config.task.name else "encoder")
    require_config(
        head != "task" or bool(config.task.name),
        model_dir,
        "a fine-tuned model",
        "one without a task",
    )
    tokenizer = load_tokenizer(model_dir)
    config.training.precision = "float32"
    keras.mixed_precision.set_global_policy("float32")
    task = config.task
    trained = {"task": task.max_length, "encoder": config.data.seq_len, "lm": window_length(config)}
    longest = max_length or trained[head]
    columns = _text_columns(config, head, text_columns)
    texts_of_each = columns.get("texts_of_subtasks") or (columns["text_columns"],)
    shortest = max(2 + max(map(len, texts_of_each)), task.shortest_input)
    if lengths and max_length:
        expected = f"{max_length} as the last bucket"
        require_config(lengths[-1] == max_length, "buckets", expected, lengths[-1])
    settings = Settings(
        lengths=tuple(lengths) or default_lengths(longest, shortest),
        weights=weights,
        max_characters=max_characters,
        max_windows=max_windows,
        **columns,
    )
    settings.check(shortest)
    graph_tokenizer = GraphTokenizer(tokenizer)
    if head == "encoder":
        return EncoderService(model_directory.load_encoder(model_dir), graph_tokenizer, settings)
    if head == "lm":
        language_model, _ = loaded(model_dir)
        pieces = [tokenizer.id_to_piece(i) for i in range(tokenizer.vocab_size)]
        return LanguageModelService(language_model, pieces, graph_tokenizer, settings)
    model = TaskModule(config)
    model_directory.restore(model_dir, encoder=model.encoder, head=model.head)
    service = task_service(model, graph_tokenizer, settings)
    names, chosen = ", ".join(service.text_names), ", ".join(text_columns)
    require_config(chosen in ("", names), "text columns", f"{names}, as the task says", chosen)
    return service


def task_service(model: TaskParts, tokenizer: GraphTokenizer, settings: Settings) -> Service:
    """Creates the service of a fine-tuned model.

    Args:
      model: the model.
      tokenizer: tokenizer of the model, as TensorFlow operations.
      settings: export settings.

    Raises:
      ConfigError: no service is registered for the task.
    """
    name = model.config.task.name
    require_config(
        name in SERVICES.names(),
        "task.name",
        f"a task that can be exported, one of {', '.join(SERVICES.names())}",
        f"{name!r}; --head=encoder exports the encoder alone",
    )
    return SERVICES[name](model, tokenizer, settings)


def _text_columns(config: XLNetConfig, head: str, chosen: Sequence[str]) -> dict[str, Any]:
    """Returns the text inputs, as arguments of `Settings`: the columns of the task, or `text`.

    Args:
      config: configuration of the model.
      head: see `create_service`.
      chosen: names of the inputs; empty: the names of the columns, made valid and distinct.

    Raises:
      ConfigError: the chosen names are not valid, or of another number than the task's columns.
    """
    require_config(
        head != "lm" or len(chosen) <= 1, "text columns", "one for a language model", len(chosen)
    )
    require_config(
        graph_names(chosen) == tuple(chosen) and len(set(chosen)) == len(chosen),
        "text columns",
        "different names that begin with a letter, of letters, digits and underscores, none "
        "of which is a keyword of Python",
        ", ".join(chosen),
    )
    by_name = config.task.columns_of_parts() if head == "task" else {"": ()}
    names, of_each = list(by_name), list(by_name.values())
    if chosen:
        for name, columns in zip(names, of_each, strict=True):
            require_config(
                len(columns) in (0, len(chosen)),
                "text columns",
                f"{len(columns)}, for {', '.join(columns)}{f' of {name}' if name else ''}",
                ", ".join(chosen),
            )
        columns = of_each[0] if len(names) == 1 and of_each[0] else tuple(chosen)
        return {"text_columns": tuple(chosen), "columns": columns}
    of_each = [columns or ("text",) for columns in of_each]
    columns = of_each[0] if len(names) == 1 else tuple(dict.fromkeys(itertools.chain(*of_each)))
    inputs = dict(zip(columns, graph_names(columns), strict=True))
    return {
        "text_columns": tuple(inputs[column] for column in columns),
        "columns": columns,
        "texts_of_subtasks": tuple(tuple(inputs[column] for column in each) for each in of_each)
        if len(names) > 1
        else (),
    }
