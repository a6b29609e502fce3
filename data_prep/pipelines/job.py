"""Steps of data preparation, independent of how the two passes are executed.

job = describe(...)               validates arguments, finds shards; reads only
open_work_dir(job)                unless job.is_finished()
write_token_files(...)            pass 1: for every shard, in any order
plan = plan_lanes(job)            assigns documents to splits and lanes
write_lane(...)                   pass 2: for every lane, in any order
counts = finish(job, plan)        writes the manifest, last
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import logging

from data_prep.corpus.corpus import find_shards
from data_prep.corpus.formats import LOST, Counts, Shard
from data_prep.corpus.versions import (
    combined_hash,
    current_versions,
    is_same_content,
    newest_file,
    versions_of,
)
from data_prep.record_settings import RECORDED_ONLY, Settings
from data_prep.records import lane_files, token_files
from data_prep.records.lane_files import Layout, lay_out
from data_prep.records.splits import split_documents
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.registry import TEXT_FORMATS
from official.xlnet.data.file_names import MANIFEST_FILE
from official.xlnet.data.lost_rows import check_lost
from official.xlnet.data.schema import SCHEMA_VERSION, Manifest, SplitManifest
from official.xlnet.data.text_counts import check_unknown
from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.checksums import sha256_of
from official.xlnet.files.json_files import read_record, write_json
from official.xlnet.files.schema import conform
from official.xlnet.tokenization.sentencepiece_proto import warn_of_export
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.vocabulary_file import require_no_owner, vocabulary_path

_WORK_DIR = ".prepare"
_JOB_FILE = "job.json"
_DROPPED = ("empty", "too_short", "low_quality", "duplicates")
_ALWAYS_COUNTED = (*_DROPPED, *LOST, "unknown_tokens")
_UNKNOWN_SHARE = "unknown_share"
_LANE_FILE = re.compile(r"(train|heldout)-\d+-of-\d+\.tfrecord")


@dataclasses.dataclass(frozen=True)
class Job:
    """A data preparation job.

    Attributes:
      inputs: file patterns as given by the user, for the manifest.
      shards: shards of the corpus.
      settings: settings of the preparation.
      tokenizer: the tokenizer.
      output_dir: directory of the data set, which already contains the vocabulary.
      identity: hash of everything that determines the output, excluding directory names and the
        content of the text.
      versions: hash of the versions of the input files.
      num_heldout_shards: number of shards, the last ones, that are held out.
    """

    inputs: tuple[str, ...]
    shards: tuple[Shard, ...]
    settings: Settings
    tokenizer: Tokenizer
    output_dir: str
    identity: str
    versions: str
    num_heldout_shards: int = 0

    @property
    def work_dir(self) -> str:
        """Directory of intermediate files: token files and completion records."""
        return os.path.join(self.output_dir, _WORK_DIR)

    @property
    def vocab_file(self) -> str:
        """Path of the vocabulary."""
        return os.path.join(self.output_dir, VOCAB_FILE)

    @property
    def token_dtype(self) -> np.dtype:
        """Data type of token files."""
        return token_files.token_dtype(self.tokenizer.vocab_size)

    @property
    def is_read_here(self) -> bool:
        """Whether a script or notebook has the reader of a format, which no worker can import."""
        readers = [TEXT_FORMATS[shard.format].documents for shard in self.shards]
        return any(reader.__module__ == "__main__" for reader in readers)

    def is_finished(self) -> bool:
        """Whether the output directory holds the output of this job, complete and undamaged.

        Raises:
          DataError: it holds a data set of other text or settings; the message says which.
        """
        if not file_system.exists(os.path.join(self.output_dir, MANIFEST_FILE)):
            return False
        manifest = Manifest.load(self.output_dir)
        if manifest.source.get("identity") != self.identity:
            from data_prep.pipelines.other_data_set import difference

            what = difference(manifest, self.inputs, self.settings, self.tokenizer.sha256)
            raise DataError(
                f"{self.output_dir} already holds another data set ({what}): choose another "
                "--output, or remove it"
            )
        # Files may have been edited but not resized; copies with other times are fine.
        is_new = manifest.source.get("versions") != self.versions
        content = str(manifest.source.get("content"))
        if is_new and not is_same_content(self.shards, content):
            raise DataError(
                f"{self.output_dir} already holds a data set of other text: the input was edited "
                f"since (see {newest_file(self.shards)}); choose another --output, or remove it"
            )
        return all(
            sha256_of(os.path.join(self.output_dir, name)) == sha256
            for split in manifest.splits.values()
            for name, sha256 in [*split.files.items(), (VOCAB_FILE, self.tokenizer.sha256)]
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """Files to write in pass 2.

    Attributes:
      layouts: layout of each split, training first.
      counts: statistics of pass 1: text read, dropped and repaired.
      content: hash of the text that was read.
    """

    layouts: list[Layout]
    counts: Counts
    content: str


def describe(
    inputs: Sequence[str],
    vocab: str,
    settings: Settings,
    output_dir: str,
    model: ModelConfig,
    heldout_inputs: Sequence[str] = (),
) -> Job:
    """Validates the arguments and finds the shards; writes nothing.

    Args:
      inputs: file names, glob patterns or `tfds:NAME:SPLIT`; see `find_shards`.
      vocab: a SentencePiece model, or a directory that contains `spiece.model`.
      settings: settings of the preparation.
      output_dir: directory of the data set.
      model: the `model` section of the configuration, which the vocabulary has to fit.
      heldout_inputs: text to hold out in place of a share of `inputs`, given in the same form.

    Returns:
      The job.

    Raises:
      DataError: the text or the vocabulary is missing or invalid, or the directory holds a model
        with another one.
      ConfigError: `model.vocab_size` is smaller than the vocabulary.
    """
    vocab_file = vocabulary_path(vocab)
    tokenizer = Tokenizer(vocab_file, settings.lowercase, settings.keep_accents)
    settings = dataclasses.replace(settings, keep_whitespace=tokenizer.keep_whitespace)
    dataclasses.replace(model).fit_vocabulary(tokenizer.vocab_size, vocab_file)
    warn_of_export(tokenizer.model_proto)
    require_no_owner(output_dir, tokenizer.model_proto)
    heldout = find_shards(heldout_inputs, settings) if heldout_inputs else []
    shards = (*find_shards(inputs, settings), *heldout)
    if not any(shard.stop for shard in shards):
        raise DataError(f"no text in {', '.join(inputs)}: the files are empty")
    shard_keys = [shard.key for shard in shards if shard.stop]
    relevant = {
        name: value
        for name, value in dataclasses.asdict(settings).items()
        if name not in RECORDED_ONLY
    }
    identity = [SCHEMA_VERSION, relevant, tokenizer.sha256, shard_keys]
    if heldout:
        identity.append(len(heldout))
    return Job(
        inputs=(*inputs, *heldout_inputs),
        shards=shards,
        settings=settings,
        tokenizer=tokenizer,
        output_dir=output_dir,
        identity=hashlib.sha256(json.dumps(identity).encode()).hexdigest(),
        versions=versions_of(shards),
        num_heldout_shards=len(heldout),
    )


def open_work_dir(job: Job) -> None:
    """Creates or reopens the work directory of a job that is not finished.

    A data set that is there is damaged; its manifest is removed.

    Args:
      job: the job.
    """
    manifest = os.path.join(job.output_dir, MANIFEST_FILE)
    if file_system.exists(manifest):
        file_system.remove(manifest)
    record = os.path.join(job.work_dir, _JOB_FILE)
    description = {
        "identity": job.identity,
        "inputs": list(job.inputs),
        "versions": job.versions,
    }
    if read_record(record) != description:  # Not an interrupted run of the same job.
        file_system.remove_tree(job.work_dir)
        file_system.make_dirs(job.work_dir)
        for name in file_system.names(job.output_dir):
            if _LANE_FILE.fullmatch(name):
                file_system.remove(os.path.join(job.output_dir, name))
        write_json(record, description, job.work_dir)
    if sha256_of(job.vocab_file) != job.tokenizer.sha256:
        write_bytes(job.vocab_file, job.tokenizer.model_proto, job.work_dir)


def plan_lanes(job: Job) -> Plan:
    """Assigns documents to splits and divides the splits into lanes, after pass 1.

    Args:
      job: the job.

    Returns:
      The lanes to write.

    Raises:
      DataError: there is not enough text, or too much of it becomes `<unk>`.
    """
    completions = [
        read_record(token_files.shard_file(job.work_dir, index, "json"))
        for index in range(len(job.shards))
    ]
    counts = Counts()
    for completion in completions:
        counts.update(completion["counts"])
    counts["empty_files"] = _warn_of_empty_files(job, completions)
    first_lost = next(filter(None, (completion["first_lost"] for completion in completions)), "")
    check_lost(
        ", ".join(job.inputs),
        {name: counts[name] for name in LOST},
        sum(counts[name] for name in ("documents", *_DROPPED, *LOST)),
        job.settings.max_lost,
        unit="records",
        first=first_lost,
    )
    if not counts["documents"]:
        dropped = [f"{counts[name]} {name}" for name in _DROPPED if counts[name]]
        raise DataError(
            f"no text in {', '.join(job.inputs)}: no document remains after filtering "
            f"(dropped: {', '.join(dropped) or 'none'})"
        )
    characters = counts.pop(token_files.TOKENIZED_CHARACTERS, counts["characters"])
    counts_of_tokens = {**counts, "characters": characters}
    check_unknown(counts_of_tokens, ", ".join(job.inputs), job.settings.max_unknown)
    _warn_of_short_documents(job, counts)
    splits, assigned = split_documents(
        job.work_dir, len(job.shards), job.settings, job.token_dtype, job.num_heldout_shards
    )
    counts.update(assigned)
    if job.settings.heldout_fraction and len(splits) == 1:
        _warn_of_no_heldout(splits[0].tokens, job.settings)
    layouts = [lay_out(split, job.settings) for split in splits]
    content = combined_hash([completion["content"] for completion in completions])
    return Plan(layouts, counts, content)


def _warn_of_empty_files(job: Job, completions: list[dict[str, Any]]) -> int:
    """Returns the number of files that have no text or lost records; warns if there are any."""
    characters = dict.fromkeys((shard.path for shard in job.shards), 0)
    for shard, completion in zip(job.shards, completions, strict=True):
        read = completion["counts"]
        characters[shard.path] += sum(read.get(name, 0) for name in ("characters", *LOST))
    empty = [path for path, num_characters in characters.items() if not num_characters]
    if empty:
        logging.warning("%d files have no text, such as %s", len(empty), empty[0])
    return len(empty)


def _warn_of_short_documents(job: Job, counts: Counts) -> None:
    """Warns of plain text whose documents are much shorter than windows: lines may be wrapped."""
    mean_length = counts["tokens"] / counts["documents"]
    formats = {shard.format for shard in job.shards if shard.stop}
    is_blank_lines = formats == {"text"} and not job.settings.document_start
    if is_blank_lines and mean_length < job.settings.seq_len / 2:
        logging.warning(
            "%s: %d documents have %d tokens on average, windows %d; blank lines separate "
            "documents, see --document_start",
            ", ".join(job.inputs),
            counts["documents"],
            mean_length,
            job.settings.seq_len,
        )


def _warn_of_no_heldout(tokens: int, settings: Settings) -> None:
    share, window = settings.heldout_fraction * tokens, settings.tokens_per_window
    logging.warning(
        "no held-out split: data.heldout_fraction=%g of %d tokens is %d, %s",
        settings.heldout_fraction,
        tokens,
        share,
        f"less than a window of {window}: set {window / tokens:.2g} or more, or add text"
        if share < window
        else "which no documents or ends of documents come near; equal documents are in one split: "
        "--drop_duplicates drops all except one",
    )


def finish(job: Job, plan: Plan) -> dict[str, Any]:
    """Writes the manifest and removes the work directory.

    Args:
      job: the job.
      plan: its lanes, which have all been written.

    Returns:
      The counts of the data set; see `data_set_counts`.
    """
    if current_versions(job.inputs, job.shards) != job.versions:
        raise DataError(
            f"the input was changed while it was prepared (see {newest_file(job.shards)}): run "
            "the same command again"
        )
    splits = {}
    for layout in plan.layouts:
        completions = [
            read_record(lane_files.completion_path(job.work_dir, layout, lane))
            for lane in range(layout.num_lanes)
        ]
        splits[layout.split.name] = SplitManifest(
            documents=layout.split.documents,
            tokens=layout.split.tokens,
            windows=layout.num_lanes * layout.windows_per_lane,
            dropped_tokens=layout.dropped_tokens,
            num_lanes=layout.num_lanes,
            windows_per_lane=layout.windows_per_lane,
            files={completion["file"]: completion["sha256"][0] for completion in completions},
        )
    read = {name: n for name, n in plan.counts.items() if name not in ("documents", "tokens")}
    Manifest(
        schema_version=SCHEMA_VERSION,
        seq_len=job.settings.seq_len,
        reuse_len=job.settings.reuse_len,
        bidirectional=job.settings.bidirectional,
        vocab_size=job.tokenizer.vocab_size,
        vocab_sha256=job.tokenizer.sha256,
        seed=job.settings.seed,
        splits=splits,
        source={
            "inputs": list(job.inputs),
            "counts": {name: read.get(name, 0) for name in sorted({*read, *_ALWAYS_COUNTED})},
            # With the tokens of duplicates, which no split has.
            _UNKNOWN_SHARE: round(read.get("unknown_tokens", 0) / plan.counts["tokens"], 4),
            "settings": dataclasses.asdict(job.settings),
            "identity": job.identity,
            "versions": job.versions,
            "content": plan.content,
        },
        compression="GZIP" if job.settings.compress else "",
    ).save(job.output_dir)
    file_system.remove_tree(job.work_dir)
    return data_set_counts(job.output_dir)


def data_set_counts(output_dir: str) -> dict[str, Any]:
    """Returns the statistics of a complete data set.

    Args:
      output_dir: directory of the data set.

    Returns:
      `documents`, `tokens`, `windows` and `dropped_tokens` over all splits, `heldout_windows`,
      counts of text read, dropped and repaired, and `unknown_share`.
    """
    manifest = Manifest.load(output_dir)
    splits = manifest.splits.values()
    totals = {
        name: sum(getattr(split, name) for split in splits)
        for name in ("documents", "tokens", "windows", "dropped_tokens")
    }
    heldout, read = manifest.splits.get("heldout"), manifest.source.get("counts", {})
    unknown_share = round(read["unknown_tokens"] / max(1, totals["tokens"]), 4)
    return {
        **totals,
        "heldout_windows": heldout.windows if heldout else 0,
        **conform(read, dict[str, int], f"{output_dir}: counts"),
        # Data sets of earlier versions have none.
        _UNKNOWN_SHARE: manifest.source.get(_UNKNOWN_SHARE, unknown_share),
    }
