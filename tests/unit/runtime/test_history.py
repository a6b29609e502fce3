"""The history of a run that is resumed."""

import pytest

from official.xlnet.runtime.history import open_history, read_history


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("last", [0, 3, 4, 5, 7])
@pytest.mark.parametrize("step", [0, 5])
def test_a_history_that_does_not_reach_the_checkpoint_is_reported(
    tmp_path, caplog, first, last, step
):
    """Lines after it are removed, and one that a kill left half written is none."""
    lines = [f'{{"step": {n}, "loss": 2.5}}\n' for n in range(first, last + 1)]
    (tmp_path / "history.jsonl").write_text("".join(lines) + '{"step": ')
    open_history(str(tmp_path), step).close()
    steps = [line["step"] for line in read_history(str(tmp_path))]
    assert steps == [*range(first, min(last, step) + 1)]
    reported = "the losses in between are lost" in caplog.text
    assert reported == (step > max(steps, default=0))
