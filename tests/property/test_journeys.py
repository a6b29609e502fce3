"""Right input through the verbs: 25 short journeys. `make journeys N=1000` makes long ones, too."""

import pytest

from tests.property.journeys.draws.configuration import keys, values_of
from tests.property.journeys.draws.drawing import draw
from tests.property.journeys.journey import known, travel
from tests.property.journeys.table import table

JOURNEYS = range(25)


@pytest.mark.parametrize("number", JOURNEYS)
def test_short_journey(number):
    travelled = travel(draw(number, short=True))
    assert not travelled.violation or known(travelled.violation)


def test_every_key_with_a_range_is_drawn():
    drawn = {key for number in range(300) for key in draw(number)["config"]}
    assert drawn >= {key for key in keys() if values_of(key)}
    assert len(drawn) > 90


def test_table_names_the_command_that_repeats_a_violation():
    result = {
        "number": 7,
        "is_short": False,
        "violation": "score: x",
        "known": "",
        "counts": {"verb score": 1},
    }
    shown = table([result | {"shrunken": ""}])
    assert "1 journeys, 1 with a violation" in shown
    assert "python -m tests.property.journeys --only=7" in shown
