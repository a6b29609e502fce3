"""`make test-changed` runs the tests that depend on a change, and not all of them."""

import pytest

from tests.helpers.documents import ROOT
from tools import changed_tests


@pytest.fixture(scope="module")
def graph():
    files = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    folders = ("official", "data_prep", "configs", "docs", "tests", "tools")
    return changed_tests.dependencies({str(x) for x in files if x.parts[0] in (*folders, x.name)})


LOCKS = "unit/files/test_locks"


@pytest.mark.parametrize(
    ("changed", "dependent", "other"),
    [
        # Imported, also by others, in functions and in programs in strings.
        ("official/xlnet/files/locks/__init__.py", LOCKS, "unit/configs/test_registry"),
        ("tests/helpers/tiny.py", "unit/api/test_argument_types", LOCKS),
        # Looked up: a value of a setting, a public name, a verb, all names of a registry.
        ("official/xlnet/projects/survey/universal.py", "projects/survey/test_universal", LOCKS),
        (
            "official/xlnet/projects/pictures/masks.py",
            "projects/pictures/test_inspect_attention",
            LOCKS,
        ),
        ("official/xlnet/jobs/file_embedding.py", "unit/commands/test_embed", LOCKS),
        ("official/xlnet/projects/survey/text_baselines.py", "e2e/test_finetune", LOCKS),
        # Made by the fixture.
        ("official/xlnet/tasks/ranking/reader.py", "unit/commands/test_embed", LOCKS),
        # Read by name, or with its folder.
        ("docs/tasks.md", "unit/test_documentation", LOCKS),
        ("configs/imdb.yaml", "unit/configs/test_config_files", LOCKS),
        ("tests/fixtures/version_1_0.zip", "e2e/test_version_1_0", LOCKS),
        ("tests/unit/test_world.py", "unit/test_world", LOCKS),
    ],
)
def test_what_depends_on_a_file(changed, dependent, other, graph):
    assert (ROOT / changed).exists()
    found = changed_tests.tests_of([changed], graph)
    assert f"tests/{dependent}.py" in found and f"tests/{other}.py" not in found


def test_what_all_tests_depend_on(graph):
    found = changed_tests.tests_of(["requirements.lock"], graph)
    assert found == {str(x.relative_to(ROOT)) for x in (ROOT / "tests").rglob("test_*.py")}
