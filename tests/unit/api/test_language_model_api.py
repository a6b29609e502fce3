"""Scores, continuations and blanks from a path: single strings, lists, empty texts."""

import pytest

from official import xlnet
from official.xlnet.errors import DataError

TEXTS = ["now and then", "", "the water they find"]
GREEDY = xlnet.Sampling(temperature=0)


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_a_path_gives_what_its_model_gives(world):
    model, tokenizer = (
        xlnet.load_pretrainer(world.pretrained),
        xlnet.load_tokenizer(world.pretrained),
    )
    expected = xlnet.score(model, TEXTS, tokenizer=tokenizer)
    found = xlnet.score(world.pretrained, TEXTS)
    assert [result.text for result in found] == TEXTS
    assert [len(result.pieces) for result in found] == [len(tokenizer.encode(t)) for t in TEXTS]
    totals = [result.total for result in expected]
    assert [result.total for result in found] == pytest.approx(totals, rel=1e-6)
    alone = xlnet.score(model, TEXTS[2], tokenizer=tokenizer)
    assert alone.total == pytest.approx(totals[2], rel=1e-5)
    assert xlnet.score(model, TEXTS[0], "pseudo", tokenizer=tokenizer).total != totals[0]

    continued = xlnet.generate(model, TEXTS, 3, GREEDY, tokenizer=tokenizer)
    assert xlnet.generate(world.pretrained, TEXTS, 3, GREEDY) == continued
    assert xlnet.generate(model, TEXTS[0], 3, GREEDY, tokenizer) == continued[0]
    assert all(new.startswith(text) for new, text in zip(continued, TEXTS, strict=True))

    text = "the ____ they find ____{2}"
    filled = xlnet.fill_blanks(model, text, tokenizer=tokenizer)
    assert xlnet.fill_blanks(world.pretrained, [text, "", " "]) == [filled, "", " "]
    with pytest.raises(DataError, match="expected a blank"):
        xlnet.fill_blanks(world.pretrained, [text, "the water"])
