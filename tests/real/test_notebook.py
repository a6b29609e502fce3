"""A notebook with our verbs and our API in its cells, run by Jupyter's own kernel."""

import ast
import json
import re
import threading
import time

import nbformat
import pytest
from jupyter_client import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from official import xlnet
from tools import notebooks

TRACEBACK = re.compile(r"Traceback|\bError\b")


def outputs(cells, folder):
    """Runs cells in a fresh kernel; returns what each printed, without TensorFlow's log."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    texts = []
    for cell in notebook.cells:
        printed = [x.get("text") or x["data"]["text/plain"] for x in cell.outputs]
        assert not TRACEBACK.search("".join(printed)), (cell.source, printed)
        texts.append("".join(printed))
    return texts


def last_tree(text):
    return ast.literal_eval(text.strip().splitlines()[-1].replace("null", "None"))


@pytest.mark.slow
def test_verbs_and_functions_in_cells_say_the_same(world, tmp_path):
    task = world.task("classification")
    with open(task.dev, encoding="utf-8") as file:
        texts = [row.rstrip("\n").split("\t")[-1] for row in list(file)[1:6]]
    shell = "import sys\nxlnet = f'{sys.executable} -m official.xlnet.cli'\n%env MPLBACKEND"
    cells = [
        shell,
        f"!{{xlnet}} score --model={world.pretrained} --text='the water'",
        "from official import xlnet as xl",
        f"xl.score({world.pretrained!r}, ['the water'])[0].total",
        f"!{{xlnet}} evaluate --model={task.model} --data={task.dev}",
        f"xl.evaluate({task.model!r}, {task.dev!r})['accuracy']",
        f"[row['label'] for row in xl.predict({task.model!r}, {texts!r})]",
        f"!{{xlnet}} inspect attention --model={world.pretrained} --text=the --output=a.html",
    ]
    found = outputs(cells, tmp_path)
    assert "matplotlib_inline" in found[0]
    [row] = [last_tree(line) for line in found[1].splitlines() if '"total"' in line]
    assert row["total"] == pytest.approx(float(found[3]), rel=1e-5)
    assert last_tree(found[4])["accuracy"] == pytest.approx(float(found[5]))
    assert ast.literal_eval(found[6]) == [row["label"] for row in task.predictions()[:5]]
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!")


@pytest.mark.slow
def test_wrong_input_in_a_cell_names_the_argument(world, tmp_path):
    with pytest.raises(CellExecutionError, match=r"model: expected .*a path"):
        outputs(["from official import xlnet", "xlnet.score(3, ['the'])"], tmp_path)


@pytest.mark.slow
def test_the_kernels_interrupt_is_one_line_and_the_next_call_resumes(world, tmp_path):
    train = f"xlnet.pretrain({world.config!r}, {world.data!r}, 'model')['step']"
    steps = "[line['step'] for line in xlnet.read_history('model')]"
    sources = ["from official import xlnet", train, train, steps]
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
    last, steps = (cell.outputs[-1]["data"]["text/plain"] for cell in notebook.cells[2:])
    assert last == "60" and ast.literal_eval(steps) == [*range(1, 61)]


IMPORTS = {"itertools", "matplotlib", "numpy", "official", "pandas", "pydoc_data", "tensorflow"}


def shown(cell):
    """What a cell shows: streams, errors, tables, pictures."""
    kinds = [sorted(x.get("data", {x.get("name", "error"): 0})) for x in cell.get("outputs", ())]
    return [kind for kind in kinds if kind != ["stderr"]]  # Progress depends on the machine.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("notebooks")


@pytest.mark.parametrize(
    "name",
    [notebooks.NAMES[0], *(pytest.param(x, marks=pytest.mark.slow) for x in notebooks.NAMES[1:])],
)
def test_a_notebook_of_the_documentation_runs_and_shows_what_the_site_has(name, folder):
    path = notebooks.FOLDER / f"{name}.ipynb"
    committed, found = nbformat.read(path, as_version=4), notebooks.execute(name, folder)
    assert len(found.cells) <= 15 and path.stat().st_size < 400_000
    assert [*map(shown, committed.cells)] == [*map(shown, found.cells)]
    code = [cell for cell in found.cells if cell.cell_type == "code"]
    imported = re.findall(r"(?m)^(?:import|from) (\w+)", "\n".join(cell.source for cell in code))
    assert set(imported) <= IMPORTS
    printed = "".join(x.get("text", "") for cell in code for x in cell.outputs)
    assert not re.search(r"Traceback|\w+Warning\b|retracing", printed), printed
    text = path.read_text(encoding="utf-8")
    page = notebooks.page(json.loads(text))
    assert page.count("data:image/png") == text.count('"image/png"')
