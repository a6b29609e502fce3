"""Reading YAML of unknown origin: plain values, as `yaml.safe_load` reads them, without aliases."""

from __future__ import annotations

from typing import Any

import yaml

from official.xlnet.errors import ConfigError, require_config
from official.xlnet.files import file_system
from official.xlnet.files.schema import shown


def parse_yaml(text: str | bytes, where: str) -> Any:
    """Returns the tree that a text in YAML describes.

    Args:
      text: the text; bytes are UTF-8.
      where: what the text is, e.g. a path, for error messages.

    Raises:
      ConfigError: it is not YAML, repeats a key, or has an alias or a tag that is not plain data.
    """
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where}{_line_of(error)} is not valid YAML: {_reason(error)}") from None


def read_yaml(path: str) -> Any:
    """Returns the tree in a YAML file; see `parse_yaml`.

    Raises:
      ConfigError: it is not such YAML in UTF-8, or it is empty, as a full disk may leave it; a file
        of comments alone stands for the defaults.
    """
    content = file_system.read_bytes(path)
    require_config(bool(content.strip()), path, "settings", "an empty file")
    return parse_yaml(content, path)


def _line_of(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}" if mark else ""


def _reason(error: Exception) -> str:
    return getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)


class _Loader(yaml.SafeLoader):
    """Loader that refuses aliases, a few bytes of which expand to gigabytes, and repeated keys."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            problem = "expected plain values, got an alias (*); put a text that begins so in quotes"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        previous_keys: set[str] = set()
        for key, _ in node.value:
            problem = None
            if key.tag != "tag:yaml.org,2002:str":
                problem = f"expected text as a key, got {shown(key.value)}"
            elif key.value in previous_keys:
                problem = f"expected every key once, got {shown(key.value)} again"
            if problem is not None:
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            previous_keys.add(key.value)
        return super().construct_mapping(node, deep)
