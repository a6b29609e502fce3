"""Tables of training steps: each row is of one run, and its ratio is of our time in that run."""

import itertools
import json
import re

import pytest

from benchmarks.reports import report
from tests.helpers.documents import ROOT


@pytest.mark.parametrize("shape", ["base3", "small"])
def test_ratios_and_seconds_are_of_one_run(shape):
    text = (ROOT / report.DOCUMENT).read_text(encoding="utf-8")
    table = re.search(rf"<!-- table: train_{shape} -->\n(.*?)\n<!-- end", text, re.S)[1]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    for _, run in itertools.groupby(rows, key=lambda row: row[0]):
        seconds = {row[1]: (float(row[2]), float(row[3])) for row in run}
        ours, one = seconds["ours"]
        assert one == 1 and len(seconds) > 1
        for of_one, ratio in seconds.values():
            assert ratio == pytest.approx(of_one / ours, abs=0.01)
    stored = json.loads((ROOT / "docs/performance.json").read_text(encoding="utf-8"))
    phases = report.measured(stored)
    runs = {name: phases[name] for name in report.TRAINING[shape] if name in phases}
    shown = {(row[0], row[1], row[2]) for row in rows}
    assert shown == {
        (str(number), name, f"{metrics['seconds']:.3f}")
        for number, run in enumerate(runs.values(), start=1)
        for name, metrics in run["results"].items()
    }
