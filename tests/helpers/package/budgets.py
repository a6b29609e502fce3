"""Budgets of verbs: how their memory may grow with the size of what they are given.

`tests/e2e/texts/test_budgets_of_verbs.py` has those of the core; those of a project are the table
`BUDGETS` in its `rows.py`.
"""

import dataclasses
import json
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Budget:
    """A verb at two sizes, of which one is `FACTOR` times the other.

    Attributes:
      flags: from the world, a folder for files and a size, the flags of the verb.
      few: the smaller size.
      bytes_of_one: memory that one more of its units may take.
    """

    flags: Callable
    few: int
    bytes_of_one: float = 2000


FACTOR = 8


def write_rows(path, number, row):
    """Writes JSON lines: `row` of each number."""
    path.write_text("".join(f"{json.dumps(row(n))}\n" for n in range(number)))
    return path


def sentence(number):
    return {"text": f"The cat sat on the water {number % 7}."}


def of_rows(*flags, row=sentence, few=1500, bytes_of_one=2000, suffix=".jsonl", model="pretrained"):
    """Budget of a verb that reads rows: a row is kept once or twice, what is computed is not.

    Args:
      *flags: further flags of the verb.
      row: the JSON object of a row, from its number.
      few: the smaller number of rows.
      bytes_of_one: see `Budget`.
      suffix: of the output.
      model: the kind of a task whose model is used; default: the pre-trained one.
    """

    def flags_of(world, folder, number):
        source = write_rows(folder / "rows.jsonl", number, row)
        path = world.pretrained if model == "pretrained" else world.task(model).model
        output = folder / f"output{suffix}"
        return [f"--model={path}", f"--input={source}", f"--output={output}", *flags]

    return Budget(flags_of, few, bytes_of_one)
