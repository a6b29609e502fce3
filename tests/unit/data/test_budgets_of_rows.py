"""What grows with the rows of a batch until its first batch is read: open files, memory and time.

Measured at two sizes a factor of eight apart, each in a new process.
"""

import json
import subprocess
import sys

import pytest

from benchmarks.data.random_records import write_data_set

pytestmark = pytest.mark.nightly

FEW, MANY = 1_024, 8_192  # The second is the batch of configs/large.yaml.
OTHER_FILES = 64  # Of Python and TensorFlow.
MEGABYTES_OF_A_ROW, SECONDS_OF_A_ROW = 0.1, 0.004  # Twice the time that docs/distributed.md says.

FIRST_BATCH = """
import json, os, pathlib, sys, time
from official.xlnet.data.pretraining_dataset import pretraining_dataset

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

path, num_rows, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
next(iter(pretraining_dataset(path, 2)))
before, begun = resident(), time.process_time()
batches = iter(pretraining_dataset(path, num_rows, start_step=step))
batch = next(batches)
assert batch["window_id"].shape == [num_rows]
seconds = time.process_time() - begun
print(json.dumps([len(os.listdir("/proc/self/fd")), (resident() - before) / 1e6, seconds]))
"""


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("records"))
    write_data_set(path, seq_len=19, reuse_len=7, num_lanes=MANY, windows_per_lane=3)
    return path


@pytest.mark.parametrize("step", [0, 1])
def test_each_row_has_its_share_at_the_start_and_at_a_resume(data_set, step):
    measured = {}
    for num_rows in (FEW, MANY):
        command = [sys.executable, "-c", FIRST_BATCH, data_set, str(num_rows), str(step)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr
        measured[num_rows] = json.loads(process.stdout.splitlines()[-1])
    for num_rows, (num_files, _, _) in measured.items():
        assert num_files <= num_rows + OTHER_FILES
    rows = MANY - FEW
    _, megabytes, seconds = (
        many - few for few, many in zip(measured[FEW], measured[MANY], strict=True)
    )
    assert megabytes <= MEGABYTES_OF_A_ROW * rows
    assert seconds <= SECONDS_OF_A_ROW * rows
