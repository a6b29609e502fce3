"""Dependencies point one way: model files know nothing of input code, nobody of the commands.

The rules are read off the import statements; nothing is imported.
"""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]

# Modules of official.xlnet that turn records or text into tensors.
INPUT = {"input_pipeline", "tokenization"}
# Modules that wire model and input together.
EDGE = {"cli", "commands", "training", "task_data"}
# What data_prep may use.
SCHEMA = {"config", "cores", "examples", "features", "random_bits", "text_cleaning", "tokenization"}
# The network itself, from the paper's layers up to the models.
MODEL = {
    "attention",
    "encoder",
    "losses",
    "permutation",
    "pretrainer",
    "relative_position",
}


def imports_of(path: pathlib.Path) -> set[str]:
    """Modules of this project that a file imports: `official.xlnet.X` as X, `data_prep`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    ours = {name.split(".")[2] for name in names if name.startswith("official.xlnet.")}
    return ours | (
        {"data_prep"} if any(name.split(".")[0] == "data_prep" for name in names) else set()
    )


def library_modules() -> dict[str, pathlib.Path]:
    return {path.stem: path for path in (ROOT / "official/xlnet").glob("*.py")}


@pytest.mark.parametrize("name", sorted(MODEL))
def test_model_files_never_import_input_code(name):
    used = imports_of(library_modules()[name])
    assert not used & (INPUT | EDGE | {"data_prep"}), f"{name} imports {used}"


def test_only_the_edge_imports_commands_and_data_prep():
    for name, path in library_modules().items():
        if name not in EDGE:
            used = imports_of(path)
            assert not used & (EDGE | {"data_prep"}), f"{name} imports {used}"


def test_data_prep_uses_only_the_schema():
    files = list((ROOT / "data_prep").rglob("*.py"))
    assert files
    for path in files:
        assert imports_of(path) <= SCHEMA | {"data_prep"}, path


def test_config_cores_and_features_stand_alone():
    modules = library_modules()
    assert imports_of(modules["config"]) == set()
    assert imports_of(modules["features"]) == set()
    assert imports_of(modules["cores"]) == set()
