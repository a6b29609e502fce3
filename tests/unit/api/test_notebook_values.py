"""What a notebook shows of our objects, compares, and sends to other processes."""

import pickle
import random

import numpy as np
import pandas as pd
import pytest

from official import xlnet
from official.xlnet.checkpoints.saving import save_pretrained
from official.xlnet.inference.score import Score
from tests.helpers.compare import assert_refused
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.oracles import tokenizer_oracle
from tests.helpers.served_models import random_task, save_task
from tests.helpers.small_language_model import random_model

TEXTS = ["The people of the world", "and so on"]
pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("model") / "model")
    save_pretrained(random_model(vocab_size=211), directory, f"{vocabulary_dir()}/spiece.model")
    return directory


@pytest.mark.parametrize(
    "arguments",
    [{}, pytest.param({"layer": [0, -1], "max_length": 13}, marks=pytest.mark.slow)],
)
def test_embedders_are_a_line_and_are_pickled_by_their_path(model_dir, arguments):
    embedder = xlnet.TextEmbedder(model_dir, **arguments)
    again = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(again(TEXTS), embedder(TEXTS))
    assert (
        repr(again)
        == {
            0: "TextEmbedder(width 22, texts of up to 23 tokens)",
            2: "TextEmbedder(width 44, texts of up to 13 tokens)",
        }[len(arguments)]
    )


def test_scorers_are_a_line_and_are_pickled_by_their_path(model_dir):
    scorer = xlnet.Scorer(model_dir)
    data = pickle.dumps(scorer)
    assert len(data) < 1000 and repr(scorer) == "Scorer(permutation, 211 pieces)"
    assert pickle.loads(data)(TEXTS) == scorer(TEXTS)
    model, tokenizer = xlnet.load_pretrainer(model_dir), xlnet.load_tokenizer(model_dir)
    for of_weights in (
        xlnet.Scorer(model, tokenizer),
        xlnet.TextEmbedder(model.encoder, tokenizer),
    ):
        assert_refused("of a path to be pickled", pickle.dumps, of_weights)


def test_loaders_keep_the_random_state_of_python(model_dir):
    before = random.getstate()
    xlnet.load_pretrainer(model_dir)
    xlnet.load_encoder(model_dir)
    assert random.getstate() == before


def test_predictors_give_the_index_of_a_frame_and_the_same_elsewhere(tmp_path):
    model, _ = random_task("classification", text_columns=("text",))
    save_task(model, str(tmp_path))
    predictor = xlnet.Predictor(tmp_path)
    frame = pd.DataFrame({"text": TEXTS}, index=["b", "a"])
    found = predictor(frame)
    assert [row["id"] for row in found] == ["b", "a"]
    assert [row["id"] for row in predictor(frame["text"])] == ["b", "a"]
    assert [row["id"] for row in predictor(frame.reset_index(drop=True))] == [0, 1]
    assert [row["id"] for row in predictor(frame.assign(id=["x", "y"]))] == ["x", "y"]
    for name in ("id", "ID", "Guid", "index"):  # Ids that are the numbers of the rows, too.
        assert [row["id"] for row in predictor(frame.assign(**{name: [1, 2]}))] == ["1", "2"]
    assert [row["id"] for row in predictor(frame.assign(pair_id=[1, 2]))] == ["b", "a"]
    assert [row["id"] for row in predictor(TEXTS)] == ["1", "2"]
    assert pickle.loads(pickle.dumps(predictor))(frame) == found


@pytest.mark.slow
def test_preprocessors_give_the_same_elsewhere():
    _, task = random_task("classification", text_columns=("text",))
    preprocessor = xlnet.Preprocessor(task.tokenizer, task.config.task)
    again = pickle.loads(pickle.dumps(preprocessor))
    assert repr(again) == "Preprocessor(text: 211 pieces, 23 tokens)"
    graph = pickle.loads(pickle.dumps(again.tokenizer))
    assert repr(graph) == "GraphTokenizer(211 pieces)"
    assert graph(TEXTS).to_list() == preprocessor.tokenizer(TEXTS).to_list()
    for name, value in preprocessor(TEXTS).items():
        np.testing.assert_array_equal(again(TEXTS)[name], value)


def test_a_configuration_is_an_indented_block():
    config = xlnet.XLNetConfig.from_dict({"model": {"num_layers": 3}})
    first, *lines = repr(config).splitlines()
    assert first == "XLNetConfig" and lines[0] == "  model:" and "    num_layers: 3" in lines
    assert max(map(len, lines)) < 100
    assert pickle.loads(pickle.dumps(config)) == config


def test_results_are_equal_if_their_arrays_are():
    scores = [Score(text, [text], np.zeros(1), [(0, n)]) for text in "ab" for n in (1, 2)]
    again = pickle.loads(pickle.dumps(scores))
    assert [[x == y for y in again] for x in scores] == np.eye(4, dtype=bool).tolist()
    assert scores[0] not in (None, 3)


def test_the_folder_of_a_new_vocabulary_is_a_tokenizer(tmp_path):
    expected = xlnet.Tokenizer(f"{vocabulary_dir()}/spiece.model")
    found = xlnet.load_tokenizer(vocabulary_dir())
    assert (found.sha256, found.lowercase) == (expected.sha256, False)
    (tmp_path / "text").write_text("\n".join(tokenizer_oracle.real_lines(400)))
    xlnet.train_vocabulary(tmp_path / "text", tmp_path, 100, lowercase=True, progress=False)
    advice = r"capital letters, got small ones only: load it by Tokenizer\(.*, lowercase=True\)"
    assert_refused(advice, xlnet.load_tokenizer, tmp_path)
