"""Rows that do not reach the model: a warning, or an error if they are more than a few percent."""

from __future__ import annotations

import numbers
from collections.abc import Mapping

from absl import logging

from official.xlnet.configs.validation import SHARE, require_number
from official.xlnet.errors import DataError

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
      first: what is wrong with the first of them.

    Raises:
      ConfigError: `max_lost` is not a share.
      DataError: more than `max_lost` of the rows are lost.

    Example:
      >>> check_lost("train.csv", {"malformed_rows": 3}, 12)
      Traceback (most recent call last):
      DataError: train.csv: 3 of 12 rows cannot be used (malformed_rows 3); expected at most 0.05 of
        them, see --max_lost
    """
    require_number("max_lost", max_lost, SHARE, numbers.Real)
    number = sum(lost.values())
    if not number:
        return
    reasons = ", ".join(f"{reason} {count}" for reason, count in lost.items() if count)
    message = f"{where}: {number} of {total} {unit} cannot be used ({reasons})"
    first = f"; the first: {first}" if first else ""
    if number > max_lost * total:
        raise DataError(
            f"{message}; expected at most {max_lost:.3g} of them, see --max_lost{first}"
        )
    logging.warning("%s%s", message, first)
