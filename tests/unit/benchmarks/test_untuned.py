"""The table of the benchmark of fine-tuning without settings."""

from benchmarks.learning.untuned import trials_table, untuned_table


def run(model, rate, accuracy, default=False, trial=""):
    return {
        **{"model": model, "set": "cr", "learning_rate": rate, "accuracy": accuracy},
        **{"changes": trial, "is_trial": bool(trial), "default": default},
        **{"train_examples": 2003, "parameters": 940_000},
        "baselines": {"bag_of_words": {"accuracy": 0.8}, "majority": {"accuracy": 0.634}},
    }


def test_the_defaults_are_beside_the_best_of_the_sweep():
    runs = [
        run("tiny", 1e-3, 0.7712, default=True),
        run("tiny", 3e-4, 0.7811),
        run("tiny", 3e-3, 0.6),
        run("small", 3e-4, 0.9, default=True),
        run("small", 1e-4, 0.89),
    ]
    assert untuned_table(runs).splitlines()[2:] == [
        "| tiny, 0.9 M | cr | 2,003 | 77.1 (1e-3) | 78.1 (3e-4) | 80.0 | 63.4 |",
        "| small, 0.9 M | cr | 2,003 | 90.0 (3e-4) | 90.0 (3e-4) | 80.0 | 63.4 |",
    ]


def test_trials_are_beside_the_defaults_and_not_in_the_sweep():
    runs = [
        run("tiny", 1e-3, 0.77, default=True),
        run("tiny", 1e-2, 0.9),
        run("tiny", 1e-3, 0.95, trial="model.dropout=0.1"),
        run("small", 1e-3, 0.83, trial="model.dropout=0.1"),
        {**run("tiny", 1e-3, 0.61, default=True), "set": "mr"},
    ]
    assert trials_table(runs).splitlines() == [
        "| model | settings | cr | mr |",
        "| --- | --- | --- | --- |",
        "| tiny | the defaults | 77.0 | 61.0 |",
        "| tiny | model.dropout=0.1 | 95.0 |  |",
        "| small | model.dropout=0.1 | 83.0 |  |",
    ]
    assert untuned_table(runs).splitlines()[2:3] == [
        "| tiny, 0.9 M | cr | 2,003 | 77.0 (1e-3) | 90.0 (1e-2) | 80.0 | 63.4 |",
    ]
