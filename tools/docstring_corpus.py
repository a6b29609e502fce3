"""Text corpus of the docstrings of installed Python packages, available without a download."""

from __future__ import annotations

import ast
import concurrent.futures
import importlib.util
import os
import re
import warnings
from collections.abc import Iterator

from tqdm import tqdm

# Packages of requirements.lock whose docstrings are mostly prose.
PACKAGES = ("numpy", "scipy", "pandas", "matplotlib", "sklearn", "tf_keras", "dask", "distributed")
_MIN_WORDS = 8
_MIN_SHARE_OF_LETTERS = 0.9
_MARKUP = re.compile(r">>>|::|--|[{}=|<>]|\.\.")


def write_corpus(path: str, packages: tuple[str, ...] = PACKAGES) -> int:
    """Writes the corpus: one document per module, one paragraph per line.

    Modules are parsed, not imported. Repeated paragraphs are skipped.

    Args:
      path: the text file to write.
      packages: package names; packages that are not installed are skipped.

    Returns:
      The number of documents.
    """
    files = [file for package in packages for file in _source_files(package)]
    seen: set[str] = set()
    num_documents = 0
    with (
        open(path + ".tmp", "w", encoding="utf-8") as out,
        concurrent.futures.ProcessPoolExecutor() as pool,
    ):
        found = pool.map(prose, files, chunksize=32)
        for paragraphs in tqdm(
            found, total=len(files), desc="docstrings", unit=" files", disable=None
        ):
            fresh = [text for text in dict.fromkeys(paragraphs) if text not in seen]
            seen.update(fresh)
            if fresh:
                out.write("\n".join(fresh) + "\n\n")
                num_documents += 1
    os.replace(path + ".tmp", path)
    return num_documents


def prose(path: str) -> list[str]:
    """Extracts paragraphs of prose from the docstrings of a Python file."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read())
    except (SyntaxError, ValueError):
        return []  # Templates and test data that are not valid Python.
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = (
        ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)
    )
    paragraphs = (
        " ".join(paragraph.split())
        for docstring in docstrings
        for paragraph in re.split(r"\n\s*\n", docstring or "")
    )
    return [paragraph for paragraph in paragraphs if _is_prose(paragraph)]


def _is_prose(paragraph: str) -> bool:
    letters = sum(character.isalpha() or character == " " for character in paragraph)
    return (
        len(paragraph.split()) >= _MIN_WORDS
        and paragraph[0].isupper()
        and paragraph.endswith(".")
        and not _MARKUP.search(paragraph)
        and letters >= _MIN_SHARE_OF_LETTERS * len(paragraph)
    )


def _source_files(package: str) -> Iterator[str]:
    spec = importlib.util.find_spec(package)
    for root in spec.submodule_search_locations or () if spec else ():
        for directory, directories, files in os.walk(root):
            directories[:] = sorted(name for name in directories if name != "tests")
            yield from sorted(
                os.path.join(directory, name) for name in files if name.endswith(".py")
            )
