"""Steps as StableHLO: what they take and return, what the compilers say, and that jax agrees.

`XLNET_JAX_PYTHON` names the interpreter of an environment with jax (`make tpu-check`).
"""

import argparse
import json
import os
import pathlib
import subprocess
from dataclasses import replace

import pytest

from benchmarks.accelerators import __main__ as command
from benchmarks.accelerators import bundle, largest, other_python, report
from benchmarks.accelerators.chips import CHIPS
from benchmarks.accelerators.jax_side import hlo
from benchmarks.accelerators.rows import TABLES, key_of
from benchmarks.accelerators.steps import PEER, Case
from benchmarks.harness.tables import read_rows

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


def case(kind, precision="float32", device="TPU"):
    settings = (*SETTINGS, f"training.precision={precision}")
    return Case("configs/tiny.yaml", kind, batch_size=3, settings=settings, device=device)


needs_jax = pytest.mark.skipif(
    not os.path.isfile(os.environ.get(other_python.PYTHON_VARIABLE, "")),
    reason=f"{other_python.PYTHON_VARIABLE} names no interpreter",
)


def row(batch_size, fits=True, **changes):
    """What was measured on one core of a TPU."""
    compiled = {"arguments": 1.5e9, "temporaries": 5e9, "code": 356e6, "flops": 1.97e12}
    compiled |= {"bytes": 16.38e9, "cycles": 3e8, "loops": 0, "seconds": 300.0, "cpu_seconds": 321}
    return {
        **{"step": "base", "chip": "v5e", "layers": 12, "set": [], "batch_size": batch_size},
        **{"fits": fits, "tokens": 1000, "counted_flops": 1.9e12, "compiled": "2026-11-30"},
        **(compiled if fits else {}),
        **changes,
    }


OF_GPU = {"precision": "mixed_float16", "kernels": 388, "moved": 31.1e9, "cycles": None}
LARGE = OF_GPU | {"chip": "v100", "step": "large-classify-512"}
OF_SLICE = {"parameters": 150e6, "all_reduced": None, "chip": "16 v5e"}
ROWS = [
    *(row(8, loops=7), row(16), row(8), row(32, fits=False)),  # The first is measured again.
    row(8, set=["model.recompute=block"], bytes=0, chip="v4"),
    row(8, chip="v5p", loops=None, cycles=None),
    *(row(7, **LARGE), row(11, **LARGE), row(13, **LARGE, set=["training.precision=float32"])),
    row(29, **LARGE) | {"fits": False},
    row(8, **OF_GPU | {"chip": "a100", "precision": "float32"}),
    row(8, **OF_GPU, chip="h100", loops=1),
    row(8, **OF_SLICE),
    row(16, **OF_SLICE | {"all_reduced": 1e9, "cycles": None}),
]


MODULE = """HloModule step, entry_computation_layout={(f32[3,5]{1,0})->f32[3,5]{1,0}}

%fused (param: f32[3,5]) -> f32[3,5] {
  %param = f32[3,5]{1,0} parameter(0)
  ROOT %add = f32[3,5]{1,0} add(%param, %param)
}

%skip (a: f32[3,5]) -> f32[3,5] {
  ROOT %a = f32[3,5]{1,0} parameter(0)
}

%update (b: f32[3,5]) -> f32[3,5] {
  %b = f32[3,5]{1,0} parameter(0)
  ROOT %new = f32[3,5]{1,0} fusion(%b), kind=kInput, calls=%fused
}

ENTRY %main (x: f32[3,5]) -> (f32[3,5]) {
  %x = f32[3,5]{1,0} parameter(0)
  %ok = pred[] parameter(1)
  %small = bf16[3,7]{1,0} constant({...})
  %product = (bf16[3,7]{1,0}, s8[99]{0}) custom-call(%x, %small), custom_call_target="gemm"
  %first = bf16[3,7]{1,0} get-tuple-element(%product), index=0
  %loop = f32[3,5]{1,0} while(%x), condition=%skip, body=%update
  %chosen = f32[3,5]{1,0} conditional(%ok, %x, %x), branch_computations={%skip, %update}
  ROOT %out = (/*index=0*/f32[3,5]{1,0}) fusion(%chosen, %first), kind=kLoop, calls=%fused
}
"""


def test_traffic_of_a_module_by_hand():
    kernels = hlo.kernels_of(MODULE)
    assert [(kernel.kind, kernel.moved) for kernel in kernels] == [
        ("custom-call gemm", 60 + 42 + 42),  # The library's scratch is not counted.
        ("while", 60 + 60),
        ("fusion kInput", 60 + 60),
        ("fusion kLoop", 60 + 42 + 60),
    ]
    assert hlo.count_loops(MODULE) == 1
    assert hlo.largest_constant(MODULE) == 42
    several = "  %all-reduce.2 = (f32[128]{0:T(128)}, /*index=1*/f32[3,5]{1,0:T(8)}) all-reduce(%x)"
    assert hlo.all_reduced(MODULE + several) == 4 * 128 + 60


def test_estimates_of_a_module_by_hand():
    module = """ENTRY %main (x: f32[3,5]) -> f32[3,5] {
  %a = (f32[8]{0:T(128)S(1)}, /*index=1*/bf16[3,5]{1,0:T(8,128)(2,1)}) fusion(%x), kind=kLoop, \
metadata={op_name="step/attention/MatMul"}, backend_config={"estimated_cycles":"120"}
  %b = f32[3]{0} add(%x, %x), metadata={op_name="no/estimate"}
  ROOT %c = f32[3]{0} copy(%b), backend_config={"x":{},"estimated_cycles":"7"}
}
"""
    (first, *found), second = hlo.estimates_of(module)
    assert first == 120 and found[0].startswith("(f32[8]") and found[1] == "step/attention/MatMul"
    assert second == (7, "f32[3]{0}", "?")


@pytest.mark.parametrize("start", [1, 24, 100, 400])
def test_the_largest_batch_is_found_from_any_start(start, monkeypatch, tmp_path):
    """Memory that is not proportional to the rows: the largest size is still one that fits."""
    card, tried = CHIPS["v100"], {}

    def measured(case, chip):
        temporaries = 3e9 + 0.06e9 * case.batch_size
        fits = 1e9 + temporaries <= card.memory - card.reserved
        tried[case.batch_size] = fits
        return {"fits": fits, "arguments": 1e9, "temporaries": temporaries, "layers": 12}

    monkeypatch.setattr(largest, "measure", measured)
    largest.find("base-classify-64", (), "v100", start, str(tmp_path / "rows.json"))
    assert max(size for size, fits in tried.items() if fits) == 192  # Of 199.
    assert len(tried) < 8


def shown_rows():
    """The tables of the page, of all rows of this test."""
    tables = {"tpu": [], "gpu": [], "slices": []}
    for one in ROWS:
        chip = CHIPS[one["chip"]]
        name = "slices" if chip.replicas > 1 else chip.kind.lower()
        tables[name].append(key_of(one))
    return tables


def test_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "TABLES", shown_rows())
    results, document = str(tmp_path / "rows.json"), tmp_path / "page.md"
    names = ("tpu", "release", "gpu", "slices")
    document.write_text("".join(f"<!-- table: {name} -->\n<!-- end -->\n" for name in names))
    report.write(results, str(document))
    assert document.read_text().count("Not measured yet") == 4
    for one in ROWS:
        report.add(results, one)
    assert len(read_rows(results)) == 13
    report.write(results, str(document))
    text = document.read_text()
    for line in (
        "| base | v5e | 32 | does not fit |",
        "| large, 512 tokens | 1 | 13 | ? | 11 | ? |",
        # 0.6 GB go over links of 200 GB/s twice; a step of 200 ms takes 11.6 days in all.
        "| base | 16 v5e | 8 | 6.0 | 10 | 20 | 200 | 80,000 | 1.2 | 160 |",
        "| base | 16 v5e | 16 | 10.0 | 10 | 20 | ? | 800,000 | 0.1 | 3200 |",
        # 31.1 GB take 20 ms on an A100, 1.9 TFLOP 12.2 ms in TensorFloat-32.
        "| base | a100 | 8 | float32 | 1.50 | 5.00 | 12.2 | 20.0 | 50,000",
        # 1.9 TFLOP take 1.92 ms; what a loop moves is not known.
        "| base | h100 | 8 | float16 | 1.50 | 5.00 | 1.9 | ? | 520,526 |",
        "| base | v5p | 8 | 1.50 | 5.00 | 4 | 6 | ? | 168,803 |",
        # 16.38 GB take 20 ms on a v5e, 1.97 TFLOP 10 ms; on one of two cores of a v4 14.3 ms.
        "| base | v5e | 8 | 1.50 | 5.00 | 10 | 20 | 200 | 5,000 |",
        "| base, recompute=block | v4, one of 2 cores | 8 | 1.50 | 5.00 | 14 | 0 | 286 | 3,500 |",
    ):
        assert line in text
    assert text.count("Compiled on 2026-11-30:") == 4


def test_days_of_rows():
    rows = [{"compiled": f"2026-11-{day}"} for day in (26, 24, 30)]
    assert report.days(rows[:1]) == "on 2026-11-26"
    assert report.days(rows) == "from 2026-11-24 to 2026-11-30"


def test_the_page_has_the_rows_that_its_command_compiles():
    """And no flag that would be ignored is taken."""
    flags = argparse.Namespace(tables=[*TABLES], steps=[], chips=[], batch_sizes=[], set=[])
    keys = command._keys(flags)
    assert keys == [key for table in TABLES.values() for key in table]
    on_file = [key_of(row) for row in read_rows(report.RESULTS)]
    assert all(on_file.count(key) == 1 for key in keys)
    page = pathlib.Path(report.DOCUMENT).read_text(encoding="utf-8")
    for table, rows in TABLES.items():
        text = page.partition(f"<!-- table: {table} -->\n")[2].partition("<!-- end")[0]
        assert text.count("\n| ") == len(rows) + 2  # The head, and the line below it.
    flags.set = ["model.recompute=block"]
    with pytest.raises(SystemExit, match="need --steps or --chips"):
        command._keys(flags)
    flags.steps, flags.chips = ["large", "large-serve-512"], ["16 v5e"]
    sizes = [key.batch_size for key in command._keys(flags)]
    assert sizes == [8, 16, 32, 64]  # A served network sums no gradients.


@needs_jax
@pytest.mark.slow
def test_a_slice_sums_the_gradients_of_every_weight():
    measured = command.measure(replace(case("pretrain"), replicas=16), "16 v5e")
    assert measured["loops"] == 0
    assert 4 * measured["parameters"] <= measured["all_reduced"] < 4.1 * measured["parameters"]


@needs_jax
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "precision", "chip"),
    [
        ("pretrain", "mixed_bfloat16", "v5e"),
        ("serve", "mixed_bfloat16", "v5e"),
        ("pretrain", "mixed_float16", "v100"),  # With loss scaling.
        (PEER, "float32", "v100"),
    ],
)
def test_compiled_there_is_no_loop_and_no_large_constant(kind, precision, chip):
    device, rows = ("GPU", 2) if chip == "v100" else ("TPU", 3)
    measured = command.measure(replace(case(kind, precision, device), batch_size=rows), chip)
    assert measured["fits"] and measured["loops"] == 0
    assert measured["largest_constant"] < MEGABYTE
    if device == "TPU":
        assert measured["flops"] > 0.9 * measured["counted_flops"]
        return
    assert measured["moved"] > measured["arguments"]
    assert sum(number for number, _ in measured["kinds"].values()) == measured["kernels"] > 50


@needs_jax
@pytest.mark.nightly
def test_recomputation_saves_memory_on_a_gpu():
    """XLA must neither keep what is computed again nor compute it before it is needed."""
    step = replace(case("classify", "mixed_float16", "GPU"), batch_size=8)
    temporaries = []
    for recompute in ("none", "attention", "block"):
        changes = ("model.num_layers=4", f"model.recompute={recompute}")
        changed = replace(step, settings=(*step.settings, *changes))
        temporaries.append(command.measure(changed, "v100")["temporaries"])
    assert temporaries[1] < 0.9 * temporaries[0]
    assert temporaries[2] < 0.6 * temporaries[0]


@needs_jax
@pytest.mark.nightly
def test_jax_computes_the_losses_of_tensorflow(tmp_path):
    bundle.write_bundle(case("pretrain", device="GPU"), str(tmp_path), num_batches=3)
    python = os.environ[other_python.PYTHON_VARIABLE]
    environment = {name: v for name, v in os.environ.items() if not name.startswith("PYTHON")}

    def run(*flags):
        command = [python, "run_bundle.py", ".", *flags]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=environment | {"JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            check=False,
        )

    process = run("--steps=2", "--peak_tflops=1", "--profile=3")
    answer = json.loads(process.stdout.splitlines()[-1])
    assert process.returncode == 0 and answer["agrees"], process.stderr
    assert answer["difference"] < 1e-5
    assert len(set(answer["losses"])) == 3
    assert answer["share_of_peak"] > 0
    assert answer["kernels"] is None, "a CPU has no list of kernels"

    description = json.loads((tmp_path / "step.json").read_text())
    description["losses"][2] *= 1.001
    (tmp_path / "step.json").write_text(json.dumps(description))
    assert run("--steps=0").returncode == 1
