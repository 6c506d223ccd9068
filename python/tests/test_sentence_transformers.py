"""headlight.sentence_transformers beside what it stands for, and beside its formulas where that is not installed."""

import importlib.util
import json
import pathlib
import shutil

import numpy as np
import pytest

import formulas
import headlight as hl
from headlight.sentence_transformers import SentenceTransformer

FOLDER = pathlib.Path(__file__).parents[2] / "models" / "demonstration"
TEXTS = ["the animal was tired", "the robot", "the animal did not cross the street because it was too tired to cross"]


@pytest.fixture
def folder(tmp_path):
    """The demonstration model as sentence-transformers has its own: with prompts, and a last layer that normalises."""
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        shutil.copy(FOLDER / name, tmp_path)
    write(tmp_path / "sentence_bert_config.json", {"max_seq_length": 10, "do_lower_case": True})
    write(tmp_path / "1_Pooling" / "config.json", {"word_embedding_dimension": 64, "pooling_mode_mean_tokens": True})
    prompts = {"query": "the robot: ", "document": ""}
    write(tmp_path / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": None})
    write_layers(tmp_path, "Transformer", "Pooling", "Normalize")
    return tmp_path


def write(path, document):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))


def write_layers(folder, *layers):
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize", "LSTM": "2_LSTM"}
    entries = [
        {"idx": number, "name": str(number), "path": paths[layer], "type": f"sentence_transformers.models.{layer}"}
        for number, layer in enumerate(layers)
    ]
    write(folder / "modules.json", entries)


def test_vectors_are_those_of_embed(folder):
    model, plain = SentenceTransformer(folder), hl.load(folder)
    assert model.max_seq_length == 10 and model.get_sentence_embedding_dimension() == 64
    expected = plain.embed(TEXTS)
    for batch_size in (1, 2, 100):
        np.testing.assert_array_equal(model.encode(TEXTS, batch_size=batch_size), expected)
    one = model.encode(TEXTS[0])
    assert one.shape == (64,)
    np.testing.assert_array_equal(one, expected[0])
    assert model.encode([]).shape == (0, 64)


def test_prompts(folder):
    model = SentenceTransformer(folder)
    expected = model.encode([model.prompts["query"] + text for text in TEXTS])
    np.testing.assert_array_equal(model.encode(TEXTS, prompt_name="query"), expected)
    np.testing.assert_array_equal(model.encode(TEXTS, prompt="the robot: "), expected)
    model.default_prompt_name = "query"
    np.testing.assert_array_equal(model.encode(TEXTS), expected)
    own = SentenceTransformer(folder, prompts={"question": "the robot: "})
    np.testing.assert_array_equal(own.encode(TEXTS, prompt_name="question"), expected)
    with pytest.raises(ValueError, match="prompt_name is 'nothing', expected one of"):
        model.encode(TEXTS, prompt_name="nothing")
    with pytest.raises(ValueError, match="default_prompt_name is 'nothing', expected one of"):
        SentenceTransformer(folder, default_prompt_name="nothing")


def test_prompts_of_a_call_stand_beside_those_of_the_folder(folder):
    """As sentence-transformers puts them together, which knows two names without anybody saying so."""
    model = SentenceTransformer(folder, prompts={"document": "the street: ", "question": "who: "})
    assert model.prompts == {"query": "the robot: ", "document": "the street: ", "question": "who: "}
    (folder / "config_sentence_transformers.json").unlink()
    bare = SentenceTransformer(folder)
    assert bare.prompts == {"query": "", "document": ""}
    np.testing.assert_array_equal(bare.encode(TEXTS, prompt_name="query"), bare.encode(TEXTS))


def test_truncation(folder):
    model = SentenceTransformer(folder)
    whole = model.encode(TEXTS)
    np.testing.assert_array_equal(model.encode(TEXTS, truncate_dim=16), whole[:, :16])
    short = SentenceTransformer(folder, truncate_dim=16)
    assert short.get_sentence_embedding_dimension() == 16
    lengths = np.linalg.norm(whole[:, :16], axis=1, keepdims=True)
    np.testing.assert_allclose(short.encode(TEXTS, normalize_embeddings=True), whole[:, :16] / lengths, rtol=1e-6)
    write(folder / "config_sentence_transformers.json", {"truncate_dim": 12})
    assert SentenceTransformer(folder).get_sentence_embedding_dimension() == 12
    np.testing.assert_array_equal(SentenceTransformer(folder).encode(TEXTS), whole[:, :12])
    np.testing.assert_array_equal(SentenceTransformer(folder).encode(TEXTS, truncate_dim=100), whole)
    assert SentenceTransformer(folder).encode([]).shape == (0, 12)
    model.max_seq_length = 4
    np.testing.assert_array_equal(model.encode(TEXTS[2]), model.encode("the animal"))


def test_without_a_layer_that_normalises(folder):
    write_layers(folder, "Transformer", "Pooling")
    model = SentenceTransformer(folder)
    hidden = model.encode(TEXTS, output_value="token_embeddings")
    for states, vector in zip(hidden, model.encode(TEXTS), strict=True):
        formulas.assert_close(vector, states.astype(np.float64).mean(0))
    unit = SentenceTransformer(folder).encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(unit, hl.load(folder).embed(TEXTS), atol=1e-6)


def test_poolings(folder):
    """In the order of a list, with the prompt left out."""
    write(folder / "1_Pooling" / "config.json", {"pooling_mode": ["max", "mean"], "include_prompt": False})
    write_layers(folder, "Transformer", "Pooling")
    model = SentenceTransformer(folder)
    assert model.get_sentence_embedding_dimension() == 128
    prompt = "the robot: "
    hidden = model.encode(TEXTS, prompt=prompt, output_value="token_embeddings")
    counted = [states[len(hl.load(folder).tokenize(prompt)) - 1 :].astype(np.float64) for states in hidden]
    expected = np.stack([np.concatenate([states.max(0), states.mean(0)]) for states in counted])
    np.testing.assert_allclose(model.encode(TEXTS, prompt=prompt), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarity(folder, draw, name):
    model = SentenceTransformer(folder, similarity_fn_name=name)
    first, second = draw(3, 64), draw(5, 64)
    a, b = first.astype(np.float64)[:, None], second.astype(np.float64)[None]
    expected = {
        "cosine": (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1),
        "dot": (a * b).sum(-1),
        "euclidean": -np.linalg.norm(a - b, axis=-1),
        "manhattan": -np.abs(a - b).sum(-1),
    }[name]
    np.testing.assert_allclose(model.similarity(first, second), expected, atol=1e-4)
    assert model.similarity(first[0], second).shape == (1, 5)


def test_progress(folder, capsys):
    told = []
    SentenceTransformer(folder).encode(TEXTS, batch_size=1, show_progress_bar=lambda *one: told.append(one))
    assert told == [(1, 3), (2, 3), (3, 3)]
    SentenceTransformer(folder).encode(TEXTS, show_progress_bar=True)
    assert "3 of 3" in capsys.readouterr().err


def test_what_is_not_made_here(folder):
    model = SentenceTransformer(folder)
    for options, says in [
        (dict(precision="int8"), "precision='int8'"),
        (dict(output_value="nothing"), "output_value='nothing'"),
        (dict(batch_size=0), "batch_size is 0"),
        (dict(device="cuda"), "device is 'cuda'"),
    ]:
        with pytest.raises(ValueError, match=says):
            model.encode(TEXTS, **options)
    with pytest.raises(ValueError, match="similarity_fn_name is 'near'"):
        SentenceTransformer(folder, similarity_fn_name="near")
    write_layers(folder, "Transformer", "Pooling", "LSTM")
    with pytest.raises(ValueError, match="modules.json: .2..type is 'LSTM'"):
        SentenceTransformer(folder)
    (folder / "modules.json").write_text("{")
    with pytest.raises(hl.FileError, match="modules.json"):
        SentenceTransformer(folder)
    with pytest.raises(hl.FileError):
        SentenceTransformer(folder / "nowhere")


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed")
@pytest.mark.parametrize("layers", [("Transformer", "Pooling", "Normalize"), ("Transformer", "Pooling")])
def test_beside_sentence_transformers(folder, layers):
    import sentence_transformers
    import transformers

    # With token types, without which theirs reads no model.
    config = transformers.BertConfig(
        vocab_size=hl.load(folder).vocabulary, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=17,
    )
    transformers.BertModel(config).save_pretrained(folder)
    write_layers(folder, *layers)
    (folder / "2_Normalize").mkdir(exist_ok=True)
    theirs, own = sentence_transformers.SentenceTransformer(str(folder), device="cpu"), SentenceTransformer(folder)
    assert own.max_seq_length == theirs.max_seq_length
    assert own.similarity_fn_name == theirs.similarity_fn_name
    for options in (
        {}, dict(prompt_name="query"), dict(prompt="the street "), dict(normalize_embeddings=True, truncate_dim=16),
        dict(truncate_dim=16),
    ):
        np.testing.assert_allclose(own.encode(TEXTS, **options), theirs.encode(TEXTS, **options), atol=2e-5)
    vectors, tensors = own.encode(TEXTS), own.encode(TEXTS, convert_to_tensor=True)
    assert tensors.shape == (3, 64) and own.encode(TEXTS[0], convert_to_tensor=True).shape == (64,)
    np.testing.assert_allclose(own.similarity(tensors, tensors), theirs.similarity(tensors, tensors), atol=1e-5)
    np.testing.assert_allclose(own.similarity(vectors, vectors), theirs.similarity(vectors, vectors), atol=1e-5)
