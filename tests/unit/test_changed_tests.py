"""`make test-changed` runs tests that executed what has changed, for a minute of CPU time."""

import coverage
import pytest

from tests import selection
from tests.helpers.documents import ROOT
from tools import changed_tests, executed
from tools.changed_tests import changed_pieces, select
from tools.executed import Executed

MOST_SECONDS = 60
KEYS = "tests/conformance/test_keys.py"
FORMATS = "tests/conformance/test_formats.py"
TASKS = "tests/conformance/test_tasks.py"
VERBS = "tests/conformance/test_verbs.py"


@pytest.fixture(scope="module")
def record():
    return executed.read()


def rewritten(*paths):
    """The changes if every function of the files were written anew."""
    return {path: changed_pieces("", (ROOT / path).read_text(encoding="utf-8")) for path in paths}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(
            {
                "official/xlnet/configs/training.py": {"TrainingConfig.weight_decay"},
                "official/xlnet/training/optimization.py": {"create_optimizer"},
            },
            [
                f"{KEYS}::test_each_key_has_an_effect[training.weight_decay]",
                f"{KEYS}::test_each_key_is_read[training.weight_decay]",
                "tests/unit/configs/",
                "tests/unit/training/test_optimization.py",
            ],
            id="a key of training",
        ),
        pytest.param(
            rewritten("official/xlnet/tasks/ranking/task.py"),
            [f"{TASKS}::test_a_task_is_complete[ranking-", "tests/unit/tasks/"],
            id="a task",
        ),
        pytest.param(
            rewritten("official/xlnet/tasks/ranking/metrics.py"),
            [
                f"{TASKS}::test_a_task_is_complete[ranking-",
                "tests/unit/tasks/test_ranking_metrics.py",
            ],
            id="metrics of a task",
        ),
        pytest.param(
            rewritten("data_prep/corpus/json_lines.py"),
            [f"{FORMATS}::test_a_text_format[jsonl]", "tests/unit/data_prep/"],
            id="a text format",
        ),
        pytest.param(
            rewritten("official/xlnet/api/score.py", "official/xlnet/jobs/file_scoring.py"),
            [
                f"{VERBS}::test_a_flag_is_in_a_test[score]",
                "tests/e2e/texts/test_score_and_generate.py",
            ],
            id="a verb",
        ),
        pytest.param(
            rewritten("official/xlnet/projects/pictures/html_page.py"),
            ["tests/projects/pictures/test_report_page.py"],
            id="a page of a project",
        ),
        pytest.param(
            rewritten("official/xlnet/training/loop.py"),
            ["tests/unit/training/test_loop.py"],
            id="what nearly all tests execute",
        ),
    ],
)
def test_a_change_of_one_part_is_answered_in_a_minute(changed, expected, record):
    selected = select(changed, record)
    assert selected.seconds <= MOST_SECONDS
    for start in expected:
        assert any(test.startswith(start) for test in selected.tests), start


def test_lines_that_move_and_comments_change_nothing():
    before = "def f():\n    return 1\n"
    after = "# Words.\n\n\ndef f():\n    # More words.\n    return 1\n"
    assert changed_pieces(before, after) == set()


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("return 2", "return 3", {"C.g"}),
        ("def inner", "def other", {"f"}),
        ("x: int = 1", "x: int = 2", {"C.x"}),
        ("A = 1", "B = 1", {"A", "B"}),
        ("class C:", "class C(dict):", {"C"}),
        ("Words.", "Other words.", {"C"}),
        ("import os", "import re", {""}),
    ],
)
def test_what_has_changed_has_its_qualified_name(old, new, names):
    source = (
        "import os\nA = 1\ndef f():\n    def inner():\n        return 1\n    return inner\n"
        "class C:\n    x: int = 1\n    def g(self):\n        'Words.'\n        return 2\n"
    )
    assert old in source
    assert changed_pieces(source, source.replace(old, new)) == names


def test_what_a_coverage_run_executed_is_recorded_and_read_back(tmp_path):
    source = "official/xlnet/runtime/perplexity.py"
    name, lines = next(iter(executed.functions_of((ROOT / source).read_text()).items()))
    data = coverage.CoverageData(str(tmp_path / "coverage"))
    tests = {"tests/unit/test_world.py::test_a[x-1]": 2.0, "tests/unit/test_world.py::test_b": 0.5}
    for test in tests:
        data.set_context(f"{test}|run")
        data.add_lines({str(ROOT / source): [max(lines)]})
    data.set_context("")
    data.add_lines({str(ROOT / source): [1]})
    data.write()
    file = tmp_path / "executed.json"
    executed.write([str(tmp_path / "coverage")], tests, file)
    found = executed.read(file)
    assert found.costs == tests
    assert found.tests == {source: {name: sorted(tests, key=tests.get)}}
    assert found.more == {source: {name: 0}}


def test_cheap_rows_are_recorded_as_one_and_few_tests_of_many_are_kept(tmp_path):
    source = "official/xlnet/runtime/perplexity.py"
    name, lines = next(iter(executed.functions_of((ROOT / source).read_text()).items()))
    data = coverage.CoverageData(str(tmp_path / "coverage"))
    costs = {f"tests/unit/test_world.py::test_a[{row}]": 0.01 for row in range(7)}
    costs |= {f"tests/unit/test_world.py::test_{number}": 1.0 for number in range(97)}
    for test in costs:
        data.set_context(f"{test}|run")
        data.add_lines({str(ROOT / source): [max(lines)]})
    data.write()
    executed.write([str(tmp_path / "coverage")], costs, tmp_path / "executed.json")
    found = executed.read(tmp_path / "executed.json")
    kept = found.tests[source][name]
    assert kept[0] == "tests/unit/test_world.py::test_a" and found.costs[kept[0]] == 0.07
    assert len(kept) + found.more[source][name] == 98 and len(kept) < 50


@pytest.mark.parametrize(
    ("changed", "expected", "other"),
    [
        # Without a record, by the names of files and folders.
        (
            "official/xlnet/tasks/ranking/reader.py",
            "unit/tasks/test_labels",
            "unit/files/test_locks",
        ),
        (
            "official/xlnet/projects/search/folders.py",
            "projects/search/test_folders",
            "golden/test_golden",
        ),
        # Files that tests read or import.
        ("docs/tasks.md", "conformance/test_tasks", "unit/files/test_locks"),
        ("tests/helpers/tiny.py", "unit/api/test_argument_types", "unit/files/test_locks"),
        ("tools/api_page.py", "conformance/test_verbs", "unit/files/test_locks"),
        ("tests/fixtures/version_1_0.zip", "e2e/test_version_1_0", "unit/files/test_locks"),
    ],
)
def test_without_a_record_tests_are_found_by_names(changed, expected, other):
    assert (ROOT / changed).exists()
    names = {"x"} if changed.endswith(".py") else set()
    tests = select({changed: names}, Executed({}, {}, {}), most_seconds=1000).tests
    assert f"tests/{expected}.py" in tests and f"tests/{other}.py" not in tests


def functions_of_tests(path):
    """The test functions of a file."""
    source = (ROOT / path).read_text(encoding="utf-8")
    functions = executed.functions_of(source)
    return [f"{path}::{name}" for name in functions if name.startswith("test_")]


def test_changed_tests_run_themselves():
    path = "tests/unit/test_world.py"
    test = functions_of_tests(path)[0]
    changed = {path: {test.partition("::")[2]}}
    assert test in select(changed, Executed({}, {}, {}), most_seconds=0).tests


def test_what_breaks_all_tests_runs_all(record):
    assert select({"requirements.lock": set()}, record).tests == ["tests"]


def test_each_changed_thing_has_a_test_whatever_it_costs():
    first, second = functions_of_tests("tests/unit/test_world.py")[:2]
    source = "official/xlnet/runtime/perplexity.py"
    record = Executed(
        costs={first: 500.0, second: 500.0},
        tests={source: {"f": [first], "g": [second], "h": [first, second]}},
        more={source: {"f": 0, "g": 0, "h": 23}},
    )
    both = select({source: {"f", "g"}}, record, most_seconds=10)
    assert {first, second} <= {*both.tests}
    one = select({source: {"h"}}, record, most_seconds=10)
    assert first in one.tests and second not in one.tests
    assert one.left >= 24 and str(one.left) in one.summary()


class Item:
    """What the plugin asks of a test."""

    def __init__(self, nodeid, *markers):
        self.nodeid, self.markers = nodeid, markers

    def get_closest_marker(self, name):
        return name if name in self.markers else None


@pytest.mark.parametrize(
    ("item", "place"),
    [
        (Item("tests/unit/test_a.py::test_x[3]"), 0),
        (Item("tests/unit/test_a.py::test_y"), None),
        (Item("tests/unit/test_b.py::test_z[1-2]"), 1),
        (Item("tests/unit/test_b.py::test_z", "slow"), None),
        (Item("tests/unit/test_c.py::test_z[1]", "slow"), 2),
        (Item("tests/conformance/test_tasks.py::test_complete[mine-True]"), 3),
        (Item("tests/conformance/test_keys.py::test_read[task.mine]"), 3),
        (Item("tests/conformance/test_tasks.py::test_complete[other-True]"), None),
    ],
)
def test_the_plugin_finds_the_line_of_a_test(item, place):
    lines = [
        "tests/unit/test_a.py::test_x",
        "tests/unit/test_b.py",
        "tests/unit/test_c.py::test_z[1]",
        f"{changed_tests.CONFORMANCE}::mine",
    ]
    assert selection.place(item, {line: number for number, line in enumerate(lines)}) == place
