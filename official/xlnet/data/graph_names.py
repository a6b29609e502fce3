"""Names of users (columns, tasks) as names in a graph: valid, distinct, known to a client.

A name is valid if it is a Python identifier in ASCII that is not a keyword and begins with a
letter, as TensorFlow requires for inputs of signatures and for scopes; case does not make names
distinct there.
"""

from __future__ import annotations

import hashlib
import keyword
import os
import re
from collections.abc import Iterable, Sequence

from official.xlnet.errors import require_data

# In an exported version: {text input: column of the training data}. TF Serving leaves it alone.
COLUMNS_FILE = os.path.join("assets.extra", "columns.json")
_VALID = re.compile("[A-Za-z][A-Za-z0-9_]*")
_MOST_CHARACTERS = 60  # Longest name that is derived from a column.


def graph_names(
    names: Sequence[str], prefix: str = "text", reserved: Iterable[str] = ()
) -> tuple[str, ...]:
    """Returns a valid name for each name; different names have different ones.

    Characters other than letters, digits and underscores become underscores. A name that is not
    valid then begins with `prefix`; and one that is not distinct ends with a checksum of the
    original.

    Args:
      names: the names.
      prefix: start of a name that would not be valid.
      reserved: names that are taken.

    Example:
      >>> graph_names(["text", "Review Text", "#1 String", "class", "标题"])
      ('text', 'Review_Text', 'text_1_String', 'text_class', 'text_c3405f8c')
      >>> graph_names(["text-a", "text_a"])
      ('text_a_fad05234', 'text_a')
    """
    different = dict.fromkeys(names)
    plain = {name: _plain(name, prefix) for name in different}
    taken = {name.lower() for name in reserved}
    valid: dict[str, str] = {}
    for name in sorted(different, key=lambda name: plain[name] != name):  # Valid ones come first.
        key = plain[name].lower()
        is_own = plain[name] == name or [p.lower() for p in plain.values()].count(key) == 1
        valid[name] = plain[name] if is_own and key not in taken else _marked(name, prefix)
        taken.add(valid[name].lower())
    return tuple(valid[name] for name in names)


def columns_of_inputs(inputs: Sequence[str], columns: Sequence[str], where: str) -> tuple[str, ...]:
    """Returns the column of a table for each input of a signature, by its name in `graph_names`.

    Args:
      inputs: names of the inputs.
      columns: names of the columns, among them others.
      where: names the table in the error.

    Raises:
      DataError: an input has no column, or several.

    Example:
      >>> columns_of_inputs(["text_1_String"], ["Quality", "#1 String"], "train.tsv")
      ('#1 String',)
    """
    matches = []
    for name in inputs:
        candidates = [column for column in columns if column == name]
        candidates = candidates or [c for c in columns if _marked(c, "text") == name]
        candidates = candidates or [c for c in columns if _plain(c, "text") == name]
        require_data(
            len(candidates) == 1,
            where,
            f"one column for the input {name!r}",
            f"{', '.join(map(repr, candidates)) or 'none'} among {', '.join(columns)}",
        )
        matches += candidates
    return tuple(matches)


def _plain(name: str, prefix: str) -> str:
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    if _VALID.fullmatch(plain) and not keyword.iskeyword(plain) and plain != "self":
        return plain
    return "_".join([prefix, *filter(None, [plain.strip("_")[:_MOST_CHARACTERS]])])


def _marked(name: str, prefix: str) -> str:
    checksum = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_plain(name, prefix)[:_MOST_CHARACTERS]}_{checksum}"
