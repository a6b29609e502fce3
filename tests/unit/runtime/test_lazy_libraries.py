"""Modules that wait for their first use, and garbage collection during the import of TensorFlow."""

import gc
import importlib
import pathlib
import subprocess
import sys
import threading
import types

import pytest

from official.xlnet.modeling.ops.keras import IS_KERAS_3
from official.xlnet.runtime.start import garbage, lazy_libraries
from official.xlnet.runtime.start.lazy_libraries import LAZY_MODULES

ROOT = pathlib.Path(__file__).parents[3]
LARGE = ("IPython.core", "cv2", "googleapiclient.http", "matplotlib", "pandas.core", "sklearn")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Name of a lazy package with a part; `executed.log` has a line for each execution."""
    name = "lazy_package_of_tests"
    folder = tmp_path / name
    folder.mkdir()
    log = f"open({str(tmp_path / 'executed.log')!r}, 'a').write(__name__ + '\\n')\n"
    (folder / "__init__.py").write_text(f"import time\ntime.sleep(0.1)\n{log}VALUE = 3\n")
    (folder / "part.py").write_text(f"{log}from {name} import VALUE\nDOUBLE = 2 * VALUE\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(lazy_libraries, "LAZY_MODULES", {name})
    yield name
    for module in [name, f"{name}.part"]:
        sys.modules.pop(module, None)


@pytest.fixture
def executed(tmp_path):
    """A function that returns the names of the modules that have been executed."""
    log = tmp_path / "executed.log"
    return lambda: log.read_text().split() if log.exists() else []


def test_is_executed_when_an_attribute_is_used(package, executed):
    module = importlib.import_module(package)
    exec(f"import {package}; import {package} as same")
    assert sys.modules[package] is module
    assert not hasattr(module, "__warningregistry__")
    assert module.__file__.endswith("__init__.py")
    assert importlib.util.find_spec(package) is module.__spec__
    assert executed() == []
    assert module.VALUE == 3
    assert module.VALUE == 3
    assert type(module) is types.ModuleType
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'missing'"):
        _ = module.missing
    assert executed() == [package]


@pytest.mark.parametrize(
    "use",
    [
        "from {} import VALUE",
        "from {} import *",
        "import {}.part",
        "from {} import part",
        "from {}.part import DOUBLE",
        "import {0} as module; dir(module)",
        "import {0} as module; module.VALUE = 5; assert module.VALUE == 5",
    ],
)
def test_every_use_executes_it_first(package, executed, use):
    importlib.import_module(package)
    exec(use.format(package))
    assert executed() == [package, f"{package}.part"][: 1 + ("part" in use)]


def test_threads_see_a_complete_module(package, executed):
    module = importlib.import_module(package)
    values = []
    threads = [
        threading.Thread(target=lambda: values.append(module.VALUE), daemon=True) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [3] * 5
    assert executed() == [package]


def test_is_executed_again_when_it_is_reloaded(package, executed):
    module = importlib.import_module(package)
    assert module.VALUE == 3
    importlib.reload(module)
    assert executed() == [package] * 2


def test_an_error_is_that_of_the_module(package, executed, tmp_path):
    source = tmp_path / package / "__init__.py"
    text = source.read_text()
    source.write_text(f"{text}raise ImportError('needs another library')\n")
    module = importlib.import_module(package)
    for _ in range(2):
        with pytest.raises(ImportError, match="needs another library"):
            _ = module.missing
    assert executed() == [package] * 2


def test_what_is_not_a_file_of_source_code_is_imported_as_usual(monkeypatch):
    monkeypatch.setattr(lazy_libraries, "LAZY_MODULES", {"math", "no_such_module", "tests"})
    for name in ("math", "no_such_module", "tests"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        assert lazy_libraries._LazyFinder.find_spec(name, None) is None


@pytest.mark.skipif(not IS_KERAS_3, reason="tf_keras does not have these.")
def test_tests_start_as_commands_do():
    """Nothing that is imported before `conftest.py` calls `install` imports TensorFlow."""
    assert type(sys.modules["keras.wrappers"]) is not types.ModuleType


def test_names_are_those_of_installed_modules():
    """A module that has been renamed would be imported at every start."""
    libraries = {"IPython", "googleapiclient", "httplib2", "tf_keras"}
    for name in LAZY_MODULES:
        if name.split(".")[0] in libraries and not importlib.util.find_spec(name.split(".")[0]):
            continue
        parent, _, child = name.rpartition(".")
        paths = importlib.util.find_spec(parent).submodule_search_locations if parent else sys.path
        found = [path for path in map(pathlib.Path, paths) if list(path.glob(f"{child}*"))]
        assert found, name


PROGRAM = """
import sys
from official.xlnet import cli
status = cli.main({arguments})
names = [name for name in {large} if name in sys.modules]
print(*sorted(names), file=open({path!r}, "w"))
sys.exit(status)
"""


def _large_libraries(tmp_path, words, is_program):
    """Runs a command in a process; returns its output and the large libraries that it has loaded.

    It is either the program, or a call in somebody's own process.
    """
    path = tmp_path / "loaded.txt"
    code = PROGRAM.format(arguments="" if is_program else words, large=LARGE, path=str(path))
    process = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, check=True
    )
    return process.stdout, path.read_text().split()


@pytest.mark.slow
def test_commands_load_what_they_use(tmp_path, world):
    words = ["score", f"--model={world.pretrained}", "--text=The cat sat.", "--text=So it is."]
    lazy, loaded = _large_libraries(tmp_path, words, is_program=True)
    assert loaded == []
    ordinary, loaded_by_user = _large_libraries(tmp_path, words, is_program=False)
    assert lazy == ordinary and lazy.count(b"\n") >= 2
    if IS_KERAS_3:
        assert "sklearn" in loaded_by_user
    table = tmp_path / "vectors.parquet"
    lines = tmp_path / "lines.txt"
    lines.write_text("The cat sat.\n")
    words = ["embed", f"--model={world.pretrained}", f"--input={lines}", f"--output={table}"]
    _, loaded = _large_libraries(tmp_path, words, is_program=True)
    assert table.exists()
    assert loaded in (["pandas.core"], [])


def test_objects_of_tensorflow_are_not_collected(tmp_path, monkeypatch):
    (tmp_path / "no_tensorflow.py").write_text("import gc\nWAS_ENABLED = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(garbage, "_PACKAGE", "no_tensorflow")
    garbage.pause_for_tensorflow()
    frozen = gc.get_freeze_count()
    import no_tensorflow

    assert not no_tensorflow.WAS_ENABLED
    assert gc.isenabled()
    assert gc.get_freeze_count() > frozen
    gc.disable()
    try:
        del sys.modules["no_tensorflow"]
        importlib.import_module("no_tensorflow")
        assert not gc.isenabled()
    finally:
        gc.enable()
