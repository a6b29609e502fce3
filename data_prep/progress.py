"""A progress bar on standard error."""

from __future__ import annotations

import tqdm


def progress_bar(shown: bool, desc: str, total: int, unit: str) -> tqdm.tqdm:
    """A progress bar; it is shown on terminals only.

    Args:
      shown: whether to show it on a terminal.
      desc: what is counted.
      total: the number to reach.
      unit: unit of the number.
    """
    return tqdm.tqdm(
        desc=desc, total=total, unit=unit, unit_scale=True, disable=None if shown else True
    )
