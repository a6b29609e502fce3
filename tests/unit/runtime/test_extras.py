"""Without a package of an extra, one sentence says how to install it; all else goes on."""

import random
import sys

import pytest

from official.xlnet import cli
from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.corpora import as_text, data_config, random_documents, vocabulary_dir

PACKAGES = ("apache_beam", "distributed", "pyarrow")


@pytest.fixture(autouse=True)
def without_extras(monkeypatch):
    for module in [*sys.modules]:
        if module.partition(".")[0] in PACKAGES:
            monkeypatch.delitem(sys.modules, module)
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)  # Importing it is an ImportError.


def prepare_arguments(tmp_path, *more, name="text.txt"):
    (tmp_path / name).write_text(as_text(random_documents(random.Random(3), 30)), encoding="utf-8")
    XLNetConfig.from_dict({"data": vars(data_config().data) | {"num_predict": 5}}).save(
        str(tmp_path)
    )
    return [
        "prepare",
        f"--input={tmp_path / name}",
        f"--vocab={vocabulary_dir()}",
        f"--config={tmp_path}",
        f"--output={tmp_path / 'out'}",
        *more,
    ]


@pytest.mark.parametrize("runner", ["DirectRunner", "DaskRunner"])
def test_prepare_on_beam_says_what_to_install(tmp_path, capsys, runner):
    assert cli.main(prepare_arguments(tmp_path, f"--runner={runner}")) == 2
    assert capsys.readouterr().err == (
        f"xlnet prepare: --runner={runner} needs the package apache_beam, which is not installed: "
        "pip install '.[beam]' in its checkout, or the wheel with [beam] (docs/install.md)\n"
    )


def test_text_is_prepared_and_read_without_any_extra(tmp_path):
    from official.xlnet.data.pretraining_dataset import pretraining_dataset

    assert cli.main(prepare_arguments(tmp_path, "--num_workers=1")) == 0
    batch = next(iter(pretraining_dataset(str(tmp_path / "out"), batch_size=2)))
    assert batch["token_ids"].shape[0] == 2
