"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

from tests.helpers.package.budgets import Budget


def window(world, folder, windows_per_lane):
    """Flags that show one window of a data set."""
    from benchmarks.data.random_records import write_data_set  # It imports TensorFlow.

    data = str(folder / "data")
    sizes = {"seq_len": 19, "reuse_len": 7, "num_lanes": 4, "windows_per_lane": windows_per_lane}
    write_data_set(data, **sizes)
    return [data, f"--index={windows_per_lane - 1}", f"--output={folder}/window.html"]


def attention(world, folder, num_words):
    text = " ".join(["the"] * num_words)
    return [f"--model={world.pretrained}", f"--text={text}", f"--output={folder}/maps.html"]


BUDGETS = {
    "inspect records": Budget(window, few=500, bytes_of_one=0),
    # Maps of each head and layer, as numbers and as text of the page.
    "inspect attention": Budget(attention, few=3, bytes_of_one=1e6),
}
