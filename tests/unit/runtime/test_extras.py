"""Without a package of an extra, one sentence says how to install it; all else goes on."""

import sys

import pytest

from official.xlnet import cli
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from tests.helpers.world import command

PACKAGES = ("apache_beam", "distributed", "pyarrow")


@pytest.fixture
def without_extras(world, monkeypatch, tmp_path):
    """Flags of `prepare`; importing a package of an extra is an ImportError."""
    flags = {"input": world.text, "vocab": world.vocab, "config": world.config}
    for module in [*sys.modules]:
        if module.partition(".")[0] in PACKAGES:
            monkeypatch.delitem(sys.modules, module)
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)
    return flags | {"output": str(tmp_path / "out")}


@pytest.mark.parametrize("runner", ["DirectRunner", "DaskRunner"])
def test_prepare_on_beam_says_what_to_install(without_extras, capsys, runner):
    flags = [f"--{name}={value}" for name, value in without_extras.items()]
    assert cli.main(["prepare", *flags, f"--runner={runner}"]) == 2
    assert capsys.readouterr().err == (
        f"xlnet prepare: --runner={runner} needs the package apache_beam, which is not installed: "
        "pip install '.[beam]' in its checkout, or the wheel with [beam] (docs/install.md)\n"
    )


def test_text_is_prepared_and_read_without_any_extra(without_extras):
    command("prepare", "--num_workers=1", **without_extras)
    batch = next(iter(pretraining_dataset(without_extras["output"], batch_size=2)))
    assert batch["token_ids"].shape[0] == 2
