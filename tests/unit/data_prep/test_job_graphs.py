"""The job graphs of `xlnet prepare --runner` on services that are not here.

The commands are those of docs/data_preparation.md.
"""

import functools
import logging
import shlex

import pytest

from data_prep.records.token_files import write_token_files
from official.xlnet.commands.declarations import declaration
from tests.helpers.documents import ROOT, blocks


@functools.cache
def commands():
    """{runner: options of Beam}, of the commands in the page."""
    found = {}
    for block in blocks(ROOT / "docs/data_preparation.md"):
        for line in block.code.replace("\\\n", " ").splitlines():
            if line.startswith("xlnet prepare") and "--runner=" in line:
                table = declaration("prepare").flag_table(())
                table(shlex.split(line)[1:])
                runner, options = table.runner, table.beam_options
                found[runner] = shlex.split(options)
    return found


def test_the_page_has_a_command_for_each_engine():
    assert set(commands()) == {"DaskRunner", "FlinkRunner", "SparkRunner", "DataflowRunner"}


@pytest.mark.parametrize("runner", ["FlinkRunner", "SparkRunner", "DataflowRunner"])
def test_the_graph_is_portable_and_has_the_image(runner, caplog):
    pytest.importorskip("apache_beam")  # Here, so that other tests do without its memory.
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
    from apache_beam.runners import create_runner
    from apache_beam.runners.portability.portable_runner import PortableRunner

    from data_prep.pipelines.beam_workers import build_pipeline

    options = PipelineOptions([f"--runner={runner}", *commands()[runner]])
    with caplog.at_level(logging.WARNING):
        options.get_all_options()
    assert "iscarding" not in caplog.text  # "Discarding unparseable args", "… invalid overrides".
    if runner != "DataflowRunner":  # Its validator asks Google Cloud.
        assert not PipelineOptionsValidator(options, create_runner(runner)).validate()
    # Without a runner: that of Dataflow needs apache-beam[gcp] and the network.
    environment = ["--environment_type=DOCKER", "--environment_config=registry.example.com/xlnet:1"]
    pipeline = build_pipeline(write_token_files, [(0,), (1,)], "work", environment)
    graph = str(PortableRunner.get_proto_pipeline(pipeline, PipelineOptions(environment)))
    for name in ("Tasks", "Spread", "write_token_files", "registry.example.com/xlnet:1"):
        assert name in graph
