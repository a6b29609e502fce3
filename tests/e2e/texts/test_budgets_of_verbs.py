"""Memory by the rows of the input, and the size of a save by the number of replicas.

Measured at two sizes a factor of eight apart, each in a new process.
"""

import json
import os
import sys

import pytest

from benchmarks.data.prepare_memory import peak_megabytes
from tests.helpers.replicas.clusters import finish, recipe_of_replicas, start_cluster

pytestmark = pytest.mark.nightly

FEW, MANY = 1_500, 12_000
BYTES_OF_A_ROW = 2_000  # Of some 100 bytes of text: a row is kept once or twice, vectors are not.
OTHER_MEGABYTES = 40  # Chance: when memory is given back.
VERBS = ("score", "embed", "predict")


@pytest.mark.parametrize("verb", VERBS)
def test_memory_by_rows(verb, world, tmp_path):
    model = world.task("classification").model if verb == "predict" else world.pretrained
    peaks = []
    for num_rows in (FEW, MANY):
        source = tmp_path / f"{num_rows}.jsonl"
        rows = ({"text": f"The cat sat on the water {n % 7}."} for n in range(num_rows))
        source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        output = tmp_path / f"out{num_rows}{'.npy' if verb == 'embed' else '.jsonl'}"
        command = [sys.executable, "-m", "official.xlnet.cli", verb, f"--model={model}"]
        command += [f"--input={source}", f"--output={output}"]
        peaks.append(peak_megabytes(command))
        assert os.path.getsize(output)
    assert peaks[1] - peaks[0] <= BYTES_OF_A_ROW * (MANY - FEW) / 1e6 + OTHER_MEGABYTES, peaks


def test_the_size_of_a_save_does_not_grow_with_replicas(world, tmp_path, tmp_path_factory):
    """The same batch, on one device and dealt out to eight."""
    recipe = recipe_of_replicas(world, tmp_path_factory, ["num_lanes=16", "batch_size=16"])
    sizes = []
    for replicas in (1, 8):
        output = tmp_path / str(replicas)
        flags = ["pretrain", f"--config={recipe}", f"--data={recipe}/data", f"--output={output}"]
        finish(start_cluster("mirrored", [*flags, "--steps=2"], replicas=replicas))
        files = [path for path in output.iterdir() if path.name.startswith("ckpt-2.data")]
        sizes.append(sum(path.stat().st_size for path in files))
    assert sizes[0] <= sizes[1] <= 1.01 * sizes[0], sizes
