"""The limit on open files is raised as far as the system allows."""

import resource

import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.runtime.cores import require_open_files
from tests.helpers.compare import assert_refused

LIMIT = resource.RLIMIT_NOFILE


@pytest.fixture
def limits():
    """The limits on open files, which are restored."""
    limits = resource.getrlimit(LIMIT)
    yield limits
    resource.setrlimit(LIMIT, limits)


def test_the_soft_limit_is_raised_to_the_hard_one(limits, world):
    _, hard = limits
    resource.setrlimit(LIMIT, (260, hard))
    require_open_files(4, "batch_size")
    assert resource.getrlimit(LIMIT) == (260, hard)
    Records(world.data, XLNetConfig.load(world.config)).batches(6)
    assert resource.getrlimit(LIMIT)[0] >= 262


def test_more_files_than_the_hard_limit_are_refused(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    sentence = "training.batch_size: expected at most 768 on each host"
    assert_refused(sentence, require_open_files, 769, "training.batch_size")


def test_without_a_hard_limit_only_what_is_needed(monkeypatch):
    limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda *arguments: limits.append(arguments))
    require_open_files(1600, "training.batch_size")
    assert limits == [(LIMIT, (1856, resource.RLIM_INFINITY))]
