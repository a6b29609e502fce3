"""The launch file of TPUs: a dry run as gcloud would."""

import json
import pathlib
import subprocess

import pytest

from tests.helpers.replicas.recorded_programs import RECORDING, calls, programs

LAUNCH = pathlib.Path(__file__).parents[3] / "tools/launch"
__all__ = ["programs"]  # A fixture.


@pytest.mark.parametrize("create", [[], ["create"]])
def test_the_tpu_script_creates_installs_and_starts(create, programs, tmp_path):
    variables = {"NAME": "a-tpu", "ZONE": "a-zone", "BUCKET": "a-bucket", "WHEEL": "a.whl"}
    variables["XLNET_TEST_STATUS"] = json.dumps({"describe": len(create)})
    programs(variables, xlnet=RECORDING, gcloud=RECORDING)
    arguments = ["pretrain", "--config=bucket/a config.yaml", "--data=d", "--output=$m"]
    subprocess.run([LAUNCH / "tpu_vm.sh", *arguments], check=True)
    made = calls(tmp_path)
    assert [call[4] for call in made] == ["describe", *create, "scp", "ssh", "ssh"]
    for call in made:
        assert call[:4] == ["gcloud", "compute", "tpus", "tpu-vm"] and "--zone=a-zone" in call
    install, start = (call[-1].removeprefix("--command=") for call in made[-2:])
    subprocess.run(["bash", "-n", "-c", install], check=True)
    assert "gcsfuse --implicit-dirs a-bucket bucket" in install
    subprocess.run(["bash", "-c", start], check=True)  # As the shell of the TPU VM reads it.
    assert calls(tmp_path)[-1] == ["xlnet", *arguments, "--strategy=tpu"]
