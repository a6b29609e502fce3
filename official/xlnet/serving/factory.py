"""Creation of the service to export from a model directory."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
from official.xlnet.checkpoints.restoring import load_encoder, restore
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import SERVICES
from official.xlnet.data.graph_names import graph_names
from official.xlnet.errors import require_config
from official.xlnet.inference.language_model import loaded, window_length
from official.xlnet.inference.network.length_buckets import default_lengths
from official.xlnet.modeling.models.task_parts import TaskModule, TaskParts
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.serving.services.base import ExportSettings, Service
from official.xlnet.serving.services.pretrained import EncoderService, LanguageModelService
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer


def create_service(
    model_dir: str,
    head: str | None = None,
    lengths: Sequence[int] = (),
    max_length: int | None = None,
    weights: str = "float32",
    text_columns: Sequence[str] = (),
    max_characters: int = ExportSettings.max_characters,
    max_windows: int = ExportSettings.max_windows,
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
      weights: storage dtype of matrices; see `ExportSettings`.
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
    texts = _text_inputs(config, head, text_columns)
    num_special = texts.num_texts + 1  # A SEP after each text, and CLS.
    shortest = max(1 + num_special, config.task.shortest_input)
    if not max_length:
        lengths_in_training = {
            "task": config.task.max_length,
            "encoder": config.data.seq_len,
            "lm": window_length(config),
        }
        longest = lengths_in_training[head]
    else:
        longest = max_length
        if lengths:
            expected = f"{max_length} as the last bucket"
            require_config(lengths[-1] == max_length, "buckets", expected, lengths[-1])
    settings = ExportSettings(
        lengths=tuple(lengths) or default_lengths(longest, shortest),
        weights=weights,
        text_columns=texts.names,
        columns=texts.columns,
        texts_of_subtasks=texts.of_subtasks,
        max_characters=max_characters,
        max_windows=max_windows,
    )
    settings.check(shortest)
    graph_tokenizer = GraphTokenizer(tokenizer)
    if head == "encoder":
        return EncoderService(load_encoder(model_dir), graph_tokenizer, settings)
    if head == "lm":
        language_model, _ = loaded(model_dir)
        pieces = [tokenizer.id_to_piece(i) for i in range(tokenizer.vocab_size)]
        return LanguageModelService(language_model, pieces, graph_tokenizer, settings)
    model = TaskModule(config)
    restore(model_dir, encoder=model.encoder, head=model.head)
    service = task_service(model, graph_tokenizer, settings)
    names, chosen = ", ".join(service.text_names), ", ".join(text_columns)
    require_config(chosen in ("", names), "text columns", f"{names}, as the task says", chosen)
    return service


def task_service(model: TaskParts, tokenizer: GraphTokenizer, settings: ExportSettings) -> Service:
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


@dataclasses.dataclass(frozen=True)
class _TextInputs:
    """The text inputs of a service; see `ExportSettings`.

    Attributes:
      names: names of the inputs.
      columns: the columns of the data that they stand for.
      of_subtasks: for several tasks, names of the inputs of each.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    of_subtasks: tuple[tuple[str, ...], ...] = ()

    @property
    def num_texts(self) -> int:
        """Largest number of texts in one sequence."""
        return max(map(len, self.of_subtasks or (self.names,)))


def _text_inputs(config: XLNetConfig, head: str, chosen_names: Sequence[str]) -> _TextInputs:
    """Returns the text inputs: the columns of the task, or `text`.

    Args:
      config: configuration of the model.
      head: see `create_service`.
      chosen_names: names of the inputs; empty: the names of the columns, made valid and distinct.

    Raises:
      ConfigError: the chosen names are not valid, or of another number than the task's columns.
    """
    num_names = len(chosen_names)
    is_one = head != "lm" or num_names <= 1
    require_config(is_one, "text columns", "one for a language model", num_names)
    are_valid = graph_names(chosen_names) == tuple(chosen_names)
    require_config(
        are_valid and len(set(chosen_names)) == num_names,
        "text columns",
        "different names that begin with a letter, of letters, digits and underscores, none "
        "of which is a keyword of Python",
        ", ".join(chosen_names),
    )
    columns_of_parts: dict[str, tuple[str, ...]] = {"": ()}
    if head == "task":
        columns_of_parts = config.task.text_columns_of_parts()
    if chosen_names:
        return _chosen_inputs(columns_of_parts, tuple(chosen_names))
    return _named_by_columns(columns_of_parts)


def _chosen_inputs(
    columns_of_parts: dict[str, tuple[str, ...]], chosen_names: tuple[str, ...]
) -> _TextInputs:
    """The text inputs with the names that the user has chosen."""
    for part, columns in columns_of_parts.items():
        expected = f"{len(columns)}, for {', '.join(columns)}"
        if part:
            expected += f" of {part}"
        fits = len(columns) in (0, len(chosen_names))
        require_config(fits, "text columns", expected, ", ".join(chosen_names))
    columns = ()
    if len(columns_of_parts) == 1:
        (columns,) = columns_of_parts.values()
    return _TextInputs(chosen_names, columns or chosen_names)


def _named_by_columns(columns_of_parts: dict[str, tuple[str, ...]]) -> _TextInputs:
    """The text inputs with the names of the columns, made valid and distinct."""
    columns_of_each = [columns or ("text",) for columns in columns_of_parts.values()]
    if len(columns_of_each) == 1:
        (columns,) = columns_of_each
        return _TextInputs(graph_names(columns), columns)
    columns = tuple(dict.fromkeys(itertools.chain(*columns_of_each)))
    name_of = dict(zip(columns, graph_names(columns), strict=True))
    of_subtasks = []
    for columns_of_subtask in columns_of_each:
        of_subtasks.append(tuple(name_of[column] for column in columns_of_subtask))
    return _TextInputs(tuple(name_of.values()), columns, tuple(of_subtasks))
