"""Model directories on any file system."""

import errno

import pytest

from official import xlnet
from official.xlnet.checkpoints import saving
from official.xlnet.files import file_system
from tests.helpers.compare import assert_same_variables
from tests.helpers.tiny import tiny_encoder

VOCAB_SIZE = 211


def assert_a_model_is_replaced_whole_or_stays(folder, vocabulary, monkeypatch):
    """Also when the disk is full."""
    old, new = (tiny_encoder(n, vocab_size=VOCAB_SIZE, num_layers=n) for n in (1, 2))

    def disk_full(*_):
        raise OSError(errno.ENOSPC, "disk full")

    xlnet.save_pretrained(old, folder, vocabulary)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
        patch.setattr(saving, "merged_weights", disk_full)
        xlnet.save_pretrained(new, folder, vocabulary)
    for model in (old, new):
        assert_same_variables(xlnet.load_encoder(folder).variables, model.variables)
        names = {*file_system.names(folder)}
        xlnet.save_pretrained(new, folder, vocabulary)
    assert names == {*file_system.names(folder)} and "spiece.model" in names
