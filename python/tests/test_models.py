"""The demonstration model of the repository, loaded as any published folder is."""

import json
import shutil
import threading
import time

import numpy as np
import pytest

from demonstration import FOLDER, TEXTS
import headlight as hl
from headlight.sentence_transformers import SentenceTransformer


def test_vectors_are_normalised_means_of_hidden_states(model):
    vectors, hidden = model.embed(TEXTS), model.encode(TEXTS)
    assert vectors.shape == (3, model.width) and vectors.dtype == np.float32
    for text, vector, states in zip(TEXTS, vectors, hidden, strict=True):
        assert states.shape == (len(model.tokenize(text)), model.width) and states.dtype == np.float32
        mean = np.float64(states).mean(0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


def test_texts_have_the_bits_of_texts_alone(model, engine):
    texts = TEXTS * 40
    whole = model.embed(texts, engine=engine)
    for options in (dict(batch_tokens=1), dict(batch_tokens=100), dict(batch_tokens=10**12)):
        np.testing.assert_array_equal(model.embed(texts, **options, engine=engine), whole)
        for one, other in zip(model.encode(texts, **options), model.encode(texts), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(model.embed(iter(texts), engine=engine), whole)


def test_a_str_is_one_text(model):
    np.testing.assert_array_equal(model.embed(TEXTS[0]), model.embed([TEXTS[0]]))
    assert len(model.encode(TEXTS[0])) == 1
    assert model.embed([]).shape == (0, model.width)
    assert model.encode([]) == []


def test_truncate_dim(model):
    whole = model.embed(TEXTS)
    expected = whole[:, :16] / np.linalg.norm(whole[:, :16], axis=1, keepdims=True)
    np.testing.assert_allclose(model.embed(TEXTS, truncate_dim=16), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(model.embed(TEXTS, truncate_dim=0), whole)
    ids = np.array([model.tokenize(TEXTS[0])])
    raw = model.embed_ids(ids, normalize=False)
    np.testing.assert_array_equal(model.embed_ids(ids, normalize=False, truncate_dim=3), raw[:, :3])
    for wrong in (-1, model.embed_width + 1):
        with pytest.raises(ValueError, match=f"^embed: truncate_dim is {wrong}, expected 0 to the width of a vector, 64$"):
            model.embed(TEXTS, truncate_dim=wrong)


def test_prompts(model, tmp_path):
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        shutil.copy(FOLDER / name, tmp_path)
    prompts = {"question": "who was: ", "robot": "the robot "}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts, "default_prompt_name": "robot"}))
    with_prompts = hl.load(tmp_path)
    assert with_prompts.prompts == {**prompts, "query": "", "document": ""} and with_prompts.default_prompt_name == "robot"
    assert model.prompts == {"query": "", "document": ""} and model.default_prompt_name is None
    expected = model.embed(["who was: " + text for text in TEXTS])
    np.testing.assert_array_equal(with_prompts.embed(TEXTS, prompt_name="question"), expected)
    np.testing.assert_array_equal(with_prompts.embed(TEXTS, prompt="who was: ", batch_tokens=20), expected)
    np.testing.assert_array_equal(model.embed(TEXTS, prompt="who was: ", prompt_name="nothing"), expected)
    np.testing.assert_array_equal(with_prompts.embed(TEXTS), model.embed(["the robot " + text for text in TEXTS]))
    for none in (dict(prompt_name="document"), dict(prompt="")):
        np.testing.assert_array_equal(with_prompts.embed(TEXTS, **none), model.embed(TEXTS))
    with pytest.raises(ValueError, match="^embed: prompt_name is 'nothing', expected .*: document, query, question, robot$"):
        with_prompts.embed(TEXTS, prompt_name="nothing")


def test_tokens_there_and_back(model):
    ids = model.tokenize("the tired animal")
    assert all(isinstance(one, int) and 0 <= one < model.vocabulary for one in ids)
    assert model.decode(ids) == "[CLS] the tired animal [SEP]"
    assert model.decode(np.array(ids[1:-1])) == "the tired animal"
    assert len(model.tokenize("the " * 1000)) == model.max_length


def test_ids_of_another_tokenizer(model, engine):
    ids, mask = np.zeros((2, 12), np.int64), np.zeros((2, 12), np.int64)
    for row, text in enumerate(TEXTS[:2]):
        own = model.tokenize(text)[:12]
        ids[row, : len(own)], mask[row, : len(own)] = own, 1
    hidden, vectors = model.encode_ids(ids, mask, engine=engine), model.embed_ids(ids, mask, engine=engine)
    assert hidden.shape == (2, 12, model.width) and not hidden[mask == 0].any()
    np.testing.assert_array_equal(hidden[1, mask[1] == 1], model.encode(TEXTS[1], engine=engine)[0])
    np.testing.assert_array_equal(vectors[1], model.embed(TEXTS[1], engine=engine)[0])
    out = np.full((2, 12, model.width), np.nan, np.float32)
    assert model.encode_ids(ids, mask, out=out, engine=engine) is out
    np.testing.assert_array_equal(out, hidden)


def test_many_ids_have_the_bits_of_one(model):
    ids = np.random.default_rng(1).integers(0, model.vocabulary, (1500, model.max_length))
    hidden, vectors = model.encode_ids(ids), model.embed_ids(ids)
    for row in (0, 700, 1499):
        np.testing.assert_array_equal(hidden[row], model.encode_ids(ids[row : row + 1])[0])
        np.testing.assert_array_equal(vectors[row], model.embed_ids(ids[row : row + 1])[0])
    out = np.full(hidden.shape, 7, np.float32)
    ids[1400, 3] = model.vocabulary
    with pytest.raises(ValueError, match="1400"):
        model.encode_ids(ids, out=out)
    assert (out == 7).all()


@pytest.mark.parametrize("short, precision", [("fp32", "float32"), ("bf16", "bfloat16"), ("fp16", "float16")])
def test_short_names_of_precisions(short, precision):
    assert hl.load(FOLDER, precision=short).precision == precision
    assert hl.pack(np.ones((5, 7), np.float32), short).precision == precision
    vectors = [SentenceTransformer(FOLDER, model_precision=name).encode(TEXTS) for name in (short, precision)]
    np.testing.assert_array_equal(*vectors)
    for name in ("bf8", "BF16", ""):
        with pytest.raises(ValueError, match=f"load: precision is '{name}', expected 'float32', 'bfloat16'"):
            hl.load(FOLDER, precision=name)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16", "int8", "int4"])
def test_precision(model, precision):
    loaded = hl.load(str(FOLDER), precision=precision)
    assert loaded.precision == precision
    least = 0.9 if precision == "int4" else 0.99
    assert ((model.embed(TEXTS) * loaded.embed(TEXTS)).sum(1) > least).all()


def test_others_run_while_a_text_is_tokenized(model):
    text = "The animal did not cross the street because it was too tired. " * 400_000
    most_turns = turns = 0
    inside = False

    def tokenize():
        nonlocal most_turns, turns, inside
        # Again where the system itself let nobody else run.
        for _ in range(20):
            turns = 0
            inside = True
            model.tokenize(text)
            inside = False
            most_turns = max(most_turns, turns)
            if most_turns >= 10:
                return

    worker = threading.Thread(target=tokenize)
    worker.start()
    while worker.is_alive():
        turns += inside
        time.sleep(0)
    # Who holds the GIL leaves one turn or two, before and behind.
    assert most_turns >= 10


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(hl.FileError, match="config.json") as caught:
        hl.load(tmp_path)
    assert isinstance(caught.value, OSError) and isinstance(caught.value, ValueError)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(hl.FileError, match="config.json"):
        hl.load(tmp_path)


@pytest.mark.parametrize(
    "name, message",
    [
        # A model on a hub most often: said is where a folder comes from.
        ("some-organisation/some-model", "is not there, expected a model's folder .*snapshot_download.*save_pretrained"),
        (str(FOLDER / "config.json"), "is a file, expected a model's folder .* or a .gguf file$"),
    ],
)
def test_what_is_no_folder(name, message):
    with pytest.raises(hl.FileError, match=message) as caught:
        hl.load(name)
    assert str(caught.value).startswith(name)


@pytest.mark.filterwarnings("ignore:nanobind. attempted to access an uninitialized instance")
@pytest.mark.parametrize(
    "call, error",
    [
        (lambda model: hl.load(3), TypeError),
        (lambda model: hl.load(FOLDER, precision="int2"), ValueError),
        (lambda model: hl.load(FOLDER, precision=8), TypeError),
        (lambda model: model.embed([b"bytes"]), TypeError),
        (lambda model: model.embed(3), TypeError),
        (lambda model: model.embed("\ud800"), ValueError),
        (lambda model: model.embed("a", batch_tokens=0), ValueError),
        (lambda model: model.decode([10**6]), ValueError),
        (lambda model: model.decode("ids"), TypeError),
        (lambda model: model.tokenize(["a"]), TypeError),
        (lambda model: model.encode_ids([[1, 2]]), TypeError),
        (lambda model: model.encode_ids(np.ones((1, 2), np.int32)), TypeError),
        (lambda model: model.encode_ids(np.ones(2, np.int64)), ValueError),
        (lambda model: model.encode_ids(np.full((1, 2), -1)), ValueError),
        (lambda model: model.encode_ids(np.ones((1, model.max_length + 1), np.int64)), ValueError),
        (lambda model: model.embed_ids(np.ones((1, 2), np.int64), np.ones((1, 3), np.int64)), ValueError),
        (lambda model: model.embed_ids(np.ones((1, 2), np.int64), out=np.ones((1, 2), np.float32)), ValueError),
        (lambda model: hl.Encoder(), TypeError),
        (lambda model: hl.Encoder.__new__(hl.Encoder).embed("a"), TypeError),
    ],
)
def test_bad_calls(model, call, error):
    with pytest.raises(error):
        call(model)


def test_a_gguf_file_is_a_model():
    model = hl.load(FOLDER.parents[1] / "tests" / "golden" / "gguf_qwen3.gguf")
    assert model.width == 32
    vectors = model.embed(["the city of New York", "a"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    # The last token's, which stands behind every text.
    assert model.tokenize("a")[-1] == 420
    np.testing.assert_allclose(vectors[1], model.encode("a")[0][-1] / np.linalg.norm(model.encode("a")[0][-1]), rtol=1e-5, atol=1e-6)
