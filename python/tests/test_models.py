"""The demonstration model of the repository, loaded as any published folder is."""

import json
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

import headlight as hl
from headlight.sentence_transformers import SentenceTransformer

FOLDER = pathlib.Path(__file__).parents[2] / "models" / "demonstration"
TEXTS = ["The animal didn't cross the street because it was too tired.", "the robot", "机器人拿起红色的积木,因为它很轻"]


@pytest.fixture(scope="module")
def model():
    return hl.load(FOLDER)


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


def test_a_stream_gives_the_vectors_of_embed(model, engine):
    texts = [*TEXTS, "", "the robot " * 500] * 40
    expected = model.embed(texts, engine=engine)
    for memory in (1 << 23, 1 << 28):
        found = list(model.embed_stream(iter(texts), memory, engine))
        np.testing.assert_array_equal(np.stack(found), expected)
    one = list(model.embed_stream(TEXTS[0], truncate_dim=16, prompt="the "))
    np.testing.assert_array_equal(one, model.embed(["the " + TEXTS[0]], truncate_dim=16))
    assert list(model.embed_stream([])) == []


def test_a_stream_reads_a_few_texts_at_a_time(model):
    read = []

    def texts():
        for number in range(1000):
            read.append(number)
            yield f"the robot {number}"

    stream = model.embed_stream(texts())
    assert read == []
    first = next(stream)
    assert first.shape == (model.embed_width,) and len(read) <= 65
    assert sum(1 for _ in stream) == 999
    with pytest.raises(StopIteration):
        next(stream)


def test_a_stream_is_not_entered_twice(model):
    expected = model.embed([f"the robot {number}" for number in range(200)])
    refusal = "^embed_stream: the stream is already executing"

    def texts():
        for number in range(200):
            with pytest.raises(ValueError, match=refusal):
                next(stream)
            yield f"the robot {number}"

    stream = model.embed_stream(texts())
    np.testing.assert_array_equal(np.stack(list(stream)), expected)

    entered, leave = threading.Event(), threading.Event()

    def waiting():
        for number in range(200):
            if number == 100:
                entered.set()
                assert leave.wait(60)
            yield f"the robot {number}"

    stream, found = model.embed_stream(waiting()), []
    thread = threading.Thread(target=lambda: found.extend(stream))
    thread.start()
    assert entered.wait(60)
    with pytest.raises(ValueError, match=refusal):
        next(stream)
    leave.set()
    thread.join()
    np.testing.assert_array_equal(np.stack(found), expected)


def test_threads_share_a_stream(model):
    expected = model.embed([f"the robot {number}" for number in range(300)])
    stream, found = model.embed_stream(f"the robot {number}" for number in range(300)), []

    def take():
        while True:
            try:
                found.append(next(stream))
            except StopIteration:
                return
            except ValueError as error:
                assert "already executing" in str(error)

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(bytes, found)) == sorted(map(bytes, expected))


def test_a_stream_refuses_what_has_no_room(model):
    with pytest.raises(ValueError, match="^embed_stream: memory is 1000, expected at least [0-9]+ bytes for one text"):
        model.embed_stream(TEXTS, memory=1000)
    stream = model.embed_stream(["the robot", "x" * 100_000_000], memory=1 << 24)
    assert next(stream).shape == (model.embed_width,)
    with pytest.raises(ValueError, match=r"^embed_stream: texts\[1\] has 100000000 bytes, more than memory 16777216 has room for"):
        next(stream)
    with pytest.raises(TypeError, match=r"^embed_stream: texts\[0\] is an int, expected a str"):
        next(model.embed_stream([3]))
    with pytest.raises(ValueError, match="^embed_stream: truncate_dim is -1"):
        model.embed_stream(TEXTS, truncate_dim=-1)


PEAK = """
import resource, sys
import headlight as hl
model = hl.load(sys.argv[1])
lines = ("the robot took the red block " * (400 if n % 2 else 1) for n in range(int(sys.argv[2])))
for vector in model.embed_stream(lines, int(sys.argv[3]), hl.Engine(threads=1)):
    pass
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) << 10)
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_stream_holds_what_was_said():
    def peak(count, memory):
        command = [sys.executable, "-c", PEAK, str(FOLDER), str(count), str(memory)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    memory, noise = 12 << 20, 6 << 20  # huge pages
    # All texts together are more than that.
    assert peak(6000, memory) <= peak(1, 1 << 28) + memory + noise


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


def test_progress_is_told_to_a_function(model):
    calls = []
    model.embed(TEXTS, batch_tokens=1, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (3, 3) and calls == sorted(calls)
    with pytest.raises(ZeroDivisionError):
        model.embed(TEXTS, progress=lambda done, total: 1 / 0)
    with pytest.raises(TypeError, match="progress"):
        model.embed(TEXTS, progress=3)


def test_bar_is_drawn_at_once_where_it_is_asked_for(model, capsys):
    model.embed(TEXTS, progress=True)
    assert "100 %  3 of 3" in capsys.readouterr().err
    model.embed(TEXTS)
    model.encode(TEXTS, progress=False)
    assert capsys.readouterr().err == ""


class Terminal:
    """A standard error that says that it is a terminal."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_bar_waits_a_second(monkeypatch):
    from headlight import _progress

    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    terminal = Terminal()
    monkeypatch.setattr(_progress.sys, "stderr", terminal)
    bar = _progress.Bar()
    now[0] += 0.9
    bar(90, 100)
    bar.close()
    assert terminal.text == ""
    now[0] += 0.2
    bar(95, 100)
    now[0] += 0.05
    bar(96, 100)
    bar.close()
    assert " 95 %" in terminal.text and " 96 %" not in terminal.text and terminal.text.endswith("\n")
    assert " 95 %" in repr(bar) and 'value="0.9500"' in bar._repr_html_()


def test_bar_of_a_notebook(monkeypatch):
    """Behind a notebook the bar is an object that is shown once and then changed."""
    from headlight import _progress

    shown = []

    class Handle:
        def update(self, bar):
            shown.append(bar._repr_html_())

    def display(bar, display_id):
        assert display_id
        shown.append(bar._repr_html_())
        return Handle()

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=None)
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    terminal = Terminal()
    monkeypatch.setattr(_progress.sys, "stderr", terminal)
    bar = _progress.Bar(at_once=True)
    bar(1, 2)
    bar(2, 2)
    bar.close()
    assert len(shown) == 2 and "1 of 2" in shown[0] and 'value="1.0000"' in shown[1] and terminal.text == ""


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
