"""Model directories in a bucket."""

import os

from tests.helpers.corpora import vocabulary_dir
from tests.helpers.file_systems.models import (
    VOCAB_SIZE,
    assert_a_model_is_replaced_whole_or_stays,
)


def test_a_model_is_replaced_whole_or_stays(tmp_path, monkeypatch):
    vocabulary = os.path.join(vocabulary_dir(VOCAB_SIZE), "spiece.model")
    url = f"memory://{tmp_path}/model"
    assert_a_model_is_replaced_whole_or_stays(url, vocabulary, monkeypatch)
