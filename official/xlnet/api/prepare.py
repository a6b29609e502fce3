"""`prepare`: text in, a data set of pre-training records out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from data_prep.record_settings import Settings
from data_prep.settings import OnBadUtf8
from official.xlnet.api.arguments import Override
from official.xlnet.api.verbs import PREPARE, register_verb
from official.xlnet.configs.experiment import XLNetConfig, recipe_path
from official.xlnet.data.lost_rows import MaxLost
from official.xlnet.files import file_system
from official.xlnet.files.arguments import (
    COMMAS,
    IN_PYTHON,
    AnyOutputDirectory,
    AnyPath,
    DataFrame,
    Path,
)
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range


def _with_targets(counts: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the targets that the configuration samples, for records on this machine.

    `targets_per_window` is the mean number of tokens that it predicts in a window, and
    `windows_without_targets` the share of windows in which it predicts none.
    """
    if file_system.is_remote(arguments["output"]):  # Only a copy of all records could be read.
        return counts
    from official.xlnet.checkpoints.any_format import load_config
    from official.xlnet.training.target_counts import targets_per_window

    config = load_config(recipe_path(arguments["config"]), arguments.get("set", ()))
    return counts | targets_per_window(config, arguments["output"])


@register_verb("prepare", group=PREPARE, report=_with_targets)
@public(inputs="input", output_dir="output", overrides="set", heldout_inputs="heldout_input")
def prepare(
    input: AnyPath | Annotated[Sequence[AnyPath], COMMAS] | DataFrame,
    vocab: AnyPath,
    config: Path | XLNetConfig,
    output: AnyOutputDirectory,
    *,
    set: Sequence[Override] = (),
    num_workers: Annotated[int, Range(1, 1024)] | None = None,
    progress: bool = True,
    runner: str | None = None,
    beam_options: str | Annotated[Sequence[str], IN_PYTHON] | None = None,
    format: str = Settings.format,
    text_field: str = Settings.text_field,
    on_bad_utf8: OnBadUtf8 = Settings.on_bad_utf8,
    document_start: str = Settings.document_start,
    max_lost: MaxLost = Settings.max_lost,
    min_words: Annotated[int, Range(0)] = Settings.min_words,
    drop_low_quality: bool = Settings.drop_low_quality,
    drop_duplicates: bool = Settings.drop_duplicates,
    allow_fewer_lanes: bool = Settings.allow_fewer_lanes,
    compress: bool = Settings.compress,
    heldout_input: AnyPath | Annotated[Sequence[AnyPath], COMMAS] | DataFrame = (),
) -> dict[str, Any]:
    r"""Converts raw text to a data set of pre-training records.

    To resume an interrupted run, run the same command again.

    Args:
      input: files, glob patterns or tfds:NAME:SPLIT, separated by commas; in Python also a pandas
        data frame with a column `text` (texts in Python: `pandas.DataFrame({"text": texts})`).
      vocab: vocabulary, spiece.model, or a directory that contains it.
      config: configuration: YAML file or model directory; uses its section `data`.
      output: directory of the data set to create, or to resume.
      set: configuration override `key=value`, see `XLNetConfig.load`; may be repeated.
      num_workers: number of worker processes; default: the number of CPU cores.
      progress: whether to show progress bars, on a terminal or in a notebook.
      runner: Apache Beam runner, e.g. DaskRunner; default: local processes.
      beam_options: command-line options of Beam and its runner, e.g.
        `--dask_client_address=tcp://scheduler:8786`; in Python also a list of them.
      format: format of the input files, see docs/data_preparation.md, or one of --import; `auto`
        detects it per file.
      text_field: field, column or feature that contains the text.
      on_bad_utf8: handling of invalid UTF-8: `error`, or `replace` by U+FFFD.
      document_start: regular expression of the beginning of a document's first line, in plain
        text; default: blank lines separate documents.
      max_lost: maximum fraction of bad records to skip; above it, the command fails.
      min_words: drop documents with fewer words.
      drop_low_quality: drop documents that fail the quality heuristics.
      drop_duplicates: drop exact duplicates of documents.
      allow_fewer_lanes: write fewer lanes if the corpus is too small for data.num_lanes.
      compress: compress record files with gzip.
      heldout_input: text to hold out, as input; copies of its documents are dropped from training;
        default: a share of the corpus, data.heldout_fraction.

    Returns:
      A dictionary of `documents`, `tokens`, `windows`, `dropped_tokens` and `heldout_windows`;
      counts of text read, dropped and repaired; and, unless the data set was already complete or
      Beam made it, `resumed_shards` and `resumed_lanes`: parts that an earlier run had completed.
      `unknown_share` is the share of `<unk>` in all tokens.

    Raises:
      DataError: the text, vocabulary, settings, output directory or Beam options are invalid.
      ConfigError: `model.vocab_size` is smaller than the vocabulary.
      OSError: a file cannot be read or written, e.g. because the disk is full.

    Example:
      $ xlnet prepare --input='corpus/*.txt' --vocab=runs/vocab --config=configs/tiny.yaml \
          --output=runs/data

      >>> prepare(["corpus/*.txt"], "runs/vocab", "configs/tiny.yaml", "runs/data")["documents"]
      1832
    """
    if isinstance(config, str):
        from official.xlnet.checkpoints.any_format import load_config

        config = load_config(recipe_path(config), set)
    elif set:
        config = config.changed(set)
    settings = Settings.from_config(
        config.data,
        format=format,
        text_field=text_field,
        on_bad_utf8=on_bad_utf8,
        document_start=document_start,
        max_lost=max_lost,
        min_words=min_words,
        drop_low_quality=drop_low_quality,
        drop_duplicates=drop_duplicates,
        allow_fewer_lanes=allow_fewer_lanes,
        compress=compress,
    )
    from data_prep.pipelines.prepare import prepare_records

    return prepare_records(
        input,
        vocab,
        config,
        settings,
        output,
        num_workers=num_workers,
        progress=progress,
        runner=runner,
        beam_options=beam_options,
        heldout_input=heldout_input,
    )
