"""Notebooks of the documentation: run in place, and shown as pages of the site.

`make notebooks` makes a lesson (`make lesson`), runs each notebook in a kernel and a folder of its
own, and writes their outputs.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
import time
from typing import Any

from tools import lesson

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "docs/notebooks"
NAMES = ("permutation", "from_text_to_model", "fine_tuning", "look_inside", "orders")


def main() -> None:
    """Runs the notebooks, or those that are named, and writes them with their outputs."""
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(os.environ.get("XLNET_LESSON") or f"{folder}/lesson").resolve()
        lesson.make(made)
        for name in sys.argv[1:] or NAMES:
            start = time.monotonic()
            notebook, gigabytes = execute(name, folder, made)
            nbformat.write(notebook, FOLDER / f"{name}.ipynb")
            print(f"{name}: {time.monotonic() - start:.0f} s, {gigabytes:.1f} GB", flush=True)


def execute(name: str, folder: str | os.PathLike, made: str | os.PathLike) -> tuple[Any, float]:
    """Runs a notebook in a kernel of its own, where TensorFlow's log is as a user has it.

    Args:
      name: one of `NAMES`.
      folder: the working directory of the cells.
      made: the lesson's folder.

    Returns:
      The notebook with outputs, and the most memory that its kernel used, in GB.

    Raises:
      CellExecutionError: a cell fails.
    """
    import nbformat  # Where notebooks are run only.
    from nbclient import NotebookClient

    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    peaks = []

    def measure(**_: Any) -> None:
        peaks.append(_peak_gigabytes(client.km.provisioner.pid))

    client: Any = NotebookClient(
        notebook,
        timeout=900,
        kernel_name="python3",
        resources={"metadata": {"path": os.fspath(folder)}},
        record_timing=False,
        coalesce_streams=True,
        on_cell_executed=measure,
    )
    environment = {name: x for name, x in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    client.execute(env=environment | {"XLNET_LESSON": os.fspath(made)})
    return notebook, max(peaks)


def _peak_gigabytes(process_id: int) -> float:
    status = pathlib.Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    (kilobytes,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(kilobytes) / 1e6


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for each notebook to the site; MkDocs calls it."""
    from mkdocs.structure.files import File  # Where the site is built only.

    for name in NAMES:
        content = page(json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")))
        files.append(File.generated(config, f"notebooks/{name}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Leads links of notebooks to their pages; MkDocs calls it."""
    for name in NAMES:
        markdown = markdown.replace(f"{name}.ipynb)", f"{name}.md)")
    return markdown


def page(notebook: dict[str, Any]) -> str:
    """Returns a notebook as Markdown, with its outputs."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += map(_output, cell.get("outputs", ()))
    return "\n\n".join(parts)


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    data = {kind: "".join(content) for kind, content in data.items()}
    if "image/png" in data:
        return f'<img alt="output" src="data:image/png;base64,{data["image/png"].strip()}">'
    return data.get("text/html") or f"```text\n{data['text/plain'].rstrip()}\n```"


if __name__ == "__main__":
    main()
