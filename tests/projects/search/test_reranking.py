"""A folder of BEIR with the run of a first search: fine-tuned, evaluated and predicted from it."""

import collections
import json
import random

import pytest
import pytrec_eval

from official import xlnet
from official.xlnet.files.text import open_text
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.served_models import random_task, save_task
from tests.helpers.task_corpora import beir_folder
from tests.helpers.world import command

SMALL = ["num_layers=1", "d_model=16", "num_heads=2", "d_inner=32", "init_std=0.3"]
SMALL += ["num_steps=5", "checkpoint_steps=5", "warmup_steps=0", "batch_size=7", "max_length=23"]
METRICS = {"ndcg@20": "ndcg_cut_20", "mrr": "recip_rank"}


@pytest.fixture
def beir(tmp_path):
    """A folder with a run."""
    return beir_folder(tmp_path / "beir", random.Random(0))


def trec_eval(folder, scores):
    """Means of trec_eval's metrics of {query: {document: score}}, by our names."""
    with open_text(f"{folder}/qrels/test.tsv") as file:
        rows = [line.split() for line in list(file)[1:]]
    grades = collections.defaultdict(dict)
    for query, document, grade in rows:
        grades[query][document] = int(grade)
    found = pytrec_eval.RelevanceEvaluator(grades, {"ndcg_cut.20", "recip_rank"}).evaluate(scores)
    return {
        ours: sum(values[theirs] for values in found.values()) / len(found)
        for ours, theirs in METRICS.items()
    }


def scores_of(rows):
    scores = collections.defaultdict(dict)
    for query, document, score in rows:
        scores[query][document] = float(score)
    return scores


def run_of(beir):
    rows = [line.split() for line in (beir / "run").read_text().splitlines()]
    return scores_of((row[0], row[2], row[4]) for row in rows if 6 <= int(row[0][1:]) < 12)


@pytest.mark.quick
def test_a_run_is_the_baseline_of_its_reranker(beir, tmp_path, capfd):
    test, (model, _) = f"{beir}/qrels/test.tsv", random_task("ranking", gain="linear")
    saved, expected = save_task(model, str(tmp_path / "model")), trec_eval(beir, run_of(beir))
    found = xlnet.evaluate(saved, test, output=str(tmp_path / "report"))
    assert found["queries_without_judgements"] == 12
    assert {name: found["baselines"]["run"][name] for name in METRICS} == pytest.approx(expected)
    line = f"ndcg@20 (linear gain): model {found['ndcg@20']:.4f}, run that it reranks "
    line += f"{expected['ndcg@20']:.4f}"
    line += "; the model is behind the run that it reranks"
    assert found["ndcg@20"] < expected["ndcg@20"] and f"{line}\n" in capfd.readouterr().err
    report = json.loads((tmp_path / "report/metrics.json").read_text())
    assert report["baselines"] == found["baselines"]
    command("predict", model=saved, input=test, output=f"{tmp_path}/scores.jsonl")
    lines = map(json.loads, (tmp_path / "scores.jsonl").read_text().splitlines())
    scores = scores_of((row["query_id"], row["id"], row["score"]) for row in lines)
    assert {name: found[name] for name in METRICS} == pytest.approx(trec_eval(beir, scores))


@pytest.mark.slow
def test_finetune_and_evaluate_give_the_same_to_the_last_digit(beir, tmp_path, capfd):
    train, test = (f"{beir}/qrels/{split}.tsv" for split in ("train", "test"))
    settings = {"task": "ranking", "set": SMALL, "vocab": f"{vocabulary_dir()}/spiece.model"}
    tuned = xlnet.finetune(None, train, test, str(tmp_path / "model"), **settings)
    assert "ndcg@20 (linear gain): model" in capfd.readouterr().err
    found = xlnet.evaluate(str(tmp_path / "model"), test)
    same = ("loss", "ndcg@20", "err@20", "mrr", "pair_accuracy", "baselines")
    assert {name: found[name] for name in same} == {name: tuned[name] for name in same}
    assert 0 < found["ndcg@20"] < 1


def test_a_model_without_the_key_has_the_gain_that_it_was_made_with(beir, tmp_path, capfd):
    (beir / "run").unlink()
    model, _ = random_task("ranking")
    saved = save_task(model, str(tmp_path / "model"))
    settings = tmp_path / "model/config.yaml"
    text = settings.read_text()
    assert "  gain: exponential\n" in text
    settings.write_text(text.replace("  gain: exponential\n", ""))
    found = xlnet.evaluate(saved, f"{beir}/qrels/test.tsv")
    assert "baselines" not in found
    said = f"ndcg@20 (exponential gain): model {found['ndcg@20']:.4f} (no"
    assert said in capfd.readouterr().err
