"""Time to quality: rows, the table, the peers' masks, and a run from start to end."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import yaml

from benchmarks.harness.rows import read_rows
from benchmarks.learning.time_to_quality import report
from benchmarks.learning.time_to_quality.runs import Run
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.objectives import create_objective

ROOT = pathlib.Path(__file__).parents[3]


def result(loss, seconds=60.0, steps=500):
    curve = [[seconds / 2, steps // 2, loss + 1], [seconds, steps, loss]]
    return {
        **{"curve": curve, "seconds": seconds, "steps": steps, "loss": loss},
        "unigram_loss": 6.5,
    }


def test_rows_are_kept_by_run(tmp_path):
    path = str(tmp_path / "rows.json")
    run, other = Run("news", "ours", 0, steps=500), Run("news", "ours", 1, steps=500)
    assert not report.has(path, run)
    report.add(path, run, result(5.0))
    report.add(path, other, result(5.2))
    report.add(path, run, result(5.1))
    assert report.has(path, run)
    assert not report.has(path, Run("docs", "ours", 0, steps=500))
    assert not report.has(path, Run("news", "ours", 0, steps=500, overrides=("mem_len=64",)))
    assert [row["loss"] for row in read_rows(path)] == [5.1, 5.2]


def test_table_has_the_best_rate_of_a_peer_and_the_mean_over_seeds(tmp_path):
    path, page = str(tmp_path / "rows.json"), tmp_path / "page.md"
    for seed, loss in ((0, 5.0), (1, 5.2)):
        report.add(path, Run("news", "ours", seed, steps=500), result(loss))
    report.add(path, Run("news", "ours", 0, steps=1400), result(4.5, 150.0, 1400))
    for rate, loss in ((1e-3, 5.4), (3e-3, 5.1), (1e-2, 5.3)):
        report.add(path, Run("news", "hf", 0, rate=rate, seconds=300), result(loss, 300.0, 1376))
    page.write_text("<!-- table: time -->\n<!-- end -->\n")
    report.write(path, str(page))
    lines = [line for line in page.read_text().splitlines() if "| news |" in line]
    assert lines == [
        "| tiny | news | unigram baseline |  |  |  | 6.500 |",
        "| tiny | news | ours | 2 | 500 | 60 | 5.100 ± 0.141 |",
        "| tiny | news | ours | 1 | 1400 | 150 | 4.500 |",
        "| tiny | news | HF, rate 0.003 | 1 | 1376 | 300 | 5.100 |",
    ]


def test_trials_name_what_differs_from_todays_recipe(tmp_path):
    path, page = str(tmp_path / "rows.json"), tmp_path / "page.md"
    for overrides, seed, loss in (((), 0, 5.0), (("model.dropout=0.3",), 0, 4.5), ((), 1, 5.2)):
        run = Run("news", "ours", seed, steps=500, overrides=overrides, is_timed=False)
        report.add(path, run, result(loss))
    page.write_text("<!-- table: trials -->\n<!-- end -->\n")
    report.write(path, str(page))
    lines = [line for line in page.read_text().splitlines() if "| news |" in line]
    assert lines == [
        "| tiny | news | 500 | model.dropout=0.3 | 1 | 5.500 | 5.500 | 4.500 |",
        "| tiny | news | 500 | the recipe | 2 | 6.100 | 6.100 | 5.100 |",
    ]
    assert report.shown(read_rows(path)) == {}


def test_a_run_is_another_once_the_recipe_has_changed(tmp_path, monkeypatch):
    path, run = str(tmp_path / "rows.json"), Run("news", "ours", 0, steps=500)
    name = run.name
    report.add(path, run, result(5.0))
    recipe = yaml.safe_load((ROOT / "configs/tiny.yaml").read_text())
    rate, recipe["training"]["learning_rate"] = recipe["training"]["learning_rate"], 0.125
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/tiny.yaml").write_text(yaml.safe_dump(recipe))
    monkeypatch.chdir(tmp_path)
    assert not report.has(path, run) and run.name != name
    report.add(path, run, result(4.0))
    report._today.cache_clear()
    lines = report.table(read_rows(path)).splitlines()
    report._today.cache_clear()
    assert [line.split(" | ")[2] for line in lines if "ours" in line] == [
        f"ours, training.learning_rate={rate}",
        "ours",
    ]


def test_recipes_do_not_mix(tmp_path):
    """Their texts have other vocabularies, so neither data nor losses can be shared."""
    path = str(tmp_path / "rows.json")
    runs = [Run("news", "ours", 0, steps=500, recipe=recipe) for recipe in ("tiny", "small")]
    assert len({run.directory("out") for run in runs}) == 2
    for run, loss in zip(runs, (5.0, 4.0), strict=True):
        report.add(path, run, result(loss))
    assert list(report.shown(read_rows(path))) == ["small, news", "tiny, news"]
    assert report.table(read_rows(path)).count("unigram baseline") == 2


def test_losses_on_different_held_out_text_share_no_table(tmp_path):
    path, document = str(tmp_path / "rows.json"), str(tmp_path / "document.md")
    for seed, unigram_loss in ((0, 6.5), (1, 6.3)):
        report.add(
            path,
            Run("news", "ours", seed, steps=500),
            {**result(4.7), "unigram_loss": unigram_loss},
        )
    with pytest.raises(
        ValueError, match=r"one loss of unigrams for tiny, news, got \[6\.3, 6\.5\]"
    ):
        report.write(path, document)


def test_names_of_runs_differ():
    runs = [
        Run("news", "ours", 0, steps=500),
        Run("news", "ours", 1, steps=500),
        Run("news", "ours", 0, steps=500, overrides=("model.mem_len=64",)),
        Run("news", "hf", 0, rate=1e-3, seconds=300),
        Run("news", "hf", 0, rate=3e-3, seconds=300),
        Run("news", "tfm", 0, rate=3e-3, seconds=300),
    ]
    names = {run.name for run in runs}
    assert len(names) == len(runs)
    assert not any(os.sep in name for name in names)


def test_masks_of_tf_models_official():
    tfm = pytest.importorskip("benchmarks.learning.time_to_quality.peers.tfm")
    data = {"seq_len": 23, "reuse_len": 11, "num_predict": 7, "target_ratio": 3.0}
    objective = create_objective(ObjectiveSections.of({"data": data}))
    generator = np.random.default_rng(0)
    token_ids = generator.integers(9, 97, [4, 23]).astype(np.int32)
    token_ids[:, -1], token_ids[:, -2] = 3, 4
    batch = {
        "token_ids": token_ids,
        "segment_ids": np.zeros([4, 23], np.int32),
        "is_word_start": generator.random([4, 23]) < 0.7,
        "can_be_target": token_ids >= 9,
        "is_reversed": np.array([True, False, True, False]),
        "window_id": np.arange(4, dtype=np.int64),
        "epoch": np.zeros(4, np.int32),
    }
    inputs = {n: v.numpy() for n, v in tfm.features(objective, batch).items() if v is not None}
    forward_first = [1, 3, 0, 2]
    np.testing.assert_array_equal(inputs["input_ids"], token_ids[forward_first])
    task = objective({name: value[forward_first] for name, value in batch.items()})
    order, positions = task.inputs["order"].numpy(), task.inputs["target_positions"].numpy()
    mask = task.mask_BP.numpy()
    for row in range(4):
        targets = set(positions[row][mask[row] > 0].tolist())
        assert set(np.flatnonzero(inputs["input_q"][row])) == targets
        for i in range(23):
            for j in range(23):
                hidden = order[row, j] > order[row, i] or (i == j and i in targets)
                assert inputs["perm_mask"][row, i, j] == hidden
        for slot, position in enumerate(positions[row]):
            one_hot = (np.arange(23) == position) * mask[row, slot]
            np.testing.assert_array_equal(inputs["target_mapping"][row, slot], one_hot)


@pytest.mark.slow
def test_runs_from_start_to_end(tmp_path):
    recipe = yaml.safe_load((ROOT / "configs/tiny.yaml").read_text())
    recipe["model"].update(vocab_size=300, d_model=32, num_heads=2, d_inner=32)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/tiny.yaml").write_text(yaml.safe_dump(recipe))
    text = "\n\n".join(
        (ROOT / "docs" / name).read_text() for name in ("concepts.md", "pretraining.md")
    )
    (tmp_path / "text.txt").write_text("\n\n".join(text.split("\n\n")))
    page = tmp_path / "page.md"
    shutil.copy(ROOT / "docs/time_to_quality.md", page)
    command = [
        *(sys.executable, "-m", "benchmarks.learning.time_to_quality", "--text=some=text.txt"),
        *("--output=out", "--seeds=0", "--steps=12", "--seconds=30"),
        *("--hf_rates=1e-3", "--tfm_rates=1e-3", "--results=rows.json", f"--document={page}"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run():
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
        return json.loads(done.stdout.splitlines()[-1])

    first = run()
    rows = read_rows(str(tmp_path / "rows.json"))
    assert first["rows"] == first["trained"] == len(rows) >= 2
    for row in rows:
        seconds, steps, losses = np.transpose(row["curve"])
        assert (np.diff(seconds) > 0).all()
        assert (np.diff(steps) > 0).all()
        assert seconds[0] > 1, "the clock starts with the process"
        assert 3 < losses[-1] < 8
    assert run() == {"rows": len(rows), "trained": 0}
