"""The recipes of the package and of its projects."""

import pathlib

from official.xlnet.configs.registry import RECIPE_FOLDERS


def recipes(pattern="*.yaml"):
    """{name of a recipe: its path}, such as `tiny` and `ablation/bert`, in alphabetical order."""
    found = {}
    for folder in map(pathlib.Path, RECIPE_FOLDERS):
        for path in folder.glob(pattern):
            name = path.relative_to(folder).with_suffix("").as_posix()
            assert name not in found, f"{path}: a recipe of this name is in {found[name]}"
            found[name] = path
    return dict(sorted(found.items()))
