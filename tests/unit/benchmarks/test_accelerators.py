"""Steps as StableHLO: what they take and return, what a TPU's compiler says, and that jax agrees.

`XLNET_JAX_PYTHON` names the interpreter of an environment with jax and libtpu (`make tpu-check`).
"""

import json
import math
import os
import subprocess

import pytest

from benchmarks.accelerators import other_python, report
from benchmarks.accelerators.__main__ import measure
from benchmarks.accelerators.bundle import write_bundle
from benchmarks.accelerators.steps import KINDS, STEPS, Case, trace, write_step
from benchmarks.costs import flops
from benchmarks.harness.rows import read_rows
from official.xlnet.modeling.kernels.device_forms import built_for

# Two layers; sizes with many binary digits, blocks of the content stream and dropout.
SETTINGS = (
    "model.vocab_size=4000",
    "model.num_layers=2",
    "model.mem_len=64",
    "training.optimizer=adamw",
    "model.dropout=0.1",
    "model.dropatt=0.1",
    "data.seq_len=192",
    "data.reuse_len=96",
)
MEGABYTE = 1e6
# Loss and number of targets; in pre-training the norm of the gradient and the share of memory, too.
NUM_RESULTS = {"pretrain": 4, "classify": 2, "answer": 2, "serve": 1}


def case(kind, precision="float32", device="TPU"):
    settings = (*SETTINGS, f"training.precision={precision}")
    return Case("configs/tiny.yaml", kind, batch_size=3, settings=settings, device=device)


needs_jax = pytest.mark.skipif(
    not os.path.isfile(os.environ.get(other_python.PYTHON_VARIABLE, "")),
    reason=f"{other_python.PYTHON_VARIABLE} names no interpreter",
)


@pytest.mark.parametrize("kind", KINDS)
def test_description_of_a_step(kind, tmp_path):
    step = trace(case(kind))
    write_step(case(kind), step, str(tmp_path))
    description = json.loads((tmp_path / "step.json").read_text())
    sizes = [math.prod(spec["shape"]) for spec in description["state"]]
    shape = case(kind).shape()
    if kind == "pretrain":  # Weights and two moments, besides memory and a few numbers.
        memory = shape.num_layers * shape.batch_size * shape.mem_len * shape.d_model
        rest = sum(sizes) - 3 * flops.num_parameters(shape) - memory
        assert 0 < rest < 20
    tokens = [3, 1, 192] if kind in ("classify", "answer") else [3, 192]
    assert {"dtype": "int32", "shape": tokens} in description["batch"]
    assert description["tokens"] == 3 * 192
    assert description["num_results"] == NUM_RESULTS[kind]
    with built_for("TPU"):
        counted = flops.total(flops.computed(shape, training=kind != "serve"))
    assert description["flops"] == counted
    assert (tmp_path / "step.mlir").stat().st_size < 4 * MEGABYTE


def test_table_has_every_kind_of_step_of_both_models():
    kinds = {(family.config, family.kind, family.seq_len) for family in STEPS.values()}
    for config in ("configs/base.yaml", "configs/large.yaml"):
        for kind, length in (
            ("pretrain", 0),
            ("classify", 128),
            ("classify", 512),
            ("answer", 512),
            ("serve", 512),
        ):
            assert (config, kind, length) in kinds
    for family in STEPS.values():
        family.case(8).load()


def row(batch_size, fits=True, **changes):
    measured = {
        "step": "base",
        "chip": "v5e",
        "layers": 12,
        "set": [],
        "batch_size": batch_size,
        "fits": fits,
        "tokens": 1000,
        "counted_flops": 1.9e12,
    }
    if fits:
        measured |= {
            "arguments": 1.5e9,
            "temporaries": 5e9,
            "code": 356e6,
            "flops": 1.97e12,
            "bytes": 16.38e9,
            "cycles": 3e8,
            "loops": 0,
            "seconds": 300.0,
            "cpu_seconds": 321.0,
        }
    return measured | changes


def test_tables(tmp_path):
    results, document = str(tmp_path / "rows.json"), tmp_path / "page.md"
    names = ("memory", "largest", "release", "speed")
    empty = "".join(f"<!-- table: {name} -->\n<!-- end -->\n" for name in names)
    document.write_text(empty)
    report.write(results, str(document))
    assert document.read_text().count("Not measured yet") == 4
    for one in (row(8, loops=7), row(16), row(8), row(32, fits=False)):
        report.add(results, one)
    report.add(results, row(8, set=["model.recompute=block"], bytes=0, chip="v4"))
    report.add(results, row(8, chip="v5p", loops=None, cycles=None))
    report.add(results, row(64, step="large-classify-512"))
    assert len(read_rows(results)) == 6
    report.write(results, str(document))
    text = document.read_text()
    assert "| base | v5e | 8 | 1.50 | 5.00 | 356 | 0 | 321 |" in text
    assert "| base | v5e | 32 | does not fit |" in text
    assert "| base | v5e | 16 | 32 |" in text
    assert "| base, recompute=block | v4 | 8 | not reached |" in text
    assert "| large, 512 tokens | 1 | 64+ |" in text
    assert "| base | v5p | 8 | 1.50 | 5.00 | 356 | ? | 321 |" in text
    # 16.38 GB take 20 ms on a v5e, 1.97 TFLOP 10 ms; on one of two cores of a v4 14.3 ms.
    assert "| base | v5e | 8 | 1.97 | 1.90 | 16 | 20 | 50,000 | 200 |" in text
    assert "| base, recompute=block | v4 | 8 | 1.97 | 1.90 | 0 | 14 | 139,594 | 286 |" in text


def test_without_jax_it_says_what_to_do(monkeypatch):
    monkeypatch.setenv(other_python.PYTHON_VARIABLE, "/nowhere/python")
    with pytest.raises(ValueError, match="tpu-check"):
        other_python.run("write_portable.py", "folder")


@needs_jax
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_for_a_tpu_there_is_no_loop_and_no_large_constant(kind):
    measured = measure(case(kind, "mixed_bfloat16"), "v5e")
    assert measured["fits"]
    assert measured["loops"] == 0
    assert measured["largest_constant"] < MEGABYTE
    assert measured["flops"] > 0.9 * measured["counted_flops"]


@needs_jax
@pytest.mark.slow
@pytest.mark.parametrize("device", ["GPU", "TPU"])
def test_jax_computes_the_losses_of_tensorflow(device, tmp_path):
    write_bundle(case("pretrain", device=device), str(tmp_path), num_batches=3)
    python = os.environ[other_python.PYTHON_VARIABLE]
    environment = {name: v for name, v in os.environ.items() if not name.startswith("PYTHON")}

    def run():
        command = [python, "run_bundle.py", ".", "--steps=2", "--peak_tflops=1"]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=environment | {"JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            check=False,
        )

    process = run()
    answer = json.loads(process.stdout.splitlines()[-1])
    assert process.returncode == 0 and answer["agrees"], process.stderr
    assert answer["difference"] < 1e-5
    assert len(set(answer["losses"])) == 3
    assert answer["share_of_peak"] > 0

    description = json.loads((tmp_path / "step.json").read_text())
    description["losses"][2] *= 1.001
    (tmp_path / "step.json").write_text(json.dumps(description))
    assert run().returncode == 1
