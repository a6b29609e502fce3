"""Notebooks of the documentation: run in place, and shown as pages of the site.

`make notebooks` runs them in a kernel, each after the other in one folder, so that later ones find
the model of the second, and writes their outputs.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "docs/notebooks"
# TensorFlow's own log, of missing GPUs and the like, which is no part of a lesson.
_LOG = re.compile(
    r"(?m)^(\d{4}-\d\d-\d\d |[IWE]0000 |WARNING: All log messages|To enable the following).*\n+"
)
NAMES = ("permutation", "from_text_to_model", "fine_tuning", "look_inside", "orders")


def main() -> None:
    """Runs the notebooks, and writes them with their outputs."""
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            nbformat.write(execute(name, folder), FOLDER / f"{name}.ipynb")


def execute(name: str, folder: str | os.PathLike) -> Any:
    """Runs a notebook in a kernel of its own; returns it with outputs, but TensorFlow's log.

    Args:
      name: one of `NAMES`.
      folder: the working directory of the cells.

    Raises:
      CellExecutionError: a cell fails.
    """
    import nbformat  # Where notebooks are run only.
    from nbclient import NotebookClient

    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": os.fspath(folder)}}
    client = NotebookClient(
        notebook,
        timeout=900,
        kernel_name="python3",
        resources=resources,
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = _LOG.sub("", output["text"])
        if "outputs" in cell:
            cell["outputs"] = [output for output in cell["outputs"] if output.get("text") != ""]
    return notebook


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
