"""`make lesson`: the small model and the data that the notebooks of the documentation read.

One folder serves a class, as notebooks only read it. An interrupted call is resumed by the same
command.
"""

from __future__ import annotations

import argparse
import pathlib
import shutil
import stat
import sys
from pydoc_data.topics import topics  # The Python manual, which comes with Python.

from official.xlnet import cli

OUTPUT = "lesson"
SETTINGS = ("model.vocab_size=2000", "training.num_steps=600", "training.warmup_steps=60")
PAGES = ("debugger", "string-methods")  # The classes of the table.
_SHORTEST_LINE = 6  # In words.
_TEST_ROWS = 100
_README = """The files that the notebooks of XLNet for TensorFlow read, made by `make lesson`:

- text.txt: the Python manual, one paragraph per line, a blank line between documents
- vocab: a vocabulary of 2,000 pieces; data: the text as records
- model: the recipe `tiny`, pre-trained for 600 steps; hf: the same in the format of HF transformers
- train.csv, test.csv: lines of the manual; label: the page that a line is from
"""


def main() -> int:
    """Makes the folder; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default=OUTPUT, help="folder to write")
    make(pathlib.Path(parser.parse_args().output))
    return 0


def make(folder: pathlib.Path) -> None:
    """Makes the folder, unless it is complete, and forbids writing to it.

    Args:
      folder: folder to make.
    """
    readme = folder / "README.txt"
    if readme.exists():
        print(f"{folder} is complete; to make it anew, delete it: chmod -R u+w {folder}; rm -r it")
        return
    cli.set_environment_defaults()
    from official import xlnet

    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: str(folder / name) for name in ("text.txt", "vocab", "data", "model", "hf")}
    write_text(folder / "text.txt")
    write_tables(folder)
    config = xlnet.XLNetConfig.load("tiny", SETTINGS)
    xlnet.train_vocabulary(paths["text.txt"], paths["vocab"], config.model.vocab_size)
    xlnet.prepare(paths["text.txt"], paths["vocab"], config, paths["data"], num_workers=1)
    xlnet.pretrain(config, paths["data"], paths["model"])
    shutil.rmtree(paths["hf"], ignore_errors=True)  # Of an interrupted call.
    xlnet.convert(paths["model"], paths["hf"], "hf")
    readme.write_text(_README, encoding="utf-8")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    print(f"{folder}: ready, and read-only")


def write_text(path: pathlib.Path) -> None:
    """Writes the Python manual, one paragraph per line.

    Args:
      path: text file to write.
    """
    with open(path, "w", encoding="utf-8") as file:
        for page in topics.values():
            lines = filter(None, map(str.strip, page.splitlines()))
            file.write("\n".join(lines) + "\n\n")


def write_tables(folder: pathlib.Path) -> None:
    """Writes train.csv and test.csv: which page is a line from?

    Args:
      folder: folder to write to.
    """
    import pandas as pd

    rows = [
        (line.strip(), page)
        for page in PAGES
        for line in topics[page].splitlines()
        if len(line.split()) >= _SHORTEST_LINE
    ]
    table = pd.DataFrame(rows, columns=["text", "label"]).sample(frac=1, random_state=1)
    table[_TEST_ROWS:].to_csv(folder / "train.csv", index=False)
    table[:_TEST_ROWS].to_csv(folder / "test.csv", index=False)


if __name__ == "__main__":
    sys.exit(main())
