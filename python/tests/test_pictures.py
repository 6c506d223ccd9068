"""beams() and heads(): what they show is what the command line shows, and nothing stays behind."""

import json
import os
import pathlib
import subprocess
import tempfile
import warnings

import numpy as np
import pytest

import headlight as hl
from headlight import _program

FOLDER = pathlib.Path(__file__).parents[2] / "models" / "demonstration"
TEXT = "The animal didn't cross the street because it was too tired."

pytestmark = pytest.mark.skipif(
    not pathlib.Path(hl.__file__).with_name("headlight").exists(), reason="built without the command line"
)


@pytest.fixture(scope="module")
def model():
    return hl.load(FOLDER)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where temporary files are: empty afterwards."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


def by_hand(tmp_path, *arguments):
    """What the program writes into a file of that ending."""
    written = tmp_path / ("by_hand" + arguments[0])
    subprocess.run([_program.program(), *arguments[1:], written], check=True, capture_output=True)
    return written.read_text()


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_beams_of_a_model(tmp_path, precision):
    found = hl.beams(hl.load(FOLDER, precision=precision), TEXT, heads=[0, 3], from_word="it")
    arguments = ["beams", "--model", FOLDER, "--precision", precision, "--text", TEXT, "--heads", "0,3", "--from", "it"]
    assert found.html == by_hand(tmp_path, ".html", *arguments, "-o")
    assert found.svg == by_hand(tmp_path, ".svg", *arguments, "-o")
    assert found.summary.startswith("layer 1, the brightest beams between words:\n")
    assert "it" in repr(found)


def test_beams_of_weights(tmp_path, rng):
    attention = rng.random((2, 3, 4, 4))
    attention /= attention.sum(-1, keepdims=True)
    words = ["机器人", "拿起", "--red", "积木"]
    found = hl.beams(words=iter(words), attention=attention[..., ::-1], layer=1)
    np.save(tmp_path / "attention.npy", np.float32(attention[..., ::-1]))
    arguments = ["beams", "--words=" + " ".join(words), "--attention", tmp_path / "attention.npy", "--layer", "1", "-o"]
    assert found.html == by_hand(tmp_path, ".html", *arguments)
    assert hl.beams(text=TEXT).svg == hl.beams(FOLDER, TEXT).svg  # the model inside the program is that of the folder


def test_pictures_show_and_save_themselves(model, tmp_path):
    found = hl.beams(model, TEXT)
    shown = found._repr_html_()
    assert shown.startswith("<iframe sandbox=") and "srcdoc" in shown and "</script>" not in shown
    assert found.plot()._repr_svg_() == found.svg
    found.save(tmp_path / "beams.html")
    found.save(str(tmp_path / "beams.svg"))
    found.plot().save(tmp_path / "plot.svg")
    assert (tmp_path / "beams.html").read_text() == found.html
    assert (tmp_path / "beams.svg").read_text() == (tmp_path / "plot.svg").read_text() == found.svg
    with pytest.raises(ValueError, match=r"beams.png', expected one that ends in .html or .svg"):
        found.save(tmp_path / "beams.png")
    with pytest.raises(OSError):
        found.save(tmp_path / "nowhere" / "beams.html")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(ValueError, match="is no file"):
        found.save(tmp_path / "folder.svg")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["beams.html", "beams.svg", "folder.svg", "plot.svg", "temporary"]


def test_heads(model, tmp_path):
    texts = [TEXT, "The animal\nwas tired."]
    found = hl.heads(model, texts, mask=[(0, 1), (1, 3)], importance=True)
    (tmp_path / "texts.txt").write_text(TEXT + "\nThe animal was tired.\n")
    document = json.loads(
        by_hand(tmp_path, ".json", "heads", "--model", FOLDER, "--input", tmp_path / "texts.txt", "--mask", "0.1,1.3",
                "--importance", "--json")
    )  # fmt: skip
    assert "Heads that say the same" in found.summary and str(tmp_path) not in found.summary
    assert [(row["layer"], row["head"]) for row in found.table] == [(layer, head) for layer in (0, 1) for head in range(4)]
    for row, head in zip(found.table, document["heads"], strict=True):
        assert row["entropy"] == head["entropy"] and row["peaks_next"] == head["peaks"]["next"]
        assert row["kinds"] == head["kinds"] and row["importance"] == head["importance"]
        np.testing.assert_array_equal(row["profile"], head["profile"])
    assert found.cka.shape == (8, 8) and found.cka.dtype == np.float64
    np.testing.assert_array_equal(found.cka, document["cka"])
    assert found.data["mask"] == document["mask"]

    found.save(tmp_path / "heads.html")
    found.save(tmp_path / "heads.json")
    assert json.loads((tmp_path / "heads.json").read_text()) == document
    assert "srcdoc" in found._repr_html_() and "2 layers of 4" in repr(found)


def test_measures_that_there_are_none_of_are_nan(model):
    found = hl.heads(model, "tired")  # one word has no others to be like
    assert np.isnan(found.cka).any() and found.cka.dtype == np.float64


def test_precision_and_engine_count(model, engine):
    texts = [TEXT]
    narrow = hl.heads(hl.load(FOLDER, precision="int8"), texts, engine=engine)
    assert narrow.table[0]["entropy"] != hl.heads(model, texts, engine=engine).table[0]["entropy"]
    assert narrow.table[0]["entropy"] == pytest.approx(hl.heads(model, texts).table[0]["entropy"], abs=0.05)


def test_the_folder_is_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(FOLDER.parent)
    model = hl.load("demonstration")
    monkeypatch.chdir(tmp_path)
    assert model.folder == str(FOLDER)
    assert hl.heads(model, TEXT).cka.shape == (8, 8)


def test_what_a_model_does_not_know_is_a_warning(model):
    with pytest.warns(UserWarning, match="does not know 1 word: 'Quantum'") as warned:
        hl.beams(model, "The Quantum street")
    assert len(warned) == 1 and warned[0].filename == __file__
    with pytest.warns(UserWarning, match="Quantum") as warned:
        hl.heads(model, "The Quantum street")
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hl.beams(model, TEXT)


def test_errors_name_the_argument(model, tmp_path):
    square = np.ones((1, 1, 2, 2), np.float32) / 2
    for kind, says, call in [
        (ValueError, "either a text", lambda: hl.beams(model)),
        (ValueError, "go together", lambda: hl.beams(words=["a"])),
        (ValueError, "go together", lambda: hl.beams(model, words=["a", "b"], attention=square)),
        (ValueError, r"words\[1\] is 'b c'", lambda: hl.beams(words=["a", "b c"], attention=square)),
        (ValueError, r"words\[0\] is ''", lambda: hl.beams(words=["", "b"], attention=square)),
        (ValueError, "attention: .*expected", lambda: hl.beams(words=["a", "b"], attention=square[0])),
        (ValueError, "layer is 7, expected 0 to 1", lambda: hl.beams(model, TEXT, layer=7)),
        (ValueError, "from_word: there is no word 'robot'", lambda: hl.beams(model, TEXT, from_word="robot")),
        (ValueError, "top is 0, expected", lambda: hl.beams(model, TEXT, top=0)),
        (ValueError, "holds no words", lambda: hl.beams(model, "")),
        (ValueError, "surrogates", lambda: hl.beams(model, "\udcff")),
        (ValueError, "null byte", lambda: hl.beams(model, "a\0b")),
        (TypeError, "top is of type float", lambda: hl.beams(model, TEXT, top=1.5)),
        (OSError, "nowhere: is not there", lambda: hl.beams(tmp_path / "nowhere", TEXT)),
        (hl.FileError, "nowhere: is not there", lambda: hl.heads(str(tmp_path / "nowhere"), TEXT)),
        (ValueError, "texts", lambda: hl.heads(model, [])),
        (ValueError, "mask is 2.0, expected layers 0 to 1", lambda: hl.heads(model, TEXT, mask=[(2, 0)])),
    ]:
        with pytest.raises(kind, match=says) as raised:
            call()
        assert "--" not in str(raised.value)


def test_how_a_program_may_end():
    names = {"head-dim": "head_dim"}
    assert type(_program._failure(2, "headlight: error: --head-dim is 0\n", names)) is ValueError
    memory = _program._failure(1, "headlight: error: out of memory: Tensor [1]: 4 bytes\n", names)
    assert type(memory) is MemoryError and str(memory) == "Tensor [1]: 4 bytes"
    assert isinstance(_program._failure(1, "headlight: error: x: cannot open\n", names), hl.FileError)
    killed = _program._failure(-9, "", names)
    assert type(killed) is OSError and "-9" in str(killed)


def test_a_package_without_the_program_says_so(monkeypatch, tmp_path, model):
    monkeypatch.setattr(_program, "__file__", os.fspath(tmp_path / "_program.py"))
    with pytest.raises(FileNotFoundError, match="without the command line"):
        hl.beams(model, TEXT)
