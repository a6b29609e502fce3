"""Data preparation: raw text to a data set of pre-training records.

    output/train-00000-of-00016.tfrecord …   record files, one per lane
    output/spiece.model                      the vocabulary
    output/manifest.json                     metadata; written last, marks the data set as complete
    output/.prepare/                         intermediate files; removed at the end

The output depends only on the text, vocabulary, configuration and options, not on the workers,
which are processes of one machine or workers of Apache Beam. Running the same command again resumes
an interrupted run.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from absl import logging

from data_prep.corpus.corpus import Paths, list_of_paths
from data_prep.pipelines import job as jobs
from data_prep.pipelines.local_workers import local_workers
from data_prep.record_settings import Settings
from data_prep.records.lane_files import write_lane
from data_prep.records.token_files import write_token_files
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError, require_extra
from official.xlnet.files import file_system
from official.xlnet.files.locks import only_writer
from official.xlnet.runtime.cores import num_cores


def prepare_records(
    input: Paths,
    vocab: str,
    config: XLNetConfig,
    settings: Settings,
    output: str,
    *,
    num_workers: int | None = None,
    progress: bool = True,
    runner: str | None = None,
    beam_options: str | Sequence[str] | None = None,
    heldout_input: Paths = (),
) -> dict[str, Any]:
    """Converts text to records, with settings of their own; see `official.xlnet.api.prepare`."""
    beam = _beam_options(runner, beam_options)
    inputs = list_of_paths(input)
    if config.training.batch_size > settings.num_lanes:
        logging.warning(
            "data.num_lanes: expected at least training.batch_size, %d, got %d; pre-training on "
            "these records needs --set=training.batch_size=%d or less",
            config.training.batch_size,
            settings.num_lanes,
            settings.num_lanes,
        )
    heldout = list_of_paths(heldout_input)
    job = jobs.describe(inputs, vocab, settings, output, config.model, heldout)
    if job.is_finished():  # Without the lock: the directory may be read-only.
        return jobs.data_set_counts(output)
    with only_writer(output):
        jobs.open_work_dir(job)
        if beam is not None:
            from data_prep.pipelines.beam_workers import run_on_beam

            on_beam = functools.partial(run_on_beam, job.work_dir, beam)
            return _run_passes(job, on_beam)
        paths = [*inputs, *heldout, vocab, output]
        if job.is_read_here or not all(map(file_system.is_shared, paths)):
            num_workers = 1  # Other processes cannot read the files, or import the reader.
        with local_workers(num_workers or num_cores(), progress) as run:
            return _run_passes(job, run)


def _beam_options(runner: str | None, options: str | Sequence[str] | None) -> list[str] | None:
    """Options of Beam; None for local processes."""
    if runner is None and not options:
        return None
    require_extra("apache_beam", "beam", f"runner={runner}")
    if runner == "DaskRunner":
        require_extra("distributed", "dask", f"runner={runner}")
    try:
        listed = shlex.split(options) if isinstance(options, str) else options or ()
    except ValueError as error:
        raise ConfigError(f"beam_options: expected options as in a shell: {error}") from None
    return [*([f"--runner={runner}"] if runner else []), *listed]


def _run_passes(job: jobs.Job, run: Callable[..., list[dict[str, Any]]]) -> dict[str, Any]:
    """Runs both passes, on `local_workers` or by `run_on_beam`, and writes the manifest."""
    num_bytes = sum(shard.num_bytes for shard in job.shards)
    shard_tasks = [
        (index, shard, job.settings, job.vocab_file, job.tokenizer.sha256, job.work_dir)
        for index, shard in enumerate(job.shards)
    ]
    shards = run(write_token_files, shard_tasks, desc="tokens", total=num_bytes, unit="B")
    plan = jobs.plan_lanes(job)
    num_windows = sum(layout.num_lanes * layout.windows_per_lane for layout in plan.layouts)
    lane_tasks = [
        (layout, lane, job.settings, job.token_dtype, job.work_dir, job.output_dir)
        for layout in plan.layouts
        for lane in range(layout.num_lanes)
    ]
    lanes = run(write_lane, lane_tasks, desc="records", total=num_windows, unit=" windows")
    counts = jobs.finish(job, plan)
    if shards:  # Beam does not return the results of tasks.
        counts["resumed_shards"] = sum(completion["resumed"] for completion in shards)
        counts["resumed_lanes"] = sum(completion["resumed"] for completion in lanes)
    return counts
