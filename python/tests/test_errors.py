"""What is wrong with a call is said in one sentence, that of the engine where it is the engine's to say."""

import pathlib
import re

import numpy as np
import pytest

import headlight as hl

SHAPE = (2, 9, 4, 16)


class Liar(np.ndarray):
    """An array that says of its elements what they are not."""

    dtype = property(lambda self: np.dtype("float32"))


@pytest.fixture
def operands(draw):
    return draw(*SHAPE), draw(*SHAPE), draw(*SHAPE)


@pytest.mark.parametrize(
    "change, error, sentence",
    [
        (dict(query=np.zeros((2, 9, 4, 8), np.float32)), ValueError, "attention: key has shape [2, 9, 4, 16], expected [2, any, any, 8]"),
        (dict(query=np.zeros((9, 4, 8), np.float32)), ValueError, "attention: query has shape [9, 4, 8], expected 4 axes"),
        (dict(key=np.zeros(SHAPE)), TypeError, "attention: key has numbers of type float64, expected float32, bfloat16, float16 or int8"),
        (dict(key=np.zeros(SHAPE, ">f4")), TypeError, "attention: key has numbers of type '>f4', expected float32"),
        (dict(key=memoryview(np.zeros(SHAPE, ">f4"))), TypeError, "attention: key has numbers of type '>f', expected float32"),
        (dict(key=np.zeros(SHAPE, "M8[s]")), TypeError, "attention: key has numbers of type 'datetime64[s]', expected float32"),
        (dict(key=np.zeros(SHAPE, "V0")), TypeError, "attention: key has numbers of type '|V"),
        (dict(key=np.zeros(SHAPE, np.float64).view(Liar)), TypeError, "attention: key has numbers of type 'float32' in 8 bytes"),
        (dict(query=np.zeros(SHAPE, np.int8)), TypeError, "attention: query has numbers of type int8, expected float32, bfloat16 or float16"),
        (dict(key=np.zeros(SHAPE, np.int8)), ValueError, "attention: key has numbers of type int8 and is given without key_scales"),
        (dict(key_scales=np.zeros(SHAPE[:3], np.float32)), ValueError, "attention: key_scales is given with a key of float32, expected int8"),
        (dict(value=np.zeros(SHAPE, np.int8), value_scales=np.zeros((2, 9, 2), np.float32)), ValueError, "attention: value_scales has shape [2, 9, 2], expected [2, 9, 4]"),
        (dict(key=np.ma.masked_array(np.zeros(SHAPE, np.float32))), TypeError, "attention: key is a MaskedArray"),
        (dict(key=[1.0]), TypeError, "attention: key is a list, expected an array on the CPU"),
        (dict(value=np.zeros((2, 9, 4, 32), np.float32)[..., ::2]), ValueError, "attention: value has the last stride 2, expected 1"),
        (dict(out=np.zeros((2, 9, 4, 8), np.float32)), ValueError, "attention: out has shape [2, 9, 4, 8], expected [2, 9, 4, 16]"),
        (dict(out=3), TypeError, "attention: out is an int"),
        (dict(causal=True), TypeError, "attention: causal is a bool, expected 'top_left' or 'bottom_right'"),
        (dict(causal="left"), ValueError, "attention: causal is 'left', expected 'top_left' or 'bottom_right'"),
        (dict(window=3), TypeError, "attention: window is an int, expected a pair (left, right)"),
        (dict(window=(1, 2, 3)), ValueError, "attention: window has 3 entries"),
        (dict(window=(1, "2")), TypeError, "attention: window[1] is a str, expected an integer"),
        (dict(chunk=2**70), ValueError, "attention: chunk is out of range"),
        (dict(chunk=-1), ValueError, "attention: chunk is -1, expected 0"),
        (dict(key_lengths=[1, 2.5]), TypeError, "attention: key_lengths[1] is a float, expected an integer"),
        (dict(key_lengths=[]), ValueError, "attention: key_lengths has 0 entries, expected 2"),
        (dict(query_lengths=np.zeros(0, int)), ValueError, "attention: query_lengths has 0 entries, expected 2"),
        (dict(query_start=[]), ValueError, "attention: query_start has 0 entries, expected 2"),
        (dict(key_start=()), ValueError, "attention: key_start has 0 entries, expected 2"),
        (dict(query_offsets=[]), ValueError, "attention: query_offsets has 0 entries, expected at least [0]"),
        (dict(key_offsets=[], query_offsets=[0, 9]), ValueError, "attention: key_offsets has 0 entries, expected at least [0]"),
        (dict(key_lengths=[1, 10]), ValueError, "attention: key_lengths[1] is 10, expected 0 to 9"),
        (dict(mask=np.ones((9, 9), bool)), ValueError, "attention: mask given without mask_means"),
        (dict(mask=np.ones((9, 9), np.float32), mask_means="attend"), TypeError, "attention: mask has numbers of type float32, expected bool or uint8"),
        (dict(mask=np.ones((9, 8), bool), mask_means="attend"), ValueError, "mask"),
        (dict(bias=np.ones((9, 9))), TypeError, "attention: bias has numbers of type float64, expected float32"),
        (dict(bias=np.ones((9, 9), np.float32)[..., ::-1]), ValueError, "attention: bias has the negative stride -1 on axis 3"),
        (dict(alibi=np.ones(8, np.float32)[::2]), ValueError, "attention: alibi has the stride 2, expected 1"),
        (dict(softcap=-1), ValueError, "attention: softcap is -1, expected 0"),
        (dict(scale="1"), TypeError, "attention: scale is a str, expected a number"),
        (dict(dropout=1.0), ValueError, "dropout"),
        (dict(seed=-1), ValueError, "attention: seed is out of range, expected 0 to 2**64 - 1"),
        (dict(log_sum_exp=1), TypeError, "attention: log_sum_exp is an int, expected True or False"),
        (dict(probabilities=[9]), ValueError, "probabilities"),
        (dict(probabilities=[]), ValueError, "attention: probabilities is an empty list"),
        (dict(engine="avx2"), TypeError, "attention: engine is a str, expected a headlight.Engine or None"),
    ],
)  # fmt: skip
def test_sentence(operands, change, error, sentence):
    given = dict(zip(("query", "key", "value"), operands, strict=True)) | change
    with pytest.raises(error, match=re.escape(sentence)):
        hl.attention(**given)


def test_empty_lists_of_empty_batches(draw):
    none = draw(0, 9, 4, 16)
    assert hl.attention(none, none, none, key_lengths=[], query_lengths=[], query_start=[], key_start=[]).shape == none.shape
    rows = draw(1, 0, 4, 16)
    assert hl.attention(rows, rows, rows, query_offsets=[0], query_start=[], key_start=[]).shape == rows.shape
    with pytest.raises(ValueError, match="attention_backward: key_lengths has 0 entries, expected 1"):
        hl.attention_backward(rows, rows, rows, rows, draw(1, 4, 0), rows, key_lengths=[])


def test_memory_that_cannot_be_had():
    rows = np.broadcast_to(np.ones((1, 1, 1, 64), np.float32), (2**10, 2**20, 64, 64))
    with pytest.raises(MemoryError):
        hl.attention(rows, rows, rows)
    with pytest.raises(MemoryError):
        hl.matmul(rows[:, 0, 0].repeat(2**10, 0), np.broadcast_to(np.ones((64, 1), np.float32), (64, 2**22)))


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda x: hl.attention(x, x, x, casual="top_left"), "attention: keyword 'casual' is unknown, expected some of query, key, value, causal, align, window,"),
        (lambda x: hl.attention_backward(x, x, x, x, x, x, grad=x), "attention_backward: keyword 'grad' is unknown, expected some of query, key, value, out, lse, out_gradient, causal,"),
        (lambda x: hl.merge_attention([(x, x)], out=x), "merge_attention: keyword 'out' is unknown, expected some of parts, engine"),
        (lambda x: hl.quantize_rows(x, out=x), "quantize_rows: keyword 'out' is unknown, expected some of x, numbers, scales, engine"),
        (lambda x: hl.matmul(x, x, transpose=True), "matmul: keyword 'transpose' is unknown, expected some of a, b, bias, activation, out, engine"),
        (lambda x: hl.pack(x, dtype="int8"), "pack: keyword 'dtype' is unknown, expected some of b, precision, engine"),
        (lambda x: hl.load("folder", dtype="int8"), "load: keyword 'dtype' is unknown, expected some of folder, precision"),
        (lambda x: hl.Engine(thread=2), "Engine: keyword 'thread' is unknown, expected some of threads, isa"),
    ],
)
def test_unknown_keywords(operands, call, sentence):
    with pytest.raises(TypeError) as caught:
        call(operands[0])
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda x: hl.attention(x, x, x, x), "attention: 4 arguments are given by position, expected at most 3: query, key, value"),
        (lambda x: hl.attention(x, x), "attention: value is missing, expected query, key, value"),
        (lambda x: hl.attention(x, x, x, key=x), "attention: key is given by position and by its name, expected once"),
        (lambda x: hl.attention(None, x, x), "attention: query is None, expected an array on the CPU"),
        (lambda x: hl.attention_backward(x, x, x, x, x), "attention_backward: out_gradient is missing, expected query, key, value, out, lse, out_gradient"),
        (lambda x: hl.attention_backward(x, x, x, x, np.zeros((2, 4, 9), np.float32), x, bias_gradient=None), "attention_backward: bias_gradient is None, expected True or False"),
        (lambda x: hl.merge_attention(None), "merge_attention: parts is None, expected a list of pairs"),
        (lambda x: hl.quantize_rows(x, x), "quantize_rows: 2 arguments are given by position, expected at most 1: x"),
        (lambda x: hl.matmul(a=x), "matmul: b is missing, expected a, b"),
        (lambda x: hl.matmul(x[0, 0], None), "matmul: b is None, expected an array on the CPU"),
        (lambda x: hl.pack(x[0, 0], None), "pack: precision is None, expected a str"),
        (lambda x: hl.load(), "load: folder is missing, expected folder"),
        (lambda x: hl.load(None), "load: folder is None, expected a str or a path"),
        (lambda x: hl.Engine(1, None, "fast", 3), "Engine: 4 arguments are given by position, expected at most 3: threads, isa, numerics"),
        (lambda x: hl.Engine().release_scratch(1), "release_scratch: 1 argument is given by position, expected none"),
        (lambda x: hl.available_isas(1), "available_isas: 1 argument is given by position, expected none"),
        (lambda x: hl.Encoder.embed(3, "a"), "embed: is called on an int, which has no such method"),
        (lambda x: hl.Encoder.embed(), "embed: texts is missing, expected texts"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(operands, call, sentence):
    """One sentence, not the whole signature."""
    with pytest.raises(TypeError) as caught:
        call(operands[0])
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_unknown_keywords_of_models():
    model = hl.load(pathlib.Path(__file__).parents[2] / "models" / "demonstration")
    for call, more in ((model.embed, ", prompt_name, prompt, truncate_dim"), (model.encode, "")):
        with pytest.raises(TypeError, match=f"{call.__name__}: keyword 'batch' is unknown, expected some of texts, batch_tokens, progress, engine{more}$"):
            call("a text", batch=3)
    with pytest.raises(TypeError, match="embed_stream: keyword 'batch' is unknown, expected some of texts, memory, engine, prompt_name, prompt, truncate_dim$"):
        model.embed_stream("a text", batch=3)
    for call, names in ((model.encode_ids, "ids, mask, out, engine"), (model.embed_ids, "ids, mask, prompt_tokens, normalize, truncate_dim, out, engine")):
        with pytest.raises(TypeError, match=f"{call.__name__}: keyword 'lengths' is unknown, expected some of {names}$"):
            call(np.ones((1, 2), np.int64), lengths=[2])


def test_results_share_no_memory_with_operands_or_themselves(operands):
    query, key, value = operands
    with pytest.raises(ValueError, match="overlaps"):
        hl.attention(query, key, value, out=key)
    with pytest.raises(ValueError, match="overlaps"):
        hl.attention(query, key, value, out=np.lib.stride_tricks.as_strided(query.copy(), strides=(0, *query.strides[1:])))
    a, b = np.ones((3, 5, 9), np.float32), np.ones((9, 7), np.float32)
    twice = np.lib.stride_tricks.as_strided(np.zeros((3, 5, 7), np.float32), strides=(0, 28, 4))
    for right in (b, hl.pack(b)):
        with pytest.raises(ValueError, match="overlaps"):
            hl.matmul(a, right, out=twice)


@pytest.mark.parametrize(
    "options, error, sentence",
    [
        (dict(isa="avx"), ValueError, "Engine: isa is 'avx', expected one of 'scalar'"),
        (dict(isa=2), TypeError, "Engine: isa is an int, expected a str"),
        (dict(threads=0), ValueError, "Engine: threads is 0, expected 1 to 4096, or None for as many as the process may use"),
        (dict(threads=-1), ValueError, "Engine: threads is -1, expected 1 to 4096"),
        (dict(threads=2**40), ValueError, f"Engine: threads is {2**40}, expected 1 to 4096"),
        (dict(threads=1.5), TypeError, "Engine: threads is a float, expected an integer"),
        (dict(numerics="exact"), ValueError, "Engine: numerics is 'exact', expected 'reproducible' or 'fast'"),
        (dict(numerics=None), TypeError, "Engine: numerics is None, expected 'reproducible' or 'fast'"),
    ],
)
def test_engines(options, error, sentence):
    with pytest.raises(error, match=re.escape(sentence)):
        hl.Engine(**options)


def test_engine_says_what_it_is(engine):
    assert engine.isa in hl.available_isas() and engine.threads == 2
    assert repr(engine) == f"headlight.Engine(threads=2, isa='{engine.isa}', numerics='reproducible')"
    assert all(isinstance(one, str) for one in engine.features)
    fast = hl.Engine(1, engine.isa, "fast")
    assert (engine.numerics, fast.numerics) == ("reproducible", "fast")
    assert set(engine.features) <= set(fast.features)
    x = np.ones((1, 500, 2, 16), np.float32)
    hl.attention(x, x, x, engine=engine)
    assert engine.scratch_bytes > 0
    engine.release_scratch()
    assert engine.scratch_bytes == 0
