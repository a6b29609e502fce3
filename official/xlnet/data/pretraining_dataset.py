"""Records to batches: `pretraining_dataset`.

`lane_schedule` says which row of a batch reads which window when. A batch is thus a function of
the step alone, which makes resuming exact: reading starts with the windows of `start_step`, and
what was seen of their lanes is skipped.

Nothing is drawn here. Targets and orders come from `permutation`, on the device.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.lane_schedule import LaneSchedule, Position
from official.xlnet.data.schema import MANIFEST_FILE, SCALAR_FEATURES, Manifest, SplitManifest
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.tokenization.phrases import WordStarts, word_starts
from official.xlnet.tokenization.special_tokens import NUM_SPECIAL, VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer

# Above this size the lanes' checksums are looked at only after an error: see `reading_errors`.
_CHECKSUM_LIMIT_BYTES = 1 << 30
_OUT_OF_ORDER = "windows out of order"


def pretraining_dataset(
    path: str,
    batch_size: int,
    split: str = "train",
    config: XLNetConfig | None = None,
    start_step: int = 0,
    epochs: int | None = None,
    input_context: tf.distribute.InputContext | None = None,
    vocab: str | None = None,
    position: Position | None = None,
) -> tf.data.Dataset:
    """Batches of a data set, in the order that memory needs.

    Args:
      path: directory of the data set.
      batch_size: rows B of a step, over all replicas; at most the number of lanes, and even
        where the data is bidirectional.
      split: `train` or `heldout`.
      config: the model's configuration, to be compared with the data's; its phrases count as
        words.
      start_step: first step to read; what came before it is skipped.
      epochs: how often to read every window; `None` never ends. B must divide the lanes of all
        epochs together: see `evaluation_batch_size`.
      input_context: what `strategy.distribute_datasets_from_function` passes. Each input
        pipeline reads its own block of rows only, in batches of one replica's rows.
      vocab: the model's vocabulary file, to be compared with the data's.
      position: where a run is that had other batches before; `start_step` counts from there.
        Only with endless `epochs`.

    Returns:
      A dataset of dictionaries, B rows each (or one replica's):
        token_ids       int32 [B, T]
        segment_ids     int32 [B, T], 0 up to the first SEP, 1 up to the second, 2 for CLS
        is_word_start   bool [B, T], whether a piece starts a word of the unreversed text
        can_be_target   bool [B, T], False at special tokens
        is_reversed     bool [B], whether the row is reversed text
        context_length  int32 [B], tokens of the same document right before the window, of those
                        that the row has read
        is_next         int32 [B], 1 where B is the text that follows A
        window_id       int64 [B]
        epoch           int32 [B]

    Raises:
      DataError: the data set is missing, damaged, or does not fit the configuration or the
        vocabulary. Checksums of large data sets are not looked at: see `reading_errors`.
      ConfigError: the batch does not fit the data set.

    Example:
      >>> batch = next(iter(pretraining_dataset("records", batch_size=16)))
      >>> batch["token_ids"].shape
      TensorShape([16, 512])
    """
    manifest = Manifest.load(path)
    lanes = _split(manifest, path, split)
    _check_config(manifest, path, config)
    tokenizer = _load_tokenizer(manifest, path, vocab)
    _check_batch_size(lanes, manifest.bidirectional, path, batch_size, epochs)
    files = [os.path.join(path, name) for name in lanes.files]
    missing = [file for file in files if not os.path.isfile(file)]
    if missing:
        raise DataError(f"{missing[0]}: expected a record file as in {MANIFEST_FILE}, got none")
    if sum(map(os.path.getsize, files)) <= _CHECKSUM_LIMIT_BYTES:
        check_lanes(path, split)

    num_pipelines = input_context.num_input_pipelines if input_context else 1
    num_replicas = input_context.num_replicas_in_sync if input_context else 1
    if batch_size % num_replicas:
        raise ConfigError(
            f"training.batch_size: expected a multiple of the {num_replicas} replicas, "
            f"got {batch_size}"
        )
    num_rows = batch_size // num_pipelines
    first_row = num_rows * input_context.input_pipeline_id if input_context else 0
    replica_rows = batch_size // num_replicas
    windows_per_lane = lanes.windows_per_lane
    schedule = LaneSchedule(position or Position.start(batch_size), windows_per_lane)

    def pieces_of(row: tf.Tensor) -> tf.data.Dataset:
        """The lanes that a row reads one after the other, and the window it starts at."""

        def next_piece(step: tf.Tensor, _) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
            number, window, _ = schedule.at(step, row[tf.newaxis])
            return step + windows_per_lane - window[0], (number[0], window[0])

        start = tf.constant(start_step, tf.int64)
        return tf.data.Dataset.from_tensors(0).repeat().scan(start, next_piece)

    def open_lane(number: tf.Tensor, window: tf.Tensor) -> tf.data.Dataset:
        file = tf.gather(files, number % lanes.num_lanes)
        return tf.data.TFRecordDataset(file, manifest.compression).skip(window)

    def read_row(row: tf.Tensor) -> tf.data.Dataset:
        return pieces_of(row).flat_map(open_lane)

    phrases = config.data.phrases if config is not None else ()
    parse = _parser(manifest, word_starts(tokenizer, phrases))

    def read(index: tf.Tensor, records: tf.Tensor) -> dict[str, tf.Tensor]:
        step = start_step + index * replica_rows // num_rows
        row = first_row + index * replica_rows % num_rows + tf.range(replica_rows, dtype=tf.int64)
        number, window, memory_from = schedule.at(step, row)
        batch = parse(records)
        expected = number % lanes.num_lanes * windows_per_lane + window
        in_order = tf.debugging.Assert(
            tf.reduce_all(batch["window_id"] == expected),
            [f"{_OUT_OF_ORDER}: expected window ids", expected, "got", batch["window_id"]],
            summarize=8,
        )
        read_before = tf.cast((window - memory_from) * manifest.reuse_len, tf.int32)
        with tf.control_dependencies([in_order]):
            return {
                **batch,
                "context_length": tf.minimum(batch["context_length"], read_before),
                "epoch": tf.cast(number // lanes.num_lanes, tf.int32),
            }

    dataset = tf.data.Dataset.range(first_row, first_row + num_rows)
    # Rows never end, so they stay where they are in the cycle.
    dataset = dataset.interleave(
        read_row,
        cycle_length=num_rows,
        block_length=1,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    dataset = dataset.batch(replica_rows, drop_remainder=True).enumerate()
    dataset = dataset.map(read, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    num_batches = tf.data.INFINITE_CARDINALITY
    if epochs is not None:
        num_steps = max(epochs * lanes.num_lanes // batch_size * windows_per_lane - start_step, 0)
        num_batches = num_steps * num_rows // replica_rows
        dataset = dataset.take(num_batches)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(num_batches))
    options = tf.data.Options()
    # Rows are dealt out above; TensorFlow must not deal out files or batches again.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options).prefetch(tf.data.AUTOTUNE)


def evaluation_batch_size(
    num_lanes: int, batch_size: int, bidirectional: bool, num_replicas: int = 1
) -> int:
    """The largest batch size up to `batch_size` that reads every window exactly once.

    Args:
      num_lanes: lanes of the split.
      batch_size: rows wanted, at least 2 where `bidirectional`.
      bidirectional: whether the rows of a replica must be even in number.
      num_replicas: replicas that share a batch evenly.

    Returns:
      The largest divisor of `num_lanes` up to `batch_size` that fits.

    Raises:
      ConfigError: there is none.

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
def reading_errors(path: str, split: str) -> Iterator[None]:
    """Turns what TensorFlow raises while it reads damaged records into a `DataError`.

    Wrap whatever iterates over the dataset, e.g. `model.fit`. After an error, the checksums of
    all lanes say which file is to blame; if none is, the error goes on as it came.

    Args:
      path: directory of the data set.
      split: `train` or `heldout`.

    Raises:
      DataError: a lane is not what `xlnet prepare` wrote, or its windows are out of order.
    """
    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.FailedPreconditionError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
    ) as error:
        check_lanes(path, split)
        if _OUT_OF_ORDER in error.message:
            details = error.message.partition(_OUT_OF_ORDER)[2].partition("\n")[0]
            details = details.replace("] [", " ").rstrip("]")
            raise DataError(f"{path}, split {split}: {_OUT_OF_ORDER}{details}") from error
        raise


def check_lanes(path: str, split: str) -> None:
    """Compares the record files of a split with the checksums in the manifest.

    Args:
      path: directory of the data set.
      split: `train` or `heldout`.

    Raises:
      DataError: a file is missing or holds other bytes.
    """
    for name, sha256 in _split(Manifest.load(path), path, split).files.items():
        _check_sha256(os.path.join(path, name), sha256, f"as in {MANIFEST_FILE}")


def _split(manifest: Manifest, path: str, split: str) -> SplitManifest:
    if split not in manifest.splits:
        raise DataError(
            f"{path}: expected a split {split!r}, got {', '.join(manifest.splits) or 'none'}"
        )
    return manifest.splits[split]


def _check_config(manifest: Manifest, path: str, config: XLNetConfig | None) -> None:
    if config is None:
        return
    for name in ("seq_len", "reuse_len", "bidirectional"):
        written, expected = getattr(manifest, name), getattr(config.data, name)
        if written != expected:
            raise DataError(
                f"{path}: records were written with {name} {written}, "
                f"but the configuration has data.{name} {expected}"
            )
    if manifest.vocab_size > config.model.vocab_size:
        raise DataError(
            f"{path}: records are of a vocabulary of {manifest.vocab_size} pieces, "
            f"but the configuration has model.vocab_size {config.model.vocab_size}"
        )


def _check_batch_size(
    lanes: SplitManifest, bidirectional: bool, path: str, batch_size: int, epochs: int | None
) -> None:
    if not 1 <= batch_size <= lanes.num_lanes:
        raise ConfigError(
            f"training.batch_size: expected from 1 to {lanes.num_lanes}, the number of lanes in "
            f"{path}, got {batch_size}; prepare the data with data.num_lanes of at least that"
        )
    if bidirectional and batch_size % 2:
        raise ConfigError(
            f"training.batch_size: expected an even number, as half of the rows of {path} are "
            f"reversed text, got {batch_size}"
        )
    if epochs is not None and (epochs * lanes.num_lanes) % batch_size:
        size = evaluation_batch_size(lanes.num_lanes, batch_size, bidirectional)
        raise ConfigError(
            f"batch_size: expected a divisor of {epochs * lanes.num_lanes} lanes ({epochs} epochs "
            f"of {lanes.num_lanes}) to read each of them to its end, such as {size}, "
            f"got {batch_size}"
        )


def _load_tokenizer(manifest: Manifest, path: str, vocab: str | None) -> Tokenizer:
    tokenizer = Tokenizer(os.path.join(path, VOCAB_FILE))
    _check_sha256(tokenizer.model_file, manifest.vocab_sha256, f"as in {MANIFEST_FILE}")
    if vocab is not None:
        _check_sha256(vocab, manifest.vocab_sha256, f"the vocabulary of the records in {path}")
    return tokenizer


def _check_sha256(file: str, expected: str, meaning: str) -> None:
    try:
        with open(file, "rb") as stream:
            got = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise DataError(f"{file}: expected a file, got none") from None
    if got != expected:
        raise DataError(
            f"{file}: expected SHA-256 {expected[:12]}… ({meaning}), got {got[:12]}…: the file is "
            "damaged, or belongs to another data set"
        )


def _parser(manifest: Manifest, starts: WordStarts) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
    """Returns the function from serialized records, string [B], to a batch without `epoch`."""
    seq_len, reuse_len = manifest.seq_len, manifest.reuse_len
    schema = {name: tf.io.FixedLenFeature([], tf.int64) for name in SCALAR_FEATURES}
    schema["token_ids"] = tf.io.FixedLenFeature([seq_len], tf.int64)
    position_T = tf.range(seq_len, dtype=tf.int64)
    is_cls_T = position_T == seq_len - 1

    def parse(records: tf.Tensor) -> dict[str, tf.Tensor]:
        example = tf.io.parse_example(records, schema)
        token_ids_BT = example["token_ids"]
        is_reversed_B = tf.cast(example["is_reversed"], tf.bool)
        first_of_b_B1 = reuse_len + example["a_length"][:, tf.newaxis] + 1
        is_past_a_BT = position_T >= first_of_b_B1
        return {
            "token_ids": tf.cast(token_ids_BT, tf.int32),
            "segment_ids": tf.cast(is_past_a_BT, tf.int32) + tf.cast(is_cls_T, tf.int32),
            "is_word_start": starts(token_ids_BT, is_reversed_B),
            "can_be_target": token_ids_BT >= NUM_SPECIAL,
            "is_reversed": is_reversed_B,
            "context_length": tf.cast(example["context_length"], tf.int32),
            "is_next": tf.cast(example["is_next"], tf.int32),
            "window_id": example["window_id"],
        }

    return parse
