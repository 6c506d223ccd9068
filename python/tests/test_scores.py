"""Scores of pairs of texts, and models of other families than BERT's, beside what Transformers makes of the same folders."""

import json
import pathlib
import struct
import sys

import headlight as hl
import numpy as np
import pytest

golden = pathlib.Path(__file__).parents[2] / "tests" / "golden"
sys.path.insert(0, str(golden))
from seeded import Random  # noqa: E402


def cases():
    """(case, its numbers) of tests/golden/families.py."""
    numbers = np.load(golden / "families.npy")
    for line in (golden / "families.jsonl").read_text(encoding="utf-8").splitlines()[1:]:
        case = json.loads(line)
        if "pairs" in case:
            shapes = [(len(case["pairs"]), case["labels"])]
        else:
            shapes = [(*np.shape(case["ids"]), 32), (len(case["ids"]), 32)]
        arrays = []
        for shape in shapes:
            size = int(np.prod(shape))
            arrays.append(numbers[:size].reshape(shape))
            numbers = numbers[size:]
        yield case, arrays


def write(folder, case):
    random, header, data = Random(31), {}, b""
    for name, shape, scale, around in case["tensors"]:
        values = np.float32(around) + random.normal(shape, scale)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    first = (golden / "tokenizers" / case["tokenizer"]["file"]).read_text(encoding="utf-8").splitlines()[0]
    (folder / "tokenizer.json").write_text(json.dumps({**json.loads(first)["tokenizer"], **case["tokenizer"]["changes"]}), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(case["config"]), encoding="utf-8")
    return folder


def named(name, kind):
    return next((case, arrays) for case, arrays in cases() if case["name"] == name and kind in case)


def test_scores_of_pairs(tmp_path):
    case, (scores,) = named("new", "pairs")
    model = hl.load(write(tmp_path, case))
    found = model.score(case["pairs"])
    assert found.shape == (len(case["pairs"]),) and found.dtype == np.float32
    np.testing.assert_allclose(found, scores[:, 0], atol=1e-4)
    assert np.array_equal(model.score([tuple(case["pairs"][3])]), found[3:4])
    assert model.score([]).shape == (0,)
    with pytest.raises(TypeError, match="score: pairs has a str, expected pairs of texts"):
        model.score(["a text"])
    with pytest.raises(TypeError, match="score: pairs"):
        model.score([("a", 1)])


def test_several_labels(tmp_path):
    case, (scores,) = named("bert", "pairs")
    found = hl.load(write(tmp_path, case)).score(case["pairs"])
    np.testing.assert_allclose(found, scores, atol=1e-4)


def test_other_families(tmp_path):
    case, (hidden, vectors) = named("modernbert", "ids")
    model = hl.load(write(tmp_path, case))
    ids, mask = np.array(case["ids"]), np.array(case["mask"])
    np.testing.assert_allclose(model.encode_ids(ids, mask), hidden, atol=1e-3)
    np.testing.assert_allclose(model.embed_ids(ids, mask), vectors, atol=1e-4)
    assert (model.layers, model.heads, model.width, model.max_length) == (3, 4, 32, 40)
    assert model.decode(model.tokenize("the city")) == "<|endoftext|>the city<|endoftext|>"
    assert model.embed(["a", "the city"]).shape == (2, 32)
    with pytest.raises(ValueError, match="^score: the model has no head for classification"):
        model.score([("a", "b")])
    with pytest.raises(ValueError, match="decode: ids has 421, expected 0 to 420"):
        model.decode([421])
