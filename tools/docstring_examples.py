"""Shows the examples of docstrings as code in the documentation's site (mkdocs.yml)."""

from typing import Any

import griffe


class DocstringExamples(griffe.Extension):
    """Renames the section `Example:`, as the style guide has it, to the `Examples:` of griffe."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called by griffe for every module, class and function."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
