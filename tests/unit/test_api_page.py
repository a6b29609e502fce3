"""docs/library.md is what `python -m tools.api_page` writes, and says what the docstrings say."""

import ast
import inspect
import re

import pytest

from official import xlnet
from tools import api_page


def test_the_committed_page_is_up_to_date():
    assert api_page.PAGE.read_text(encoding="utf-8") == api_page.page(), (
        "docs/library.md is out of date: run python -m tools.api_page"
    )


def test_it_has_every_name_and_argument_of_the_package():
    page = api_page.page()
    for name in set(xlnet.__all__) - {"__version__"}:
        texts = re.findall(rf"^### {name}\n(.*?)^##", page, re.M | re.S)
        # Rooms below may have functions of the same name.
        (text,) = (each for each in texts if f"`xlnet.{name}`" in each)
        arguments = set(inspect.signature(getattr(xlnet, name)).parameters)
        for argument in arguments - {"default_params", "restrictions"}:  # Of hyperparams.Config.
            assert re.search(rf"\b{argument}\b", text), f"{name}({argument})"
        first_line = inspect.getdoc(getattr(xlnet, name)).partition("\n")[0]
        assert first_line in text.replace("&lt;", "<")


SOURCE = '''
@dataclasses.dataclass(frozen=True)
@register("thing")
class Thing(Base):
    """A thing with <cls>
    and `<sep>`.

    More about it.

    Attributes:
      one: the first,
        on two lines.
      two, three: others:
        a int32 [2]
        b < c

    Example:
      >>> Thing(1)
    """

    one: int = 1
    _hidden: int = 2

    def method(self, x: int, *, y="z", **more) -> None:
        """Does it.

        Returns:
          What was asked for, in
          two lines.
        """
        return x

    def _private(self):
        """No."""

    def undocumented(self): ...
'''

EXPECTED = """\
### Thing

<!-- test: parse -->
```python
@dataclasses.dataclass(frozen=True)
class Thing(Base):
    one: int = 1

    def method(self, x: int, *, y="z", **more) -> None: ...
```

A thing with &lt;cls> and `<sep>`.

Attributes:

- `one`: the first, on two lines.
- `two, three`: others:
    - a int32 [2]
    - b &lt; c

`Thing.method`:
Does it.

Returns:

- What was asked for, in two lines.
"""


def test_an_entry_by_hand():
    (node,) = ast.parse(SOURCE).body
    assert api_page.entry(node, "") == EXPECTED


def test_names_are_found_where_they_are_defined():
    module, node = api_page.find("official.xlnet.modeling.heads", "register_head")
    assert (module, node.name) == ("official.xlnet.modeling.heads.base", "register_head")
    with pytest.raises(ValueError, match="neither defines nor imports nothing"):
        api_page.find("official.xlnet.errors", "nothing")
