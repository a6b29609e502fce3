"""A notebook with our verbs and our API in its cells, run by Jupyter's own kernel."""

import ast
import json
import os
import re
import subprocess
import sys
import threading
import time

import nbformat
import pytest
from jupyter_client import KernelManager
from nbclient import NotebookClient

from official import xlnet
from tests.helpers.documents import ROOT
from tools import lesson, notebooks


@pytest.mark.slow
def test_cells_are_interrupted_resume_run_verbs_and_name_wrong_arguments(world, tmp_path):
    train = f"xlnet.pretrain({world.config!r}, {world.data!r}, 'model')['step']"
    steps = "[line['step'] for line in xlnet.read_history('model')]"
    # The kernel's MPLBACKEND is none that a program of its own could load.
    verb = f"!{sys.executable} -m official.xlnet.cli inspect attention --model={world.pretrained}"
    verb += " --text=the --output=a.html"
    scored = f"model = xlnet.load_pretrainer({world.pretrained!r})\n"
    scored += f"words = xlnet.load_tokenizer({world.pretrained!r})\n"
    scored += "for _ in range(7): xlnet.score(model, ['the'], tokenizer=words)"
    sources = ["import random; state = random.getstate()\nfrom official import xlnet"]
    sources += [train, train, steps, verb, "xlnet.score(3, ['the'])", "%tb", scored]
    sources += ["random.getstate() == state", "1 / 0"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    resources = {"metadata": {"path": str(tmp_path)}}
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources)
    client.kernel_manager_class, client.allow_errors = KernelManager, True

    def stop():
        while len(xlnet.read_history(tmp_path / "model")) < 5:
            time.sleep(0.01)
        client.km.interrupt_kernel()

    threading.Thread(target=stop, daemon=True).start()
    client.execute()
    [error] = [x for x in notebook.cells[1].outputs if x.output_type == "error"]
    [line] = error.traceback
    found = re.fullmatch(
        r"KeyboardInterrupt: interrupted at step (\d+); checkpoint saved in .*", line
    )
    assert found and 5 <= int(found[1]) < 60
    last, steps = (cell.outputs[-1]["data"]["text/plain"] for cell in notebook.cells[2:4])
    assert last == "60" and ast.literal_eval(steps) == [*range(1, 61)]
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!")
    [one] = [x.traceback for x in notebook.cells[5].outputs]
    assert len(one) == 1 and re.match("ArgumentTypeError: model: expected .*a path", one[0])
    whole = "\n".join(notebook.cells[6].outputs[-1].traceback)
    assert "Traceback (most recent call last)" in whole and "in call" in whole
    said = [x.text for x in notebook.cells[7].outputs]  # Nothing about graphs that are made again.
    assert all("these texts are short for the model" in text for text in said)
    assert notebook.cells[8].outputs[-1]["data"]["text/plain"] == "True"
    assert len(notebook.cells[9].outputs[-1].traceback) > 1  # Python's own errors are as ever.
    printed = "".join(x.get("text", "") for cell in notebook.cells for x in cell.outputs)
    assert not re.search(r"[EWI]0000 |is slow|already initialized|retracing", printed)


SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
shell.run_cell("from official.xlnet.errors import DataError, StoppedError")
for cell in ("raise DataError('a: expected b')", "%tb", "raise StoppedError('stopped')", "1 / 0"):
    print("= " + cell)
    shell.run_cell(cell)
"""


def test_errors_of_ours_are_a_line_and_tb_shows_their_traceback():
    """Those of others are as ever; TensorFlow is not needed."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", SHELL], env=environment, capture_output=True, text=True, check=True
    )
    one, whole, stopped, other = re.split(r"^= .*\n", run.stdout, flags=re.MULTILINE)[1:]
    assert one.splitlines() == ["DataError: a: expected b"]
    assert "Traceback (most recent call last)" in whole and "in <module>" in whole
    assert stopped.splitlines() == ["KeyboardInterrupt: stopped"]
    assert len(other.splitlines()) > 3 and "ZeroDivisionError" in other


IMPORTS = {"itertools", "numpy", "official", "os", "pandas", "tensorflow"}
EXPECTED = re.compile(r"(-?\d[\d.]*) +(-?\d[\d.]*) to (-?\d[\d.]*)(?: *\n|$)")


def shown(cell):
    """What a cell shows: streams, errors, tables, pictures."""
    kinds = [sorted(x.get("data", {x.get("name", "error"): 0})) for x in cell.get("outputs", ())]
    return [kind for kind in kinds if kind != ["stderr"]]  # Progress depends on the machine.


def state(folder):
    """What tells whether somebody has written to a folder."""
    files = {folder, *folder.rglob("*")}
    return {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in files}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The lesson, as one command makes it for a class."""
    folder = tmp_path_factory.mktemp("class") / "lesson"
    lesson.make(folder)
    assert {path.stat().st_mode & 0o222 for path in folder.rglob("*")} == {0}
    before = state(folder)
    lesson.make(folder)  # It is complete.
    assert state(folder) == before
    return folder


def test_notebooks_state_their_cost_read_the_lesson_and_end_with_two_exercises():
    for name in notebooks.NAMES:
        cells = nbformat.read(notebooks.FOLDER / f"{name}.ipynb", as_version=4).cells
        cost = r"It\stakes\s(a|\d)\sminutes?\son two CPU cores, and [\d.]+ GB\sof memory"
        assert re.search(cost.replace(" ", r"\s"), cells[0].source), name
        exercises = re.findall(r"^\d\.", cells[-1].source.partition("## Exercises")[2], re.M)
        assert len(exercises) == 2
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        assert ("XLNET_LESSON" in code) == (name != "permutation")
        assert ("xlnet.pretrain(" in code) == (name == "from_text_to_model")


@pytest.mark.nightly
@pytest.mark.parametrize("name", notebooks.NAMES)
def test_a_notebook_of_the_documentation_runs_and_shows_what_the_site_has(name, made, tmp_path):
    path, before = notebooks.FOLDER / f"{name}.ipynb", state(made)
    committed = nbformat.read(path, as_version=4)
    found, gigabytes = notebooks.execute(name, tmp_path, made)
    assert state(made) == before and gigabytes < 4
    assert {*os.listdir(tmp_path)} <= {name}
    assert len(found.cells) <= 15 and path.stat().st_size < 400_000
    assert [*map(shown, committed.cells)] == [*map(shown, found.cells)]
    code = [cell for cell in found.cells if cell.cell_type == "code"]
    imported = re.findall(r"(?m)^(?:import|from) (\w+)", "\n".join(cell.source for cell in code))
    assert set(imported) <= IMPORTS
    printed = "".join(x.get("text", "") for cell in code for x in cell.outputs)
    assert not re.search(r"Traceback|\w+Warning\b|retracing|cuInit|[EWI]0000 ", printed), printed
    tables = [x["data"].get("text/plain", "") for cell in code for x in cell.outputs if "data" in x]
    ranges = [x for table in tables for x in EXPECTED.findall(table)]
    assert ranges and all(float(a) <= float(x) <= float(b) for x, a, b in ranges), ranges
    text = path.read_text(encoding="utf-8")
    page = notebooks.page(json.loads(text))
    assert page.count("data:image/png") == text.count('"image/png"')
