"""Benchmarks of learning: spans and their likelihood by hand, fair peers, what stands in tables."""

import itertools
import json
import pathlib
import re
import shutil
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.harness import small_runs, verdicts
from benchmarks.harness.tables import (
    command_above,
    command_digest,
    fill_table,
    read_rows,
    recipe_digests,
)
from benchmarks.harness.verdicts import Difference, difference, over_runs
from benchmarks.learning import __main__ as memory
from benchmarks.learning import (
    ablation,
    agreement,
    any_order,
    common,
    cues,
    few_labels,
    minimal_pairs,
    rivals,
    stale,
    untuned,
)
from benchmarks.learning.common import kept, publish
from benchmarks.learning.span_likelihood import (
    _losses_and_memory,
)
from benchmarks.learning.time_to_quality import report
from benchmarks.learning.time_to_quality.runs import Run
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.errors import DataError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.tokenization.special_tokens import MASK_ID
from tests.helpers.documents import ROOT
from tests.helpers.small_language_model import NumberTokenizer
from tests.helpers.tiny import MEMORY, random_windows, randomize, tiny_config

# (page, key in its JSON file, its tables).
STORED = [
    ("ablation", "rows", ablation.tables),
    ("ablation", "cues", cues.tables),
    ("experiments", "readings", any_order.tables),
    ("experiments", "memory", memory.tables),
]
VERDICT = r"([+-][\d.]+) ± ([\d.]+), (ahead|behind|no difference)"
TABLE = re.compile(r"<!-- table: (\S+) -->\n(.*?)\n<!-- end", re.S)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["permutation", "denoising"])
def test_span_losses_by_hand(kind):
    """From left to right one token more is known at each step; from the context alone, none."""
    model = XLNetPretrainer(tiny_config(kind=kind))
    randomize(model.trainable_variables, seed=1)
    batch = random_windows(3, batch=2, context_length=[0, 5])
    states = np.random.default_rng(0).standard_normal([2, 2, MEMORY, 22]).astype(np.float32)
    start, length = np.array([1, 2], np.int32), np.array([3, 2], np.int32)
    both, memory = _losses_and_memory(
        model, batch, tf.constant(start), tf.constant(length), tf.constant(states)
    )
    assert memory.shape == states.shape
    ids = batch["token_ids"].numpy()
    asked = "content_positions" if kind == "denoising" else "target_positions"
    found, targets, questions = [], [], []  # One row of a batch for each question.
    for row, reading in itertools.product(range(2), range(2)):
        span = slice(start[row], start[row] + length[row])
        for place, position in enumerate(range(span.start, span.stop)):
            hidden = slice(span.start if reading else position, span.stop)
            question = {
                "memory": states[:, row],
                "memory_length": batch["context_length"][row],
                "segment_ids": batch["segment_ids"][row],
                "token_ids": ids[row].copy(),
                asked: [position],
            }
            if kind == "denoising":
                question["token_ids"][hidden] = MASK_ID
            else:
                question["order"] = np.zeros_like(ids[row])
                question["order"][span] = 1 if reading else 1 + np.arange(length[row])
            questions.append(question)
            found.append(both[reading, row, place])
            targets.append(ids[row, position])
    inputs = {name: np.stack([question[name] for question in questions]) for name in questions[0]}
    inputs["memory"] = inputs["memory"].swapaxes(0, 1)  # Layers first.
    log_p = tf.nn.log_softmax(model(inputs)["logits"][:, 0])
    wanted = -log_p.numpy()[range(len(targets)), targets]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_verdicts_by_hand():
    """Quantiles of Student's t, whose level Holm's correction divides among the cells."""
    seeds = [1.0, 1.1, 1.2]  # t = 19 of two degrees: p = 0.0027.
    sure = difference(1.1, over_runs(seeds))
    np.testing.assert_allclose(sure, (1.1, 0.1 / np.sqrt(3), 2))
    np.testing.assert_allclose(difference(0.0, (0.01, 3), (0.03, 3)), (0.0, 0.2, 4.8))
    two_errors = Difference(-0.4, 0.1, 2)  # p = 0.057.
    assert verdicts.with_verdicts([sure, two_errors, None, Difference(0.5, 0.0, 0)], 1) == [
        *("+1.1 ± 0.2, ahead", "-0.4 ± 0.4, no difference", "", "+0.5, one run")
    ]
    doubtful = Difference(-0.31, 0.1, 10)  # p = 0.011: enough alone and beside four, not five.
    for number, word in ((1, "behind"), (4, "behind"), (5, "no difference")):
        others = [Difference(0.0, 0.1, 10 + n) for n in range(number - 1)]
        assert verdicts.with_verdicts([*others, doubtful])[-1] == f"-0.310 ± 0.223, {word}"
    steps = [Difference(0.1, 0.1 / t, 10) for t in (3.1, 3.2, 2.6)]  # p = 0.011, 0.009, 0.026.
    assert all(cell.endswith("ahead") for cell in verdicts.with_verdicts(steps))


def test_intervals_are_students():
    """0.1 / √3 times 4.303, the quantile of two degrees of freedom."""
    assert verdicts.mean_and_interval([1.0, 1.1, 1.2]) == "1.100 ± 0.248"
    assert verdicts.mean_and_interval([7.0], 0) == "7"
    assert verdicts.mean_and_interval([np.nan, 1.0, 1.1, np.nan, 1.2], 2) == "1.10 ± 0.25"
    assert verdicts.mean_and_interval([np.nan]) == verdicts.mean_and_interval([]) == ""
    [cell] = verdicts.with_verdicts([Difference(2.0, 0.1 / np.sqrt(3), 2)])
    assert cell == "+2.000 ± 0.248, ahead"


@pytest.mark.parametrize(("page", "name", "tables"), STORED)
def test_tables_and_verdicts_are_those_of_the_stored_runs(page, name, tables):
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    runs = json.loads((ROOT / f"docs/{page}.json").read_text(encoding="utf-8"))[name]
    for title, table in tables(runs).items():
        command = command_digest(command_above(text, title))
        measured = ", ".join(sorted({command, *(x for run in runs for x in run["measured"])}))
        assert f"<!-- table: {title} -->\n{table}\n<!-- end: {measured}, numbers " in text


def test_every_verdict_of_a_page_is_recomputed_here():
    """By one of the two tests beside this one; tables without verdicts come from rows on file."""
    stored = set()
    for page, name, tables in STORED:
        runs = json.loads((ROOT / f"docs/{page}.json").read_text(encoding="utf-8"))[name]
        stored |= {(page, title) for title in tables(runs)}
    pages = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("docs/*.md")}
    shown = {(page, *table) for page, text in pages.items() for table in TABLE.findall(text)}
    assert {each[:2] for each in shown if re.search(VERDICT, each[2])} <= stored
    outside = {page for page, text in pages.items() if re.search(VERDICT, TABLE.sub("", text))}
    assert outside == set()
    rows = read_rows(str(ROOT / "docs/time_to_quality.json"))
    assert ("time_to_quality", "steps", report.table(rows)) in shown
    orders = json.loads((ROOT / "docs/agreement.json").read_text(encoding="utf-8"))["orders"]
    assert ("experiments", "pairs", minimal_pairs.table_of(orders)) in shown
    assert all(metrics["clusters"] == [10] for metrics in orders.values())


def test_the_ablation_compares_means_over_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.harness.tables.small_numbers", lambda _: (4.5, 3.5))
    losses = np.array([[1.0, 2.0, 3.0], [5.0, 3.0, np.nan], [np.nan, np.nan, np.nan]])
    means = {"spans": 2, "span": 7.0, "token": 2.8, "first": 3.0, "later": pytest.approx(8 / 3)}
    assert ablation.mean_by_place(losses) == means
    spans = {"xlnet_k6": (5.0, 5.1, 5.2), "dae_transformer_xl": (6.0, 6.2, 6.1), "bert": (5.0,) * 3}
    for row, values in spans.items():
        for seed, span in enumerate(values):
            result = {"row": row, "seed": seed, "heldout_loss": 5.0, "alone": 9.0 + span}
            result |= means | {"span": span, "later": 1.0, "training_loss": [7.0]}
            result |= {"cpu_seconds": 80.0}
            path = str(tmp_path / "runs" / f"{row}-{seed}.json")
            assert kept(path, lambda found=result: found, "configs/tiny.yaml")
            assert kept(path, lambda: {"seed": "again"})["seed"] == seed
    page = shutil.copy(ROOT / "docs/ablation.md", tmp_path / "page.md")
    runs = ablation.read_results(str(tmp_path))
    publish(str(page), "rows", runs, ablation.tables(runs))
    publish(str(page), "others", runs[:1], {})
    stored = json.loads((tmp_path / "page.json").read_text())
    assert set(stored) == {"rows", "others"} and len(stored["rows"]) == 9
    assert "training_loss" not in stored["rows"][0]
    text = page.read_text()
    for line in (
        "| XLNet, K = 6 | 3 | 5.100 ± 0.248 |",
        "| DAE + Transformer-XL | +1.000 ± 0.248, ahead | +1.000 ± 0.248, ahead |  |  |",
        "| BERT | -0.100 ± 0.248, no difference |",
    ):
        assert line in text
    command = command_digest(command_above(text, "rows"))
    entries = [command, *recipe_digests("configs/tiny.yaml"), "numbers 4.5 3.5"]
    assert f"<!-- end: {', '.join(entries)} -->" in text
    with pytest.raises(ValueError, match="expected one place"):
        fill_table(str(page), "nothing", "")


def test_the_first_seed_tries_every_rate_and_the_others_its_best(tmp_path, monkeypatch, capsys):
    trained, finetuned = [], []

    def train(row, seed, output, settings, model_dir):
        run = pathlib.Path(model_dir).name
        trained.append((run, row, next(x for x in settings if x.startswith("num_steps"))))
        shift = seed if row == "bert" else 2.0
        windows = {name: [1.0 + shift, 4.0 + shift] for name in rivals._LIKELIHOODS}
        # The spans that are reported do not select.
        result = {"windows": windows}
        own = {"bert-20-0.001-0": 3.0, "xlnet_k6-20-0.003-0": 4.0}.get(run, 5.0)
        return result | {"own_loss": own, "span": -own}

    def accuracy(model, tables, output, overrides):
        finetuned.append(pathlib.Path(model).name)
        pathlib.Path(output).mkdir(parents=True)
        rows = [{"label": label, "expected": "1"} for label in "1101"]
        text = "\n".join(map(json.dumps, rows))
        pathlib.Path(output, "predictions.jsonl").write_text(text)

    page = tmp_path / "page.md"
    names = ("rivals", "accuracy", "differences")
    page.write_text("\n".join(f"<!-- table: {name} -->\n<!-- end -->" for name in names))
    monkeypatch.setattr(ablation, "prepare_data", lambda *_: None)
    monkeypatch.setattr(ablation, "trained", train)
    monkeypatch.setattr(rivals, "accuracy", accuracy)
    shares = {"bag_of_words": 0.8, "majority": 0.5}
    monkeypatch.setattr(rivals, "baselines_of", lambda model_dir, *tables: shares)
    command = ["rivals", "--text=x", f"--data={tmp_path}", f"--output={tmp_path / 'out'}"]
    command += ["--tasks=sst2", "--steps=20", "--rates=1e-3,3e-3", "--seeds=2"]
    command += ["--rows=bert,xlnet_k6", f"--document={page}"]
    monkeypatch.setattr(sys, "argv", command)
    rivals.main()
    tried = [f"{row}-20-{rate}-0" for row in ("bert", "xlnet_k6") for rate in (0.001, 0.003)]
    names = [name for name, *_ in trained]
    assert names == [*tried, "bert-20-0.001-1", "xlnet_k6-20-0.003-1"]
    assert {x[1:] for x in trained} == {("bert", "num_steps=29"), ("xlnet_k6", "num_steps=20")}
    best = ["bert-20-0.001-0", "xlnet_k6-20-0.003-0", "bert-20-0.001-1", "xlnet_k6-20-0.003-1"]
    assert finetuned == best
    text = page.read_text()
    # Errors of seeds −2 and −1; every window is the same, so the degrees are those of seeds: one.
    for line in (
        "| BERT | 0.001 | 2 | 3.000 ± 6.353 | 3.000 ± 6.353 | 3.000 ± 6.353 |",
        "| XLNet, K = 6 | 75.0 ± 0.0 | 75.0 ± 0.0 |",
        "| bag of words | 80.0 | 80.0 |",
        "| BERT | -1.50 ± 6.35, no difference | -1.50",
    ):
        assert line in text
    [bert, ours, *_] = json.loads((tmp_path / "page.json").read_text())["rivals"]
    assert bert["differences"]["token"] == [-1.5, 0.5, 1.0] and ours["differences"] == {}
    first = capsys.readouterr()
    # Without time, what is finished is read, and nothing else begun.
    monkeypatch.setattr(sys, "argv", [*command, "--seeds=3", "--minutes=1e-9"])
    rivals.main()
    assert (len(trained), len(finetuned)) == (6, 4)
    assert capsys.readouterr().out.splitlines()[-1] == first.out.splitlines()[-1]
    monkeypatch.setattr(sys, "argv", [*command, "--rows=bert"])
    rivals.main()  # Without XLNet there is nothing to compare it with.
    assert "| bag of words | 80.0 | 80.0 |" in page.read_text()
    assert "±" not in page.read_text().partition("table: differences")[2].partition("end")[0]


def test_rates_are_selected_on_windows_that_are_not_reported(tmp_path, monkeypatch):
    """The own loss is of the first half of each lane's windows, likelihoods of the second."""
    losses, taken = np.arange(14.0).reshape(7, 2), []
    losses[5, 0] = np.nan
    monkeypatch.setattr(ablation, "trained", lambda *_: {})
    monkeypatch.setattr(
        ablation, "spans_of", lambda *_: {"left to right": losses, "context alone": losses + 1}
    )

    class Model:
        config = tiny_config()

        def compile(self, jit_compile):
            pass

        def evaluate(self, batches, **options):
            taken.extend(int(x) for x in batches)
            return {"loss": 2.5}

    monkeypatch.setattr(rivals, "model_with", lambda *_, **__: Model())
    windows = tf.data.Dataset.range(7)
    monkeypatch.setattr(rivals.xlnet, "pretraining_dataset", lambda *_, **__: windows)
    monkeypatch.setattr(
        "official.xlnet.data.pretraining_dataset.Records",
        lambda path: types.SimpleNamespace(largest_batch=lambda *_: 1),
    )
    found = rivals.trained(rivals.Run("bert", 20, 1e-3, 0), str(tmp_path), [])
    assert taken == [0, 1, 2] and found["own_loss"] == 2.5
    assert found["windows"]["token"] == [17.0, 25.0]  # Windows 4 and 6: 8 + 9, 12 + 13.


def test_every_printed_column_of_orders_is_compared_over_seeds_and_texts():
    """Two rows in each design, three seeds, two texts; an accuracy is better if higher."""
    random, runs = np.random.default_rng(0), []
    for design, (row, steps) in itertools.product(("whole", "halves"), (("k1", 70), ("k6", 90))):
        for seed in range(3):
            sums, sizes = [float(x) for x in random.normal(8, 1, 2)], [4, 5]
            run = {"design": design, "row": row, "equal": "compute", "steps": steps, "seed": seed}
            run |= {"rate": "1e-3", "cpu_seconds": 7.0 + seed, "span": sum(sums) / 9}
            run |= {"of_texts": {"span": sums}, "sizes": {"span": sizes}}
            runs.append(run | {"accuracy, cr": random.uniform(), "examples": {"cr": 50}})
    runs += [run | {"equal": "targets", "steps": 20} for run in runs[:3]]
    runs[0]["cpu_seconds"] = None  # Resumed.
    found = any_order.tables(runs)
    table, differences = (found[name].splitlines() for name in ("readings", "differences"))
    assert table[0].split(" | ")[4:] == differences[0].split(" | ")[1:]
    assert "| K = 1, whole window | 70 | 1e-3 | 8 ± 6 |" in table[2]
    assert [line.split(" | ")[0] for line in differences[2:]] == [
        *("| K = 1 against K = 6, whole window", "| K = 1 against K = 6, halves, memory"),
        "| K = 6 against K = 1, whole window, targets of K = 6",
    ]
    by_row = {row: [x for x in runs[:6] if x["row"] == row] for row in ("k1", "k6")}
    for reading, sign in (("span", 1), ("accuracy, cr", -1)):
        ours, theirs = (np.array([r[reading] for r in by_row[row]]) for row in ("k1", "k6"))
        got = any_order._difference(by_row["k1"], by_row["k6"], reading)
        assert got.mean == pytest.approx(sign * np.mean(theirs - ours))
        variance = np.var(theirs - ours, ddof=1) / 3
        if reading == "span":
            texts = [run["of_texts"]["span"] for run in runs[:6]]
            difference = np.mean(texts[3:], axis=0) - np.mean(texts[:3], axis=0)
            errors = (difference - np.array([4, 5]) * difference.sum() / 9) / 4.5
            variance += np.var(errors, ddof=1) / 2
        else:
            variance += sum(p.mean() * (1 - p.mean()) / 50 for p in (ours, theirs))
        assert got.error == pytest.approx(np.sqrt(variance))


def test_intervals_over_seeds_and_texts_cover_the_difference():
    """Of 400 experiments with five seeds and thirty texts, whose difference is 0, about 95%."""
    random = np.random.default_rng(1)
    covered, of_seeds = [], []
    for _ in range(400):
        sizes_T = random.integers(20, 40, 30)
        per_unit_T = random.normal(0, 0.2, 30)  # What texts of the kind have in common.
        per_seed_S = random.normal(0, 0.05, 5)
        sums = random.normal(0, 1, [5, 2, 30])
        sums[:, 1] += (per_unit_T + per_seed_S[:, None]) * sizes_T
        values = (sums[:, 1] - sums[:, 0]).sum(axis=1) / sizes_T.sum()
        both = difference(values.mean(), over_runs(values), verdicts.over_texts(sums, sizes_T))
        for found, each in ((covered, both), (of_seeds, difference(both.mean, over_runs(values)))):
            found.append(abs(each.mean) < verdicts._half_of(each))
    assert 0.925 < np.mean(covered) < 0.99 and np.mean(of_seeds) < 0.85


def test_each_row_of_orders_has_its_best_rate_of_a_third_of_the_steps(tmp_path, monkeypatch):
    losses = {("k1", "1e-3"): 3.0, ("k1", "3e-3"): float("nan"), ("k6", "1e-3"): 2.0}
    trained = []

    def train(config, data, model_dir):
        training = config.training
        seed = training.seed
        trained.append((pathlib.Path(model_dir).name, training.num_steps, seed))
        assert training.learning_rate in (1e-3, 3e-3)
        return 5.0

    def evaluate(model_dir, data):
        _, row, _, *rate = pathlib.Path(model_dir).name.split("-", 3)
        return {"loss": losses.get((row, rate[0]), 1.0)}

    monkeypatch.setattr(ablation, "prepare_data", lambda *_: None)
    monkeypatch.setattr(any_order, "split", lambda *_: ("x", []))
    monkeypatch.setattr(any_order, "train", train)
    monkeypatch.setattr(any_order.xlnet, "evaluate", evaluate)
    monkeypatch.setattr(any_order.xlnet, "Scorer", lambda *_: None)
    for name in ("load_pretrainer", "load_tokenizer"):
        monkeypatch.setattr(any_order.xlnet, name, lambda *_: None)
    monkeypatch.setattr(any_order, "readings", lambda *_: {})
    command = ["any_order", "--text=x", f"--output={tmp_path}", "--seeds=2", "--steps=90"]
    command += ["--rates=1e-3,3e-3", "--rows=k1,k6", "--designs=whole"]
    monkeypatch.setattr(sys, "argv", command)
    any_order.main()
    tried = [name for name, steps, seed in trained if name.count("-") > 3]
    assert len(tried) == len(set(tried)) == 6  # K = 1 with as many targets is a row of its own.
    runs = ablation.read_results(str(next(tmp_path.iterdir())))
    rates = {(run["row"], run["equal"], run["seed"]): run["rate"] for run in runs}
    assert rates == {
        **{("k1", "compute", seed): "1e-3" for seed in (0, 1)},
        **{("k1", "targets", seed): "1e-3" for seed in (0, 1)},
        **{("k6", "compute", seed): "3e-3" for seed in (0, 1)},
    }
    assert ("whole-k6-90-3e-3", 30, 0) in trained and ("whole-k6-90-1", 90, 1) in trained
    number = len(trained)
    any_order.main()  # What is finished is read.
    assert len(trained) == number


def test_memory_is_compared_at_equal_steps_and_compute_and_a_cap_is_shown():
    random, runs = np.random.default_rng(0), []
    for seed in range(3):
        rows = {}
        for name, lasts in (("with", 4), ("without", 2), ("longer", 1)):
            sums = random.normal(40, 1, 5).round(2).tolist()
            # Each longer context halves the loss, up to a length.
            of_passages = [[8.0 / 2 ** min(n, lasts)] * 7 for n in range(5)]
            rows[name] = {"steps": 9, "cpu_seconds": 1.0, "loss": sum(sums) / 50}
            rows[name] |= {"of_lanes": sums, "sizes": [10.0] * 5, "of_passages": of_passages}
        runs.append({"seed": seed, "lengths": [1, 2, 4, 8, 16], "rows": rows})
    assert memory.context_lengths(runs[0]) == {"with": 16, "without": 4, "longer": 2}
    found = memory.tables(runs)
    for row, cell in (
        ("with memory", "16.0 ± 0.0, 3 of 3 at the cap of 16"),
        ("without, equal steps", "4.0 ± 0.0"),
        ("without, equal compute", "2.0 ± 0.0"),
    ):
        line = next(x for x in found["memory"].splitlines() if x.startswith(f"| {row} |"))
        assert line.endswith(f"| {cell} |")
    losses = np.array([[run["rows"][x]["of_lanes"] for x in ("with", "longer")] for run in runs])
    differences = (losses[:, 1] - losses[:, 0]) / 10
    got = memory._ahead_in_loss(runs, "longer")
    assert got.mean == pytest.approx(differences.mean())
    variance = [np.var(differences.mean(axis=axis), ddof=1) / (5, 3)[axis] for axis in (0, 1)]
    assert got.error == pytest.approx(np.sqrt(sum(variance)))
    assert memory._ahead_in_last_words(runs, "longer", 4)[:2] == (8 / 2 - 8 / 16, 0)
    table, differences = (text.splitlines() for text in found.values())
    assert table[0].split(" | ")[3:] == differences[0].split(" | ")[1:]


def test_passages_that_no_window_holds_are_refused(monkeypatch):
    """Their contexts would be cut in silence."""
    losses = np.zeros(2), np.ones(2)
    monkeypatch.setattr(memory, "train", lambda *_: 1.0)
    monkeypatch.setattr(memory, "_lanes", lambda *_: losses)
    for name, value in (
        ("load_config", tiny_config()),
        ("load_tokenizer", NumberTokenizer(31)),
        ("load_pretrainer", None),
        ("Scorer", None),
    ):
        monkeypatch.setattr(memory.xlnet, name, lambda *_, value=value: value)
    flags = types.SimpleNamespace(steps=6, output="x")
    module = "official.xlnet.projects.any_order.context_length"
    monkeypatch.setattr(f"{module}.losses_by_context", lambda *_: np.zeros([1, 1]))
    assert memory._trained(flags, "with", 0, [" ".join(["12"] * 128)])["loss"] == 0
    with pytest.raises(DataError, match="129 tokens, more than 128"):
        memory._trained(flags, "with", 0, ["12", " ".join(["12"] * 129)])


def test_seconds_of_resumed_runs_are_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(common.xlnet, "pretrain", lambda config, data, model_dir, overrides: None)
    assert common.train("config", "data", str(tmp_path / "new")) >= 0
    (tmp_path / "new").mkdir()
    assert common.train("config", "data", str(tmp_path / "new")) >= 0  # It was not interrupted.
    (tmp_path / "begun").mkdir()
    assert common.train("config", "data", str(tmp_path / "begun")) is None


def test_a_difference_counts_seeds_and_items():
    values = np.array([[1.0, 2.0, 6.0], [3.0, 2.0, 1.0]])
    items, seeds = np.var([2.0, 2.0, 3.5], ddof=1) / 3, np.var([3.0, 2.0], ddof=1) / 2
    total = items + seeds + 0.25
    degrees = total**2 / (items**2 / 2 + seeds**2 + 0.25**2 / 99)
    found = rivals._difference(values, (0.25, 99))
    np.testing.assert_allclose(found, (2.5, np.sqrt(total), degrees))
    assert rivals._difference(values[:1]) == (3.0, 0.0, 0.0)


def test_a_table_whose_numbers_are_not_todays_is_stale_and_names_its_command(tmp_path, monkeypatch):
    command = "python -m benchmarks.learning.cues --steps=7 --output=x --document=y"
    typed = command.replace(" --output", " \\\n  --output")
    [recipe] = recipe_digests("configs/tiny.yaml")
    stamp, other = command_digest(command), command_digest(command.replace("7", "8"))
    assert stamp == command_digest(command.replace("=x", "=z")) != other
    ends = {
        "new": f": {stamp}, {recipe}, numbers 5.12345 -3",
        "new_on_another_machine": f": {stamp}, {recipe}, numbers 5.12355 -3.0001",
        "new_without_recipe": f": {stamp}, numbers 5.12345 -3",
        "of_other_code": f": {stamp}, {recipe}, numbers 5.12345 -3.0002",
        "of_another_row": f": {stamp}, {recipe}, numbers 5.12345",
        "of_another_recipe": f": {stamp}, configs/tiny.yaml 00000000, numbers 5.12345 -3",
        "of_another_command": f": {other}, {recipe}, numbers 5.12345 -3",
        "without_numbers": f": {stamp}, {recipe}",
        "none": "",
    }
    cells = [f"<!-- table: {name} -->\n| 1 |\n<!-- end{end} -->" for name, end in ends.items()]
    other_table = "<!-- table: of_another_benchmark -->\n<!-- end -->"
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs/page.md"
    page.write_text("\n".join([other_table, "```sh", typed, "```", *cells]))
    for module in ("benchmarks.learning.stale", "benchmarks.harness.tables"):
        monkeypatch.setattr(f"{module}.small_numbers", {command: (5.12345, -3.0)}.get)
    expected = {f"page.md:{name}": command for name in ends if not name.startswith("new")}
    assert stale.stale(tmp_path / "docs") == expected
    fill_table(str(page), "none", "| 2 |", [recipe])
    assert f"| 2 |\n<!-- end: {stamp}, {recipe}, numbers 5.12345 -3 -->" in page.read_text()
    # All tables of one command are renewed by one call of it.
    called = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stale.subprocess, "run", lambda line, **_: called.append(line))
    monkeypatch.setattr(sys, "argv", ["stale", "--renew=all"])
    stale.main()
    assert called == [command]


def test_a_command_at_a_small_size_has_its_own_flags_and_rows():
    """Not its sizes and places; every experiment whose table a page has is there."""
    command = "python -m benchmarks.learning.any_order --text=a --steps=500 --rows=k1 --set=x=1"
    [words] = small_runs.small_commands(f"{command} --output=b --document=c", "F")
    assert words[2] == "benchmarks.learning.any_order"
    assert words[3:5] == ["--rows=k1", "--set=x=1"]
    assert {"--text=F/text.txt", "--seeds=1", "--output=F/output"} < {*words}
    assert not {"--text=a", "--steps=500", "--output=b", "--document=c"} & {*words}
    for command, _ in stale.tables_of(ROOT / "docs").values():
        assert small_runs.small_commands(command, "F")


@pytest.mark.nightly
def test_numbers_at_a_small_size_depend_on_training_and_not_on_the_place():
    command = "python -m benchmarks.learning.ablation --rows=xlnet_k6"
    first = small_runs.small_numbers(command)
    assert small_runs.are_close(first, small_runs.small_numbers(f"{command} --output=elsewhere"))
    for changed in ("training.weight_decay=0.02", "training.adam_beta_2=0.99", "model.mem_len=60"):
        other = small_runs.small_numbers(f"{command} --set={changed}")
        assert len(other) == len(first) == 1 and not small_runs.are_close(first, other)


@pytest.mark.nightly
def test_todays_code_gives_the_numbers_of_every_table(monkeypatch):
    """A table that fails is measured again by the command above it, or taken out."""
    monkeypatch.chdir(ROOT)
    assert stale.stale(ROOT / "docs") == {}


def test_pairs_of_agreement_differ_in_one_word_that_fits_the_noun():
    """A noun of the other number never decides; each number of each noun occurs as often."""
    pairs = agreement.agreement_pairs()
    assert len(set(pairs)) == 180
    plurals = {kind: [] for kind, *_ in pairs}
    for kind, noun, good, bad in pairs:
        [(right, wrong)] = [x for x in zip(good.split(), bad.split(), strict=True) if x[0] != x[1]]
        is_plural = good.strip(".").split()[2 if kind == "determiner" else 1] == f"{noun}s"
        words = ("this", "these") if kind == "determiner" else ("is", "are")
        assert (right, wrong) == (words[::-1] if is_plural else words)
        plurals[kind].append(is_plural)
    assert all(sum(x) == 30 and len(x) == 60 for x in plurals.values())


def result(loss, steps=500, unigram_loss=6.5):
    sixth = -(-steps // 6)  # Resumed, with half of the way between two checkpoints.
    curve = [[sixth, loss + 2], [2 * sixth, loss + 1.5], [4 * sixth, loss + 0.5], [steps, loss]]
    return {"curve": curve, "loss": loss, "unigram_loss": unigram_loss}


def test_time_to_quality_has_the_best_rate_of_a_peer_and_the_mean_over_seeds(tmp_path):
    path, page = str(tmp_path / "rows.json"), tmp_path / "page.md"
    for seed, loss in ((0, 4.0), (0, 5.0), (1, 5.2)):  # The first is measured again.
        report.add(path, Run("news", "ours", seed, steps=500), result(loss))
    report.add(path, Run("news", "ours", 0, steps=1400), result(4.5, 1400))
    for rate, loss in ((1e-3, 5.4), (3e-3, 5.1), (1e-2, 5.3)):
        report.add(path, Run("news", "hf", 0, steps=1376, rate=rate), result(loss, 1376))
    trial = Run("news", "ours", 0, steps=500, overrides=("model.dropout=0.3",))
    report.add(path, trial, result(4.5))
    names = ("steps", "settings")
    page.write_text("\n".join(f"<!-- table: {name} -->\n<!-- end -->" for name in names))
    report.write(path, str(page), str(page))
    assert [line for line in page.read_text().splitlines() if "| news |" in line] == [
        "| tiny | news |  | unigram baseline |  |  |  | 6.500 |",
        "| tiny | news | 500 | the recipe | 2 | 7.100 | 6.100 | 5.100 ± 1.271 |",
        "| tiny | news | 1376 | HF, rate 0.003 | 1 | 7.100 | 6.100 | 5.100 |",
        "| tiny | news | 1400 | the recipe | 1 | 6.500 | 5.500 | 4.500 |",
        "| tiny | news | 500 | model.dropout=0.3 | 1 | 6.500 | 5.500 | 4.500 |",
    ]
    curves = report.shown(read_rows(path))["tiny, news"]["runs"]
    assert [run["peer"] for run in curves] == ["ours", "ours", "hf", "ours"]
    report.add(path, Run("news", "ours", 2, steps=500), result(4.7, unigram_loss=6.3))
    with pytest.raises(ValueError, match=r"one loss of unigrams for tiny, news, got \[6\.3, 6\.5"):
        report.write(path, str(page), str(page))


@pytest.mark.slow
def test_tf_models_official_trains_on_the_same_permutations():
    from benchmarks.learning.time_to_quality.peers import tfm

    data = {"seq_len": 23, "reuse_len": 11, "num_predict": 7, "target_ratio": 3.0}
    objective = create_objective(ObjectiveSections.of({"data": data}))
    windows = {name: value.numpy()[::-1] for name, value in random_windows(0, tokens=23).items()}
    inputs = {n: v.numpy() for n, v in tfm.features(objective, windows).items() if v is not None}
    forward_first = [1, 3, 0, 2]
    np.testing.assert_array_equal(inputs["input_ids"], windows["token_ids"][forward_first])
    task = objective({name: value[forward_first] for name, value in windows.items()})
    order, positions = task.inputs["order"].numpy(), task.inputs["target_positions"].numpy()
    mask = task.mask_BP.numpy()
    for row in range(4):
        targets = set(positions[row][mask[row] > 0].tolist())
        assert set(np.flatnonzero(inputs["input_q"][row])) == targets
        for i, j in itertools.product(range(23), repeat=2):
            hidden = order[row, j] > order[row, i] or (i == j and i in targets)
            assert inputs["perm_mask"][row, i, j] == hidden
        one_hot = (np.arange(23) == positions[row][:, None]) * mask[row][:, None]
        np.testing.assert_array_equal(inputs["target_mapping"][row], one_hot)


def test_fine_tuning_without_settings_is_beside_the_best_of_the_sweep():
    def run(model, rate, accuracy, default=False):
        values = {"model": model, "set": "cr", "learning_rate": rate, "accuracy": accuracy}
        values |= {"changes": "", "default": default, "train_examples": 2003}
        baselines = {"bag_of_words": {"accuracy": 0.8}, "majority": {"accuracy": 0.634}}
        return values | {"parameters": 940_000, "baselines": baselines}

    runs = [run("tiny", 1e-3, 0.7712, default=True), run("tiny", 3e-4, 0.7811)]
    runs += [run("small", 3e-4, 0.9, default=True), run("small", 1e-4, 0.89)]
    assert untuned.untuned_table(runs).splitlines()[2:] == [
        "| tiny, 0.9 M | cr | 2,003 | 77.1 (1e-3) | 78.1 (3e-4) | 80.0 | 63.4 |",
        "| small, 0.9 M | cr | 2,003 | 90.0 (3e-4) | 90.0 (3e-4) | 80.0 | 63.4 |",
    ]


def test_few_labels_are_drawn_without_repetition_and_compared_over_seeds():
    lines = ["label\ttext", *(f"{n % 2}\ttext {n}" for n in range(53))]
    head, *rows = few_labels.drawn(lines, 17, seed=1)
    assert head == lines[0] and len(set(rows)) == 17 and set(rows) < set(lines[1:])
    assert (
        rows == few_labels.drawn(lines, 17, seed=1)[1:] != few_labels.drawn(lines, 17, seed=2)[1:]
    )
    assert sorted(few_labels.drawn(lines, len(lines) - 1, seed=0)[1:]) == sorted(lines[1:])
    shares = {
        "pre-trained": (0.71, 0.73),
        "random weights": (0.5, 0.54),
        "bag of words": (0.6, 0.6),
    }
    runs = {("cr", 1000, row, seed): x for row, xs in shares.items() for seed, x in enumerate(xs)}
    assert few_labels.table_of(runs).splitlines()[2:] == [
        "| cr | 1,000 | 72.0 ± 12.7 | 52.0 ± 25.4 | 60.0 ± 0.0 |"
    ]


@pytest.mark.nightly
def test_cues_and_pairs_separate_the_objectives():
    """What is possible with each objective is known, and learned within 0.3 nats of it."""
    chance = np.log(cues.KINDS)
    read = {kind: cues.trained(kind, seed=0, steps=500) for kind in cues.ROWS}
    lowest = {
        "causal": {"left": 0, "right": chance, "chain": chance},
        "denoising": {"left": 0, "right": 0, "chain": chance},
        "permutation": {"left": 0, "right": 0, "chain": chance},
    }
    for kind, losses in lowest.items():
        for name, least in losses.items():
            assert least - 0.1 < read[kind][name] < least + 0.3, (kind, name)
    for kind in ("denoising", "permutation"):  # No objective knows both tokens at once.
        assert read[kind]["alone"] > 2 * chance - 0.1


def test_windows_of_cues_hold_each_pattern_once():
    windows = cues.make_windows(np.random.default_rng(0), 57)
    ids, row = windows.token_ids, np.arange(57)
    kind = ids[row, windows.left] - cues._LEFT
    assert (ids[row, windows.left - 1] - cues._CUE == kind).all() and set(kind) == set(range(8))
    kind = ids[row, windows.right] - cues._RIGHT
    assert (ids[row, windows.right + 1] - cues._RIGHT_CUE == kind).all()
    kind = ids[row, windows.pair] - cues._FIRST
    assert (ids[row, windows.pair + 1] - cues._SECOND == kind).all()
    assert ((ids >= cues._CUE).sum(axis=1) == 8).all() and ids.max() < cues.VOCAB
