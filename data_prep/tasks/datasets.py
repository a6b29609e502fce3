"""Settings of a task type or a supported data set, by name.

The names are accepted by `xlnet finetune --task`. The settings are keys of the section `task`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from official.xlnet.configs.registry import DATASETS
from official.xlnet.errors import DataError


def task_settings(name: str, kinds: Sequence[str]) -> dict[str, Any]:
    """Returns the task settings of a data set or task type.

    Args:
      name: name of a data set or task type.
      kinds: names of the task types.

    Returns:
      Keys of the section `task` by name.

    Raises:
      DataError: the name is unknown.
    """
    if name in DATASETS:
        return dict(DATASETS[name])
    if name in kinds:
        return {"name": name}
    known = [*kinds, *DATASETS]
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise DataError(f"task {name!r}: expected one of {', '.join(known)}{hint}")
