"""Input pipeline for pre-training: `pretraining_dataset`.

`lane_schedule` maps (step, batch row) to the window to read. The batch is thus a function of the
step alone, so a run can be resumed exactly: the pipeline starts at the windows of `start_step`.

The pipeline is deterministic. Prediction targets and factorization orders are sampled on the
device, by `official.xlnet.modeling.objectives`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Annotated

import tensorflow as tf

from official.xlnet.configs.data import TEXT_SETTINGS
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.validation import Range, require
from official.xlnet.data.file_names import MANIFEST_FILE
from official.xlnet.data.first_windows import first_lanes, first_windows
from official.xlnet.data.lane_schedule import LaneSchedule, Position
from official.xlnet.data.record_features import (
    load_data_tokenizer,
    window_features,
)
from official.xlnet.data.record_files.checksums import check_files
from official.xlnet.data.record_files.scheduled_rows import records_of_rows, with_schedule
from official.xlnet.data.schema import Manifest, SplitManifest
from official.xlnet.errors import ConfigError, DataError, require_data
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.runtime.cores import require_open_files
from official.xlnet.tokenization.vocabulary_file import read_vocabulary
from official.xlnet.tokenization.word_starts import word_starts

# Checksums of larger data sets are verified only after a read error; see `reading_errors`.
_CHECKSUM_LIMIT_BYTES = 1 << 30


class Records:
    """A data set of `xlnet prepare`, opened once.

    Args:
      path: directory of the data set.
      config: see `pretraining_dataset`.
      vocab: see `pretraining_dataset`.
      phrases: see `pretraining_dataset`.

    Attributes:
      path: directory of the data set.
      manifest: its manifest.

    Raises:
      DataError: the data set is missing, or does not match the configuration or the vocabulary.
    """

    def __init__(
        self,
        path: str,
        config: XLNetConfig | None = None,
        vocab: str | None = None,
        phrases: Sequence[str] | None = None,
    ):
        self.path, self.manifest = path, Manifest.load(path)
        _check_config(self.manifest, path, config)
        self._tokenizer = load_data_tokenizer(self.manifest, path)
        if vocab is not None:
            wanted = self.manifest.vocab_sha256
            sha256 = hashlib.sha256(read_vocabulary(vocab)).hexdigest()  # With added tokens of HF.
            require_data(
                sha256 == wanted,
                vocab,
                f"the vocabulary of the records in {path} (SHA-256 {wanted[:12]}…)",
                f"another vocabulary ({sha256[:12]}…): prepare the text with --vocab={vocab}",
            )
        if phrases is None:
            phrases = config.data.phrases if config is not None else ()
        self._phrases = phrases
        self._verified: set[str] = set()

    def split(self, name: str) -> SplitManifest:
        """Returns the manifest entry of a split.

        Args:
          name: `train` or `heldout`.

        Raises:
          DataError: there is no such split.
        """
        splits = self.manifest.splits
        require_data(
            name in splits,
            self.path,
            f"a split {name!r}",
            f"{', '.join(splits) or 'none'}: prepare the text with a larger "
            "data.heldout_fraction, or choose another split",
        )
        return splits[name]

    def largest_batch(self, split: str, most: int, num_replicas: int = 1) -> int:
        """Returns the `evaluation_batch_size` of a split.

        Args:
          split: `train` or `heldout`.
          most: maximum batch size, in rows.
          num_replicas: number of replicas that share a batch.
        """
        lanes, bidirectional = self.split(split).num_lanes, self.manifest.bidirectional
        return evaluation_batch_size(lanes, most, bidirectional, num_replicas)

    def verify(self, batch_size: int, split: str = "train", epochs: int | None = None) -> None:
        """Raises the errors of `batches`; the files of a split are read once."""
        lanes = self.split(split)
        _check_batch_size(lanes, self.manifest.bidirectional, self.path, batch_size, epochs)
        if split not in self._verified:
            files = [os.path.join(self.path, name) for name in lanes.files]
            for file in files:
                if not os.path.isfile(file):
                    expected = f"a record file as in {MANIFEST_FILE}"
                    raise DataError(f"{file}: expected {expected}, got none")
            if sum(map(os.path.getsize, files)) <= _CHECKSUM_LIMIT_BYTES:
                check_files(self.path, lanes)
            self._verified.add(split)

    def first_windows(self, num_windows: int) -> tf.data.Dataset:
        """Returns about as many windows of the training split, the first ones of some lanes.

        Of many lanes, pairs at equal distances: one may be reversed. Batches are of up to 64
        windows.
        """
        lanes = first_lanes(self.split("train"), num_windows)
        self.verify(len(lanes))
        return first_windows(self.path, self.manifest, num_windows, self._tokenizer, self._phrases)

    def batches(
        self,
        batch_size: int,
        split: str = "train",
        start_step: int = 0,
        epochs: int | None = None,
        input_context: tf.distribute.InputContext | None = None,
        position: Position | None = None,
    ) -> tf.data.Dataset:
        """Returns batches of a split; its files are verified at the first call.

        Arguments, results and errors: see `pretraining_dataset`.
        """
        if epochs is None and split != "train":
            epochs = 1
        manifest, lanes = self.manifest, self.split(split)
        self.verify(batch_size, split, epochs)
        context = input_context or tf.distribute.InputContext()
        replicas = context.num_replicas_in_sync
        expected = f"a multiple of the {replicas} replicas"
        require(not batch_size % replicas, "training.batch_size", expected, batch_size)
        num_rows = batch_size // context.num_input_pipelines  # Number of rows of this pipeline.
        require_open_files(num_rows, "training.batch_size")
        first_row = num_rows * context.input_pipeline_id
        rows = range(first_row, first_row + num_rows)
        rows_per_batch = batch_size // replicas
        schedule = LaneSchedule(position or Position.start(batch_size), lanes.windows_per_lane)
        starts = word_starts(self._tokenizer, self._phrases)

        def to_batch(index: tf.Tensor, records: tf.Tensor) -> dict[str, tf.Tensor]:
            first = index * rows_per_batch  # First row, counted over all steps.
            step = start_step + first // num_rows
            row = rows.start + first % num_rows + tf.range(rows_per_batch, dtype=tf.int64)
            batch = window_features(records, manifest, starts, self._tokenizer.letter_case)
            return with_schedule(batch, manifest, lanes, *schedule.at(step, row))

        is_new = not start_step and position in (None, Position.start(batch_size))
        dataset = records_of_rows(self.path, manifest, lanes, schedule, rows, start_step, is_new)
        dataset = dataset.batch(rows_per_batch, drop_remainder=True).enumerate()
        dataset = dataset.map(to_batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        num_batches = tf.data.INFINITE_CARDINALITY
        if epochs is not None:
            steps_in_epochs = epochs * lanes.num_lanes // batch_size * lanes.windows_per_lane
            num_batches = max(steps_in_epochs - start_step, 0) * num_rows // rows_per_batch
            dataset = dataset.take(num_batches)
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(num_batches))
        options = tf.data.Options()
        # Where TensorFlow deals out the whole data set (Keras' `fit`), every worker reads its own
        # rows.
        policy = tf.data.experimental.AutoShardPolicy.DATA
        options.experimental_distribute.auto_shard_policy = policy
        return dataset.with_options(options).prefetch(tf.data.AUTOTUNE)


@public()
def pretraining_dataset(
    path: AnyPath,
    batch_size: int,
    split: str = "train",
    config: XLNetConfig | None = None,
    vocab: AnyPath | None = None,
    phrases: Sequence[str] | None = None,
    start_step: Annotated[int, Range(0)] = 0,
    epochs: Annotated[int, Range(1)] | None = None,
    input_context: tf.distribute.InputContext | None = None,
    position: Position | None = None,
) -> tf.data.Dataset:
    """Creates a `tf.data.Dataset` of pre-training batches, ordered for recurrent memory.

    Consecutive batches hold consecutive windows of the same lanes: row i of a batch continues the
    text of row i of the previous batch.

    Args:
      path: directory of the data set.
      batch_size: global batch size B, over all replicas; at most the number of lanes, and even if
        the data is bidirectional.
      split: `train` or `heldout`.
      config: the model's configuration, which is checked against the data set; also supplies
        `data.phrases`. Its `model.vocab_size` is set from the data set, see `ModelConfig`.
        None skips the check.
      vocab: the model's vocabulary file, which is checked against the one of the data set.
      phrases: phrases that are masked as a single word. Default: as in `config`, or none.
      start_step: first step to read; earlier batches are skipped.
      epochs: number of passes over the data. None repeats `train` indefinitely and reads any other
        split once. B has to divide the total number of lanes over all epochs; see
        `evaluation_batch_size`.
      input_context: the argument of `strategy.distribute_datasets_from_function`. Each input
        pipeline reads only its own block of rows, in batches of one replica's rows.
      position: position of a run that is resumed with another batch size; `start_step` is relative
        to it. Requires `epochs=None`.

    Returns:
      A dataset of dictionaries with B rows (or the rows of one replica):
        token_ids       int32 [B, T]
        segment_ids     int32 [B, T], 0 up to the first SEP, 1 up to the second, 2 for CLS
        is_word_start   bool [B, T], whether a token starts a word of the text in its original
                        direction
        letter_case     int32 [B, T], of tokens that begin a word with a letter: 1 for a capital
                        letter, 0 for a small one; -1 for all others
        can_be_target   bool [B, T], False for special tokens
        is_reversed     bool [B], whether the row holds reversed text
        context_length  int32 [B], number of tokens directly before the window that belong to the
                        same document and have been read by the row
        is_next         int32 [B], 1 if B is the text that follows A
        window_id       int64 [B]
        epoch           int32 [B]
        follows         int64 [B], the window that a row has read before, if context_length is
                        not 0; a memory of another one is not seen

    Raises:
      DataError: the data set is missing, damaged, or does not match the configuration or the
        vocabulary. Checksums of large data sets are not verified here; see `reading_errors`.
      ConfigError: the batch size does not fit the data set or the number of replicas.

    Example:
      >>> batch = next(iter(pretraining_dataset("records", batch_size=16)))
      >>> batch["token_ids"].shape
      TensorShape([16, 512])
    """
    records = Records(path, config, vocab, phrases)
    return records.batches(batch_size, split, start_step, epochs, input_context, position)


def evaluation_batch_size(
    num_lanes: int, batch_size: int, bidirectional: bool, num_replicas: int = 1
) -> int:
    """Returns the largest batch size with which an epoch reads every window exactly once.

    Args:
      num_lanes: number of lanes of the split.
      batch_size: maximum batch size; at least 2 if `bidirectional`.
      bidirectional: whether each replica needs an even number of rows.
      num_replicas: number of replicas that share a batch.

    Returns:
      The largest suitable divisor of `num_lanes` that is at most `batch_size`.

    Raises:
      ConfigError: there is no such batch size.

    Example:
      >>> evaluation_batch_size(num_lanes=12, batch_size=5, bidirectional=True)
      4
    """
    multiple = num_replicas * (2 if bidirectional else 1)
    for size in range(min(batch_size, num_lanes), 0, -1):
        if num_lanes % size == 0 and size % multiple == 0:
            return size
    raise ConfigError(
        f"batch_size: expected at least {multiple}, and a multiple of it that divides the "
        f"{num_lanes} lanes of the split, got {batch_size}"
    )


@contextlib.contextmanager
def reading_errors(path: str, split: str, *others: str) -> Iterator[None]:
    """Context manager that converts TensorFlow errors caused by damaged records to `DataError`.

    Wrap the code that iterates over the dataset, e.g. `model.fit`. After an error, the checksums
    of all lanes are verified to find the damaged file; if all match, and it is not about what the
    records hold, the error is re-raised.

    Args:
      path: directory of the data set.
      split: `train` or `heldout`.
      *others: further directories whose records are read together with these.

    Raises:
      DataError: a record file is damaged, is compressed otherwise or has another number of
        windows; a record is of another schema, out of order, or has a value out of its range.

    Example:
      >>> with reading_errors("records", "train"):
      ...     model.fit(dataset)
    """
    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.FailedPreconditionError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
        UnicodeDecodeError,  # Raised by TensorFlow for a message with a record's bytes.
    ) as error:
        from official.xlnet.data.record_files.damage import what_is_wrong

        sentence = what_is_wrong(error, (path, *others), split)
        if sentence is None:
            raise
        raise DataError(sentence) from error


# Added to the sentence about `reuse_len` 0, which is allowed without memory.
_WHOLE_WINDOW = "; orders of the whole window exclude memory: model.mem_len=0"


def _check_config(manifest: Manifest, path: str, config: XLNetConfig | None) -> None:
    if config is None:
        return
    settings = manifest.source.get("settings", {})
    written = {name: getattr(manifest, name) for name in ("seq_len", "reuse_len", "bidirectional")}
    written |= {name: settings.get(name) for name in TEXT_SETTINGS}
    if settings.get("keep_whitespace"):  # The vocabulary says how accents are read.
        del written["keep_accents"]
    if not config.data.reuse_len and not config.model.mem_len:
        del written["reuse_len"]  # The windows are the same; an order is of the whole of each.
    for name, value in written.items():
        expected = getattr(config.data, name)
        if value not in (None, expected):
            raise DataError(
                f"{path}: records were written with {name} {value}, "
                f"but the configuration has data.{name} {expected}"
                + (_WHOLE_WINDOW if (name, expected) == ("reuse_len", 0) else "")
            )
    if manifest.vocab_size > config.model.num_embeddings > 0:
        raise DataError(
            f"{path}: records were written with a vocabulary of {manifest.vocab_size} pieces, "
            f"but the configuration has model.vocab_size {config.model.vocab_size}"
        )
    config.model.fit_vocabulary(manifest.vocab_size, path)


def _check_batch_size(
    lanes: SplitManifest, bidirectional: bool, path: str, batch_size: int, epochs: int | None
) -> None:
    require(
        1 <= batch_size <= lanes.num_lanes,
        "training.batch_size",
        f"from 1 to {lanes.num_lanes}, the number of lanes in {path} (a larger data.num_lanes of "
        "`xlnet prepare` gives more)",
        batch_size,
    )
    require(
        not bidirectional or not batch_size % 2,
        "training.batch_size",
        f"an even number, as half of the rows of {path} are reversed text",
        batch_size,
    )
    if epochs is not None and (epochs * lanes.num_lanes) % batch_size:
        size = evaluation_batch_size(lanes.num_lanes, batch_size, bidirectional)
        raise ConfigError(
            f"batch_size: expected a divisor of {epochs * lanes.num_lanes} lanes ({epochs} epochs "
            f"of {lanes.num_lanes}) to read each of them to its end, such as {size}, "
            f"got {batch_size}"
        )
