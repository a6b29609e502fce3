"""The ablation: its spans, their joint likelihood by hand, its tables."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.harness.document import fill_table
from benchmarks.learning import ablation, ablation_report
from benchmarks.learning.span_likelihood import (
    MAX_TOKENS,
    _losses_and_memory,
    choose_span,
    choose_token,
)
from official import xlnet
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime import history
from official.xlnet.tokenization.special_tokens import MASK_ID, SEP_ID
from tests.helpers.documents import ROOT
from tests.helpers.tiny import MEMORY, random_windows, randomize, tiny_config


def test_spans_are_whole_words_of_several_tokens():
    batch = {name: value.numpy() for name, value in random_windows(0, batch=40, tokens=29).items()}
    lengths = set()
    for row in range(40):
        ids, starts = batch["token_ids"][row], batch["is_word_start"][row]
        start, length = choose_span(
            ids, starts, batch["can_be_target"][row], np.random.default_rng(row)
        )
        if not length:
            continue
        lengths.add(length)
        end = start + length
        assert starts[start] and starts[end] and 2 <= length <= MAX_TOKENS
        assert starts[start:end].sum() <= 3 and SEP_ID not in ids[: end + 1]
    assert len(lengths) >= 3


def test_a_token_is_any_that_can_be_a_target():
    batch = {name: value.numpy() for name, value in random_windows(0, batch=40, tokens=29).items()}
    chosen = set()
    for row in range(40):
        ids, can_be_target = batch["token_ids"][row], batch["can_be_target"][row]
        rng = np.random.default_rng(row)
        position, length = choose_token(ids, batch["is_word_start"][row], can_be_target, rng)
        assert length == 1 and can_be_target[position] and SEP_ID not in ids[: position + 1]
        chosen.add((position, batch["is_word_start"][row][position]))
    assert {is_start for _, is_start in chosen} == {False, True} and len(chosen) > 10


@pytest.mark.parametrize("kind", ["permutation", "denoising"])
def test_span_losses_by_hand(kind):
    """Permutation: one token more is seen at each step. Denoising: none, all at once."""
    model = XLNetPretrainer(tiny_config(kind=kind))
    randomize(model.trainable_variables, seed=1)
    batch = random_windows(3, batch=2, context_length=[0, 5])
    states = np.random.default_rng(0).standard_normal([2, 2, MEMORY, 22]).astype(np.float32)
    start, length = np.array([1, 2], np.int32), np.array([3, 2], np.int32)
    losses, memory = _losses_and_memory(
        model, batch, tf.constant(start), tf.constant(length), tf.constant(states)
    )
    assert memory.shape == states.shape
    ids = batch["token_ids"].numpy()
    for row in range(2):
        recalled = {
            "memory": states[:, row : row + 1],
            "memory_length": batch["context_length"][row : row + 1],
            "segment_ids": batch["segment_ids"][row : row + 1],
        }
        for place in range(length[row]):
            position = start[row] + place
            given = ids[row : row + 1].copy()
            if kind == "denoising":
                given[0, start[row] : start[row] + length[row]] = MASK_ID
                asked = {"content_positions": np.array([[position]])}
            else:
                order = np.zeros_like(given)
                order[0, start[row] : start[row] + length[row]] = 1 + np.arange(length[row])
                asked = {"order": order, "target_positions": np.array([[position]])}
            logits = model({"token_ids": given, **recalled, **asked})["logits"][0, 0]
            wanted = -tf.nn.log_softmax(logits)[ids[row, position]]
            np.testing.assert_allclose(losses[row, place], wanted, atol=1e-4)


def test_means_by_place():
    nan = np.nan
    losses = np.array([[1.0, 2.0, 3.0], [5.0, 3.0, nan], [nan, nan, nan]])
    assert ablation.mean_by_place(losses) == {
        "spans": 2,
        "span": 7.0,
        "token": 2.8,
        "first": 3.0,
        "later": pytest.approx(8 / 3),
    }


def made_up_run(row, seed, span):
    return {
        "row": row,
        "seed": seed,
        "heldout_loss": 5.0 + seed,
        "seconds_per_step": 0.1,
        "span_losses": {"span": span, "token": 2.0, "first": 3.0, "later": 1.0},
    }


@pytest.mark.parametrize(("speed", "seconds"), [(0.0, None), (640.0, 1.6)])
def test_a_model_that_an_earlier_process_trained(tmp_path, monkeypatch, speed, seconds):
    """`pretrain` has no speed if no step is left; the other results count all the same."""
    (tmp_path / "runs").mkdir()
    trained = {"step": 3, "tokens_per_second": speed}
    monkeypatch.setattr(xlnet, "pretrain", lambda config, data, model_dir: trained)
    monkeypatch.setattr(xlnet, "evaluate", lambda model_dir, data: {"loss": 5.0})
    monkeypatch.setattr(history, "read_history", lambda model_dir: [{"loss": 6.0}])
    monkeypatch.setattr(ablation, "spans_of", lambda *_: np.array([[1.0, 2.0]]))
    ablation.run("bert", 0, str(tmp_path), ["batch_size=16", "seq_len=64"], None)
    result = json.loads((tmp_path / "runs/bert-0.json").read_text())
    assert result["seconds_per_step"] == seconds
    assert result["span_losses"]["span"] == 3.0


def test_the_time_of_a_step_is_that_of_the_runs_that_know_it():
    runs = [{"seconds_per_step": seconds} for seconds in (0.1, None, 0.3)]
    assert ablation_report.milliseconds_per_step(runs) == "200"
    assert ablation_report.milliseconds_per_step(runs[1:2]) == ""


def test_tables(tmp_path):
    spans = {"xlnet_k6": (5.0, 5.1, 5.2), "dae_transformer_xl": (6.0, 6.2, 6.1), "bert": (5.0,) * 3}
    (tmp_path / "runs").mkdir()
    for row, values in spans.items():
        for seed, span in enumerate(values):
            path = tmp_path / "runs" / f"{row}-{seed}.json"
            path.write_text(json.dumps(made_up_run(row, seed, span)))
    shutil.copy(ROOT / "docs/ablation.md", tmp_path / "page.md")
    ablation_report.write(ablation.read_results(str(tmp_path)), str(tmp_path / "page.md"))
    page = (tmp_path / "page.md").read_text()
    assert "| XLNet, K = 6 | 3 | 5.100 ± 0.100 |" in page
    assert "both with memory | +1.000 | 0.058 | better |" in page
    assert "vs. BERT | -0.100 | 0.058 | no |" in page
    results = ablation.read_results(str(tmp_path))
    ablation_report.write(results, str(tmp_path / "page.md"), "short_windows")
    differences = "| permutation vs. BERT | -0.100 | 0.058 | no |"
    assert (tmp_path / "page.md").read_text().count(differences) == 2
    with pytest.raises(ValueError, match="expected one place"):
        fill_table(str(tmp_path / "page.md"), "nothing", "")


def test_finished_runs_are_not_run_again(tmp_path):
    (tmp_path / "runs").mkdir()
    path = tmp_path / "runs" / "bert-1.json"
    path.write_text(json.dumps(made_up_run("bert", 1, 2.0)))
    before = path.stat().st_mtime_ns
    ablation.run("bert", 1, str(tmp_path), [], None)
    assert path.stat().st_mtime_ns == before and not (tmp_path / "models").exists()
