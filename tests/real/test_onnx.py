"""tf2onnx converts our model as docs/serving.md says, and onnxruntime gives its outputs."""

import subprocess
import sys

import numpy as np
import pytest

from official import xlnet
from tests.helpers.documents import ROOT, blocks
from tests.helpers.tiny import tiny_encoder

pytestmark = pytest.mark.slow


def test_the_lines_of_the_page(tmp_path, vocab_file, monkeypatch):
    pytest.importorskip("tf2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    xlnet.save_pretrained(tiny_encoder(vocab_size=2000), "runs/base", vocab_file)
    codes = [block.code for block in blocks(ROOT / "docs/serving.md")]
    (code,) = (code for code in codes if "signatures=forward" in code)
    names = {}
    exec(code, names)
    (command,) = (code for code in codes if "tf2onnx.convert" in code)
    subprocess.run([sys.executable, *command.split()[1:]], check=True, capture_output=True)
    session = onnxruntime.InferenceSession("model.onnx")
    tokenizer = xlnet.load_tokenizer("runs/base")
    for texts in (["now and then", "", "what they find in the water"], ["who"]):
        inputs = tokenizer(texts)
        content, logits = session.run(["content", "logits"], inputs)
        expected = names["forward"](**inputs)
        np.testing.assert_allclose(content[:, -1], expected["content"][:, -1], atol=1e-4)
        np.testing.assert_allclose(logits, expected["logits"], atol=1e-4)
