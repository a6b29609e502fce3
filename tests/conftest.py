"""Settings that TensorFlow reads when it is first imported."""

import pytest

from official.xlnet.cli import set_environment_defaults
from tests.helpers.oracles import tokenizer_oracle

pytest_plugins = ["tests.skips"]

set_environment_defaults()


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory):
    """A small vocabulary, trained on Python's own manual."""
    path = str(tmp_path_factory.mktemp("vocabulary") / "spiece.model")
    tokenizer_oracle.train_vocabulary(path)
    return path
