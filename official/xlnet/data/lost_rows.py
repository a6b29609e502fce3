"""Rows and text that do not reach the model: how many there may be, and how they are reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from absl import logging

from official.xlnet.errors import DataError
from official.xlnet.files.schema import Range

MaxLost = Annotated[float, Range(0, 1)]  # A share of rows that are left out and counted.
MAX_LOST = 0.05


def check_lost(
    where: str,
    lost: Mapping[str, int],
    total: int,
    max_lost: float = MAX_LOST,
    *,
    unit: str = "rows",
    first: str = "",
) -> None:
    """Warns of lost rows; raises an error if their share is above a limit.

    Args:
      where: path of the file, for the message.
      lost: numbers of lost rows, by reason.
      total: number of all rows, with those that are lost.
      max_lost: largest share of lost rows that is not an error, from 0 to 1.
      unit: name of the counted units, e.g. `documents`.
      first: error message of the first of them.

    Raises:
      DataError: more than `max_lost` of the rows are lost.

    Example:
      >>> check_lost("train.csv", {"malformed_rows": 3}, 12)
      Traceback (most recent call last):
      DataError: train.csv: 3 of 12 rows cannot be used (malformed_rows 3); expected at most 0.05 of
        them, see --max_lost
    """
    num_lost = sum(lost.values())
    if not num_lost:
        return
    reasons = ", ".join(f"{reason} {count}" for reason, count in lost.items() if count)
    message = f"{where}: {num_lost} of {total} {unit} cannot be used ({reasons})"
    first = f"; the first: {first}" if first else ""
    if num_lost > max_lost * total:
        raise DataError(
            f"{message}; expected at most {max_lost:.3g} of them, see --max_lost{first}"
        )
    logging.warning("%s%s", message, first)
