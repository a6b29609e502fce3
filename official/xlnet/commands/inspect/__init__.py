"""Visualizes records, attention maps or training runs: records, attention, runs.

Each is a verb of its own, `xlnet inspect records` for example; see `xlnet inspect records --help`.
"""

from __future__ import annotations

from absl import flags


def check_ending(path: str, endings: tuple[str, ...]) -> str:
    """Returns a path; raises `flags.Error` if it has none of the endings."""
    if not path.endswith(endings):
        raise flags.Error(f"--output: expected a file ending in {' or '.join(endings)}")
    return path
