"""The job graphs of `xlnet prepare --runner` on services that are not here.

The commands are those of docs/data_preparation.md.
"""

import functools
import logging
import shlex

import pytest

beam = pytest.importorskip("apache_beam")

from apache_beam.options.pipeline_options import PipelineOptions  # noqa: E402
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator  # noqa: E402
from apache_beam.portability.api import beam_runner_api_pb2  # noqa: E402
from apache_beam.runners import create_runner  # noqa: E402
from apache_beam.runners.portability.portable_runner import PortableRunner  # noqa: E402

from data_prep.corpus.corpus import find_shards  # noqa: E402
from data_prep.pipelines.beam_workers import build_pipeline  # noqa: E402
from data_prep.records.token_files import write_token_files  # noqa: E402
from data_prep.settings import Settings  # noqa: E402
from official.xlnet.commands import VERBS  # noqa: E402
from official.xlnet.files.arguments import split_options  # noqa: E402
from tests.helpers.corpora import data_config, vocabulary_dir  # noqa: E402
from tests.helpers.documents import ROOT, blocks  # noqa: E402

IMAGE = "registry.example.com/xlnet:1"


@functools.cache
def commands():
    """{runner: options of Beam}, of the commands in the page."""
    found = {}
    for block in blocks(ROOT / "docs/data_preparation.md"):
        for line in block.code.replace("\\\n", " ").splitlines():
            if line.startswith("xlnet prepare") and "--runner=" in line:
                table = VERBS["prepare"].flag_table(())
                table(shlex.split(line)[1:])
                runner, options = table.runner, table.beam_options
                found[runner] = split_options(options, "beam_options")
    return found


def tasks(tmp_path, work_dir):
    """Tasks of the first pass, on two small files."""
    for number in range(2):
        (tmp_path / f"{number}.txt").write_text(f"The water was first.\n\nNot now {number}.\n")
    work_dir.mkdir()
    settings = Settings.from_config(data_config().data)
    shards = find_shards([str(tmp_path / "*.txt")], settings)
    vocab = f"{vocabulary_dir()}/spiece.model"
    return [(n, shard, settings, vocab, str(work_dir)) for n, shard in enumerate(shards)]


def test_the_page_has_a_command_for_each_engine():
    assert set(commands()) == {"DaskRunner", "FlinkRunner", "SparkRunner", "DataflowRunner"}


@pytest.mark.parametrize("runner", ["FlinkRunner", "SparkRunner", "DataflowRunner"])
def test_the_graph_is_portable_and_has_the_image(tmp_path, runner, caplog):
    given = [f"--runner={runner}", *commands()[runner]]
    options = PipelineOptions(given)
    with caplog.at_level(logging.WARNING):
        options.get_all_options()
    assert "iscarding" not in caplog.text  # "Discarding unparseable args", "… invalid overrides".
    if runner != "DataflowRunner":  # Its validator asks Google Cloud.
        assert not PipelineOptionsValidator(options, create_runner(runner)).validate()
    # Without a runner: that of Dataflow needs apache-beam[gcp] and the network.
    environment = ["--environment_type=DOCKER", f"--environment_config={IMAGE}"]
    graph_tasks, work_dir = tasks(tmp_path, tmp_path / "work"), str(tmp_path / "work")
    pipeline = build_pipeline(write_token_files, graph_tasks, work_dir, environment)
    proto = PortableRunner.get_proto_pipeline(pipeline, PipelineOptions(environment))
    names = [transform.unique_name for transform in proto.components.transforms.values()]
    assert {"Tasks", "Spread", "write_token_files"} <= set(names)
    images = {
        beam_runner_api_pb2.DockerPayload.FromString(environment.payload).container_image
        for environment in proto.components.environments.values()
        if environment.urn == "beam:env:docker:v1"
    }
    assert IMAGE in images


def test_what_is_read_back_from_the_graph_writes_the_same_files(tmp_path):
    graph_tasks = tasks(tmp_path, tmp_path / "work")
    pipeline = build_pipeline(
        write_token_files, graph_tasks, str(tmp_path / "work"), ["--runner=DirectRunner"]
    )
    proto = beam_runner_api_pb2.Pipeline.FromString(pipeline.to_runner_api().SerializeToString())
    again = beam.Pipeline.from_runner_api(proto, create_runner("DirectRunner"), PipelineOptions())
    again.run().wait_until_finish()
    on_beam = {path.name: path.read_bytes() for path in (tmp_path / "work").iterdir()}
    (tmp_path / "local").mkdir()
    for index, shard, settings, vocab, _ in graph_tasks:
        write_token_files(index, shard, settings, vocab, str(tmp_path / "local"), lambda _: None)
    local = {path.name: path.read_bytes() for path in (tmp_path / "local").iterdir()}
    assert on_beam == local and len(local) == 6
