"""The recipes of the package and of its projects."""

import pathlib

from official.xlnet.configs.registry import RECIPE_FOLDERS
from official.xlnet.projects import PROJECTS

# Recipes with keys of another project than their own.
FROM_ELSEWHERE = {"mt_dnn": "survey"}


def recipes(pattern="*.yaml"):
    """{name of a recipe: its path}, such as `tiny` and `ablation/bert`, in alphabetical order.

    Recipes with keys of a project that is not there are left out."""
    found = {}
    for folder in map(pathlib.Path, RECIPE_FOLDERS):
        for path in folder.glob(pattern):
            name = path.relative_to(folder).with_suffix("").as_posix()
            assert name not in found, f"{path}: a recipe of this name is in {found[name]}"
            if FROM_ELSEWHERE.get(name, "") in ("", *PROJECTS):
                found[name] = path
    return dict(sorted(found.items()))
