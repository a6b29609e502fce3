"""Every window once, whatever batch sizes a run has had."""

import json
import random

import numpy as np
import pytest

from benchmarks.data.random_records import write_data_set
from official.xlnet.data.lane_schedule import LanePosition, LaneSchedule, Position
from official.xlnet.data.pretraining_dataset import pretraining_dataset

BATCH_SIZES = (2, 4, 6, 8)


def read(position, windows_per_lane, num_steps):
    """(number, window) [B] of every step, and the position after them."""
    schedule = LaneSchedule(position, windows_per_lane)
    steps = []
    for step in range(num_steps):
        number_B, window_B, _ = schedule.step_windows(step)
        steps.append(list(zip(number_B.tolist(), window_B.tolist(), strict=True)))
    return steps, schedule.position(num_steps)


def test_by_hand():
    """Three windows a lane; after two steps of 4 rows come batches of 2, then of 6."""
    steps, position = read(Position.start(4), 3, 2)
    assert steps == [[(0, 0), (1, 0), (2, 0), (3, 0)], [(0, 1), (1, 1), (2, 1), (3, 1)]]
    smaller = position.resized(2)
    assert smaller.waiting == (LanePosition(2, 2, 2), LanePosition(3, 2, 2))
    steps, position = read(smaller, 3, 3)
    assert steps == [[(0, 2), (1, 2)], [(2, 2), (3, 2)], [(4, 0), (5, 0)]]
    steps, _ = read(position.resized(6), 3, 3)
    assert steps[0] == [(4, 1), (5, 1), (6, 0), (7, 0), (8, 0), (9, 0)]
    assert steps[2] == [(10, 0), (11, 0), (6, 2), (7, 2), (8, 2), (9, 2)]


@pytest.mark.parametrize("seed", range(8))
def test_no_window_is_lost_or_read_twice_when_the_batch_changes(seed):
    rng = random.Random(seed)
    windows_per_lane = rng.randint(1, 6)
    position = Position.start(rng.choice(BATCH_SIZES))
    seen = []
    for _ in range(5):
        num_steps = rng.randint(0, 3 * windows_per_lane)
        steps, after = read(position, windows_per_lane, num_steps)
        # A stop in between changes nothing.
        stop = rng.randint(0, num_steps)
        first, between = read(position, windows_per_lane, stop)
        rest, at_end = read(between, windows_per_lane, num_steps - stop)
        assert (first + rest, at_end) == (steps, after)
        for step in steps:
            assert [number % 2 for number, _ in step] == [row % 2 for row in range(len(step))]
            seen.extend(step)
        saved = json.loads(json.dumps(after.as_dict()))
        position = Position.from_dict(saved).resized(rng.choice(BATCH_SIZES))
    pieces = [piece for piece in (*position.rows, *position.waiting) if piece is not None]
    left = [(p.number, window) for p in pieces for window in range(p.window, windows_per_lane)]
    begun = [(n, window) for n in range(position.next_number) for window in range(windows_per_lane)]
    assert sorted(seen + left) == begun


def test_the_pipeline_follows_the_schedule_and_hides_lost_memory(tmp_path):
    """Batches of 8, then 4 from step 3 on, then 8 from step 8 on, over two epochs."""
    write_data_set(str(tmp_path), 19, 7, 8, 5)  # Eight lanes of five windows that advance by seven.
    position, seen = Position.start(8), []
    for batch_size, num_steps in ((8, 3), (4, 5), (8, 7)):
        position = position.resized(batch_size)
        schedule = LaneSchedule(position, 5)
        data = pretraining_dataset(str(tmp_path), batch_size, position=position)
        for step, batch in enumerate(data.take(num_steps).as_numpy_iterator()):
            number_B, window_B, memory_from_B = schedule.step_windows(step)
            np.testing.assert_array_equal(batch["window_id"], number_B % 8 * 5 + window_B)
            np.testing.assert_array_equal(batch["epoch"], number_B // 8)
            np.testing.assert_array_equal(batch["context_length"], 7 * (window_B - memory_from_B))
            seen += zip(batch["epoch"].tolist(), batch["window_id"].tolist(), strict=True)
        position = schedule.position(num_steps)
    assert len(seen) == len(set(seen)) == 100
    # Lanes 4 to 7 were read up to window 3, then waited and lost their memory.
    assert sorted(seen)[:40] == [(0, window) for window in range(40)]


def test_a_position_in_a_billion_tokens_takes_as_much_as_at_the_start():
    """Windows of 256 new tokens; bytes in a checkpoint for each of 1,024 and of 8,192 rows."""
    for num_rows in (1_024, 8_192):
        windows_per_lane = 10**9 // 256 // num_rows
        schedule = LaneSchedule(Position.start(num_rows), windows_per_lane)
        for epoch, window in ((0, 1), (9, windows_per_lane - 1)):
            position = schedule.position(epoch * windows_per_lane + window)
            first = epoch * num_rows
            assert position.rows == tuple((first + row, window, 0) for row in range(num_rows))
            assert position.next_number == first + num_rows and not position.waiting
            assert len(json.dumps(position.as_dict())) < 32 * num_rows
