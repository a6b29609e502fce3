"""YAML that is safe to read from strangers: plain values only, bounded in size and depth.

No tags, so nothing is constructed or executed; no anchors and aliases, which let a few bytes stand
for gigabytes; keys are text; dates are text. Numbers are bounded as in `json_files`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import yaml

from official.xlnet.errors import ConfigError
from official.xlnet.files import file_system
from official.xlnet.files.json_files import MAX_DEPTH, MAX_DIGITS
from official.xlnet.files.schema import shown

MAX_BYTES = 1 << 20


def parse_yaml(text: str, where: str) -> Any:
    """Returns the tree that a text in YAML describes.

    Args:
      text: the text.
      where: what the text is, e.g. a path, for error messages.

    Raises:
      ConfigError: it is not YAML, or not in the part of YAML that is read here.
    """
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{where}: expected at most {MAX_BYTES:,} characters, got {len(text):,}")
    loader = None
    try:
        loader = _Loader(text)
        return loader.get_single_data()
    except (yaml.YAMLError, ValueError) as error:
        message = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{where}{place} is not valid YAML: {message}") from None
    finally:
        if loader is not None:
            loader.dispose()


def read_yaml(path: str) -> Any:
    """Returns the tree in a YAML file; see `parse_yaml`.

    Raises:
      ConfigError: it is not such YAML in UTF-8, or it is empty, as a full disk may leave it; a file
        of comments alone stands for the defaults.
    """
    if file_system.size(path) > 4 * MAX_BYTES:
        raise ConfigError(f"{path}: expected at most {MAX_BYTES:,} characters")
    try:
        with file_system.open(path, encoding="utf-8") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    if not text.strip():
        raise ConfigError(f"{path}: expected settings, got an empty file")
    return parse_yaml(text, path)


class _Loader(yaml.SafeLoader):
    """The part of YAML that the module describes."""

    def __init__(self, text: str):
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent, index):
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self._refuse(
                event,
                "expected plain values, got an anchor or an alias (& or *); put a text that begins "
                "so in quotes",
            )
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(event, f"expected at most {MAX_DEPTH} levels of nesting")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node, deep=False):
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key_node.tag != "tag:yaml.org,2002:str":
                self._refuse(key_node, f"expected text as a key, got {shown(key)}")
            if key in seen:
                self._refuse(key_node, f"expected every key once, got {shown(key)} again")
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_integer(self, node):
        if len(node.value) > MAX_DIGITS:
            self._refuse(
                node,
                f"expected integers of at most {MAX_DIGITS} digits, got one of {len(node.value)}",
            )
        return self.construct_yaml_int(node)

    def construct_other(self, node):
        self._refuse(node, f"expected plain values, got the tag {shown(node.tag)}")

    def _refuse(self, where, problem: str) -> NoReturn:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=where.start_mark)


_Loader.yaml_constructors = {
    f"tag:yaml.org,2002:{kind}": yaml.SafeLoader.yaml_constructors[f"tag:yaml.org,2002:{kind}"]
    for kind in ("null", "bool", "float", "str", "seq", "map")
}
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_integer)
_Loader.add_constructor(None, _Loader.construct_other)
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag.rpartition(":")[2] in ("null", "bool", "float", "int")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
