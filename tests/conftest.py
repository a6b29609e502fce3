"""Fixtures of all tests, and settings from before TensorFlow is imported."""

import signal

import pytest

from official.xlnet.cli import set_environment_defaults
from official.xlnet.runtime.start import garbage, lazy_libraries
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.oracles import tokenizer_oracle
from tests.helpers.world import World, compiled_kernels, eagerly, kept_world

pytest_plugins = ["tests.costs", "tests.seeds", "tests.selection", "tests.skips"]

set_environment_defaults()

# Jobs in the background, and under `nohup`, ignore these signals, and so would the programs that
# tests start.
for _signal, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _handler)
# As in a command.
lazy_libraries.install()
garbage.pause_for_tensorflow()

# Folders and files whose tests are about the numbers of the network.
_OF_NUMBERS = {
    "golden",
    "kernels",
    "layers",
    "test_attention_kernels.py",
    "test_pretraining_step.py",
}


# Files of slow tests that need PyTorch, beside those of tests/parity.
TORCH_FILES = ("test_transformers.py", "test_transformers_tokenizers.py")


def pytest_ignore_collect(collection_path, config):
    """Leaves out files that import PyTorch where their tests, all slow, are not selected.

    With Keras 3, those of the Model Garden, which needs tf_keras, too; without it, its own, and the
    limits of what jobs import.
    """
    from official.xlnet.modeling.ops.keras import IS_KERAS_3  # Before any test imports tf_keras.

    if collection_path.name == "garden":
        return True if IS_KERAS_3 else None
    if collection_path.name in ("test_options_of_keras_3.py", "test_imports_of_jobs.py"):
        return None if IS_KERAS_3 else True
    needs_torch = "parity" in collection_path.parts or collection_path.name in TORCH_FILES
    return True if needs_torch and config.option.markexpr == "not slow" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Marks as slow what is nightly, and all tests of projects but the quick one of each.

    A run that names the folder of a project is of all its tests.

    Names with an address, which differ from worker to worker and end a run of several, are refused.
    """
    names_projects = any("projects" in argument for argument in config.args)
    for item in items:
        is_of_project = "projects" in item.path.parts and item.path.parent.name != "projects"
        is_quick = item.get_closest_marker("quick") is not None
        if item.get_closest_marker("nightly") or (
            is_of_project and not is_quick and not names_projects
        ):
            item.add_marker("slow")
    addressed = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if addressed:
        raise pytest.UsageError(f"give `ids` that are the same in every process: {addressed[0]}")


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory):
    """A small vocabulary, trained on Python's own manual."""
    path = str(tmp_path_factory.mktemp("vocabulary") / "spiece.model")
    tokenizer_oracle.train_vocabulary(path)
    return path


@pytest.fixture(scope="session")
def tokenizer(vocab_file):
    """The tokenizer of `vocab_file`."""
    return Tokenizer(vocab_file)


@pytest.fixture(scope="session")
def world(tmp_path_factory, worker_id, pytestconfig):
    """One corpus, data set, pre-trained run, and model and export of each task, for all workers."""
    folder = tmp_path_factory.getbasetemp()
    if pytestconfig.getoption("cov_source", None):  # The lines that make a world count, too.
        world = World((folder if worker_id == "master" else folder.parent) / "world")
    else:
        world = kept_world()
    yield world
    world.check()


@pytest.fixture(autouse=True)
def _kernels_of_fast_tests(request):
    """Fast tests compile XLA kernels only where they are about numbers of the network."""
    is_slow = request.node.get_closest_marker("slow") is not None
    is_of_numbers = not _OF_NUMBERS.isdisjoint(request.node.path.parts)
    with compiled_kernels(is_slow or is_of_numbers):
        yield


@pytest.fixture
def eager():
    """Short runs compile nothing; the world's, the golden ones and long ones do."""
    with eagerly():
        yield


@pytest.fixture
def interrupts():
    """SIGINT raises KeyboardInterrupt, as in a program; the processes of pytest-xdist ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
