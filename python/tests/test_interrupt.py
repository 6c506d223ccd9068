"""Ctrl-C ends long calls, and slices have the bits of the whole."""

import os
import pathlib
import signal
import threading
import time

import numpy as np
import pytest

import headlight as hl
from conftest import WHOLE

# Seconds of this process's threads, so that what else the machine does counts little; a call that is not ended takes
# many.
PATIENCE = 1.0


def seconds_until_interrupted(call):
    """How long the process worked after the signal until `call` ended, which it had to."""
    sent = []

    def send():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.2, send)
    ended = False
    timer.start()
    try:
        call()
        ended = True  # before the signal came: too short to say anything
        time.sleep(10)
    except KeyboardInterrupt:
        assert not ended
        return time.process_time() - sent[0]
    finally:
        timer.cancel()
    raise AssertionError("the signal was lost")


def repeated(rng, length, heads, head_dim):
    """[1, length, heads, head_dim] with one row of memory: long without taking any."""
    return np.broadcast_to(rng.standard_normal((1, 1, heads, head_dim), dtype=np.float32), (1, length, heads, head_dim))


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(autouse=True)
def interrupts():
    """Ctrl-C raises KeyboardInterrupt, even where a shell that started this in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_attention_can_be_interrupted(rng):
    query, key, value = (repeated(rng, 200_000, 8, 64) for _ in range(3))
    small = rng.standard_normal((1, 4, 8, 64), dtype=np.float32)
    before = hl.attention(small, small, small)
    for options in ({}, dict(causal="bottom_right")):
        assert seconds_until_interrupted(lambda: hl.attention(query, key, value, **options)) < PATIENCE
    np.testing.assert_array_equal(hl.attention(small, small, small), before)


def test_product_can_be_interrupted():
    a = np.broadcast_to(np.ones((1, 4096), np.float32), (100_000, 4096))
    b = np.ones((4096, 8192), np.float32)
    packed = hl.pack(b)
    assert seconds_until_interrupted(lambda: hl.matmul(a, b)) < PATIENCE
    assert seconds_until_interrupted(lambda: hl.matmul(a, packed)) < PATIENCE


def test_backward_can_be_interrupted_between_heads(rng):
    query, key, value = (repeated(rng, 1024, 512, 64) for _ in range(3))
    out, lse = np.zeros(query.shape, np.float32), np.zeros((1, 512, 1024), np.float32)
    assert seconds_until_interrupted(lambda: hl.attention_backward(query, key, value, out, lse, query)) < PATIENCE


def test_packed_sequences_can_be_interrupted_between_heads(rng):
    query, key, value = (repeated(rng, 4000, 256, 64) for _ in range(3))
    assert seconds_until_interrupted(lambda: hl.attention(query, key, value, query_offsets=[0, 500, 4000])) < PATIENCE


def test_probabilities_of_rows_can_be_interrupted_between_heads(rng):
    query, key, value = (repeated(rng, 4000, 256, 64) for _ in range(3))
    assert seconds_until_interrupted(lambda: hl.attention(query, key, value, probabilities=[7])) < PATIENCE


def test_merging_can_be_interrupted(rng):
    part = repeated(rng, 2_000_000, 16, 64), np.zeros((1, 16, 2_000_000), np.float32)

    def call():
        while True:
            hl.merge_attention([part] * 16)

    assert seconds_until_interrupted(call) < PATIENCE


def test_splitting_texts_can_be_interrupted():
    model = hl.load(pathlib.Path(__file__).parents[2] / "models" / "demonstration")
    texts = ["The animal did not cross the street because it was too tired."] * 2_000_000
    assert seconds_until_interrupted(lambda: model.embed(texts, batch_tokens=10**12)) < PATIENCE


# A call of each is long enough to be cut; that it was is what the plain engine of one call does not show, so rows and
# samples are compared with calls of their own, which are not.
LONG = dict(batch=2, rows=1500, heads=4, keys=1700, head_dim=32)
OPTIONS = {
    "plain": {},
    "causal_bottom_right": dict(causal="bottom_right"),
    "causal_top_left": dict(causal="top_left"),
    "chunk": dict(chunk=100, causal="bottom_right"),
    "chunk_bottom_right": dict(chunk=64, align="bottom_right", window=(30, 5)),
    "longest_chunk": dict(chunk=2**63 - 1, query_lengths=[1500, 300], key_lengths=[900, 1700], align="bottom_right"),
    "lengths": dict(query_lengths=[1500, 300], key_lengths=[900, 1700], causal="bottom_right"),
    "starts": dict(query_start=[7, 1000], key_start=[0, 3], causal="top_left", window=(500, None)),
    "alibi": dict(alibi=np.array([1, 0.1, 0.01, 0.001], np.float32), align="bottom_right"),
    "sinks_softcap": dict(sinks=np.arange(4, dtype=np.float32), softcap=3.0),
}


def long_operands(rng):
    def draw(length):
        return rng.standard_normal((LONG["batch"], length, LONG["heads"], LONG["head_dim"]), dtype=np.float32)

    return draw(LONG["rows"]), draw(LONG["keys"]), draw(LONG["keys"])


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_slices_have_the_bits_of_single_heads(rng, options, kind):
    query, key, value = long_operands(rng)
    if kind == "bfloat16":
        ml_dtypes = pytest.importorskip("ml_dtypes")
        query, key, value = (x.astype(ml_dtypes.bfloat16) for x in (query, key, value))
    key, value = key[:, :, :2], value[:, :, 2:]  # each for two heads of the query
    out, lse, probabilities = hl.attention(query, key, value, **options, log_sum_exp=True, probabilities=True)
    for head in range(LONG["heads"]):
        for sample in range(LONG["batch"]):
            own = {
                name: given[sample : sample + 1] if name.endswith(("lengths", "start")) else given
                for name, given in options.items()
            }
            own.update({name: options[name][head : head + 1] for name in ("alibi", "sinks") if name in options})
            place = np.s_[sample : sample + 1, :, head : head + 1]
            shared = np.s_[sample : sample + 1, :, head // 2 : head // 2 + 1]
            alone = hl.attention(
                query[place], key[shared], value[shared], **own, log_sum_exp=True, probabilities=True
            )  # fmt: skip
            np.testing.assert_array_equal(out[place], alone[0])
            np.testing.assert_array_equal(lse[sample, head], alone[1][0, 0])
            np.testing.assert_array_equal(probabilities[sample, head], alone[2][0, 0])


def draw_options(rng, batch, rows, keys, heads):
    """Any of the options that speak of positions and heads, together."""

    def maybe(**options):
        return options if rng.random() < 0.35 else {}

    def start():
        return int(rng.integers(3000)) if rng.random() < 0.5 else rng.integers(0, 3000, batch)

    place = str(rng.choice(["top_left", "bottom_right"]))
    return {
        **({"causal": place} if rng.random() < 0.5 else {"align": place}),
        **maybe(window=(int(rng.integers(-1, 800)), int(rng.integers(-1, 800)))),
        **maybe(chunk=int(rng.integers(1, 700))),
        **maybe(query_lengths=rng.integers(0, rows + 1, batch)),
        **maybe(key_lengths=rng.integers(0, keys + 1, batch)),
        **maybe(query_start=start()),
        **maybe(key_start=start()),
        **maybe(alibi=rng.random(heads, np.float32)),
        **maybe(sinks=rng.standard_normal(heads, np.float32)),
        **maybe(softcap=5.0),
    }


def test_slices_have_the_bits_of_the_whole(rng):
    for _ in range(1000 if WHOLE else 40):
        batch, shared, group = (int(x) for x in rng.integers(1, 4, 3))
        rows, keys = (int(x) for x in rng.integers(900, 2500, 2))
        query = rng.standard_normal((batch, rows, shared * group, 32), np.float32)
        key, value = rng.standard_normal((2, batch, keys, shared, 32), np.float32)
        options = draw_options(rng, batch, rows, keys, shared * group)
        out, lse = hl.attention(query, key, value, **options, log_sum_exp=True)
        # A call with a list of rows is cut between heads alone.
        whole = hl.attention(query, key, value, **options, log_sum_exp=True, probabilities=[0])
        np.testing.assert_array_equal(out, whole[0], err_msg=str(options))
        np.testing.assert_array_equal(lse, whole[1], err_msg=str(options))


def test_packed_sequences_and_lists_of_rows_in_slices(rng):
    query, key, value = (x[:1] for x in long_operands(rng))
    key, value = key[:, :, :2], value[:, :, 2:]
    out_gradient = rng.standard_normal(query.shape, dtype=np.float32)
    options = dict(query_offsets=[0, 700, 700, 1500], key_offsets=[0, 20, 1000, 1700], causal="bottom_right")
    out, lse, rows = hl.attention(query, key, value, **options, log_sum_exp=True, probabilities=[1, 1400])
    gradients = hl.attention_backward(query, key, value, out, lse, out_gradient, **options)
    for shared in range(2):
        own, of_two = np.s_[:, :, shared : shared + 1], np.s_[:, :, 2 * shared : 2 * shared + 2]
        few = query[of_two], key[own], value[own]
        alone = hl.attention(*few, **options, log_sum_exp=True, probabilities=[1, 1400])
        heads = np.s_[:, 2 * shared : 2 * shared + 2]
        for whole, part in zip((out[of_two], lse[heads], rows[heads]), alone, strict=True):
            np.testing.assert_array_equal(whole, part)
        by_few = hl.attention_backward(*few, alone[0], alone[1], out_gradient[of_two], **options)
        for whole, part, place in zip(gradients, by_few, (of_two, own, own), strict=True):
            np.testing.assert_array_equal(whole[place], part)
    for change in (dict(query_offsets=[0, 700, 1499]), dict(query_offsets=[0, 9, 3, 1500]), dict(key_offsets=[0, 1700])):
        with pytest.raises(ValueError, match="offsets"):
            hl.attention(query, key, value, **options | change)
    two = np.concatenate([query, query]), np.concatenate([key, key]), np.concatenate([value, value])
    with pytest.raises(ValueError, match="batch|sample|offsets"):
        hl.attention(*two, **options)


def test_merging_in_slices_has_the_bits_of_rows(rng):
    parts = [
        (rng.standard_normal((2, 26_000, 8, 64), dtype=np.float32), rng.standard_normal((2, 8, 26_000), dtype=np.float32))
        for _ in range(2)
    ]
    out, lse = hl.merge_attention(parts)
    for rows in (slice(0, 9), slice(12_990, 13_010), slice(25_999, 26_000)):
        few = hl.merge_attention([(part[0][:, rows], part[1][:, :, rows]) for part in parts])
        np.testing.assert_array_equal(out[:, rows], few[0])
        np.testing.assert_array_equal(lse[:, :, rows], few[1])
    with pytest.raises(ValueError, match="shape"):
        hl.merge_attention([parts[0], (parts[1][0], parts[1][1][:1])])


def test_slices_take_their_part_of_masks_and_biases(rng):
    query, key, value = long_operands(rng)
    scores = (LONG["batch"], LONG["heads"], LONG["rows"], LONG["keys"])
    for shape in (scores, scores[2:], (scores[0], 1, 1, scores[3]), (1, scores[1], scores[2], 1)):
        mask = rng.random(shape) < 0.7
        bias = rng.standard_normal(shape, dtype=np.float32)
        wide_mask, wide_bias = np.broadcast_to(mask, scores), np.broadcast_to(bias, scores)
        out = hl.attention(query, key, value, mask=mask, mask_means="attend", bias=bias)
        for sample, head in ((0, 0), (1, 3)):
            place = np.s_[sample : sample + 1, :, head : head + 1]
            rows = np.s_[sample : sample + 1, head : head + 1]
            alone = hl.attention(
                query[place], key[place], value[place], mask=np.ascontiguousarray(wide_mask[rows]),
                mask_means="attend", bias=np.ascontiguousarray(wide_bias[rows]),
            )
            np.testing.assert_array_equal(out[place], alone)


def test_gradients_in_slices_have_the_bits_of_single_heads(rng):
    query, key, value = long_operands(rng)
    out_gradient = rng.standard_normal(query.shape, dtype=np.float32)
    bias = rng.standard_normal((LONG["batch"], LONG["heads"], LONG["rows"], LONG["keys"]), dtype=np.float32)
    slopes = np.array([1, 0.1, 0.01, 0.001], np.float32)
    options = dict(causal="bottom_right", key_lengths=[1700, 800])
    out, lse = hl.attention(query, key, value, bias=bias, alibi=slopes, **options, log_sum_exp=True)
    lse_gradient = rng.standard_normal(lse.shape, dtype=np.float32)
    gradients = hl.attention_backward(
        query, key, value, out, lse, out_gradient, bias=bias, alibi=slopes, lse_gradient=lse_gradient, **options
    )
    for sample in range(LONG["batch"]):
        for head in range(LONG["heads"]):
            place, rows = np.s_[sample : sample + 1, :, head : head + 1], np.s_[sample : sample + 1, head : head + 1]
            alone = hl.attention_backward(
                query[place], key[place], value[place], out[place], lse[rows], out_gradient[place], bias=bias[rows],
                alibi=slopes[head : head + 1], causal="bottom_right", key_lengths=options["key_lengths"][sample : sample + 1],
                lse_gradient=lse_gradient[rows],
            )
            for whole, part in zip(gradients[:3], alone[:3], strict=True):
                np.testing.assert_array_equal(whole[place], part)
            np.testing.assert_array_equal(gradients[3][rows], alone[3])


@pytest.mark.parametrize("transposed", [False, True])
def test_products_in_blocks_have_the_bits_of_rows(rng, transposed):
    a, b = rng.standard_normal((1100, 900), dtype=np.float32), rng.standard_normal((900, 1300), dtype=np.float32)
    bias = rng.standard_normal(1300, dtype=np.float32)
    if transposed:
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    c = hl.matmul(a, b, bias=bias, activation="relu")
    for first in range(0, 1100, 100):
        rows = np.ascontiguousarray(a[first : first + 100])
        np.testing.assert_array_equal(hl.matmul(rows, b, bias=bias, activation="relu"), c[first : first + 100])
    np.testing.assert_array_equal(hl.matmul(a, hl.pack(b), bias=bias, activation="relu"), c)
    samples = hl.matmul(np.stack([np.ascontiguousarray(a)] * 2), b, bias=bias, activation="relu")
    np.testing.assert_array_equal(samples, np.stack([c, c]))


@pytest.mark.parametrize(
    "change, named",
    [
        (dict(mask=np.ones((1499, 1700), bool), mask_means="attend"), "mask"),
        (dict(bias=np.ones((3, 1, 1, 1), np.float32)), "bias"),
        (dict(query_lengths=[1, 1501]), "query_lengths"),
        (dict(key_lengths=[1]), "key_lengths"),
        (dict(query_start=[1, -1]), "query_start"),
        (dict(alibi=np.ones(3, np.float32)), "slopes"),
    ],
)
def test_long_calls_are_refused_as_a_whole(rng, change, named):
    query, key, value = long_operands(rng)
    out = np.full(query.shape, 7, np.float32)
    with pytest.raises(ValueError, match=named) as long:
        hl.attention(query, key, value, **change, out=out)
    assert (out == 7).all()
    few = query[:, :10]
    with pytest.raises(ValueError, match=named):
        hl.attention(few, key[:, :10], value[:, :10], **change)
    assert "192" not in str(long.value)


def test_long_calls_are_held_against_all_that_they_write(rng):
    x, b = rng.standard_normal((4608, 1024), dtype=np.float32), rng.standard_normal((1024, 1024), dtype=np.float32)
    given = x.copy()
    for right in (b, hl.pack(b)):
        with pytest.raises(ValueError, match="overlaps"):
            hl.matmul(x[:4096], right, out=x[512:])
    np.testing.assert_array_equal(x, given)
    bias = x[4000]
    with pytest.raises(ValueError, match="overlaps"):
        hl.matmul(x[:2048], b, bias=bias, out=x[2048:4096])
    with pytest.raises(ValueError, match="overlaps"):
        hl.matmul(x[:2048], x[3072:4096], out=x[2048:4096])
    np.testing.assert_array_equal(x, given)

    query, key, value = long_operands(rng)
    heads = query.shape[2]
    out = np.full(query.shape, 7, np.float32)
    with pytest.raises(ValueError, match="overlaps"):
        hl.attention(query, key, value, sinks=out.reshape(-1)[-heads:], out=out)
    with pytest.raises(ValueError, match=r"sinks\[" + str(heads - 1)):
        hl.attention(query, key, value, sinks=np.float32([0] * (heads - 1) + [np.nan]), out=out)
    assert (out == 7).all()


def test_long_results_share_no_memory_with_themselves(rng):
    def repeated(shape, axis):
        strides = list(np.empty(shape, np.float32).strides)
        strides[axis] = 0
        return np.lib.stride_tricks.as_strided(np.full(shape, 7, np.float32), shape, strides, writeable=True)

    query, key, value = long_operands(rng)
    for axis in (0, 2):
        with pytest.raises(ValueError, match="overlaps"):
            hl.attention(query, key, value, out=repeated(query.shape, axis))
    for rows in (5, 900):
        a, b = rng.standard_normal((3, rows, 900), dtype=np.float32), rng.standard_normal((900, 700), dtype=np.float32)
        for right in (b, hl.pack(b)):
            with pytest.raises(ValueError, match="overlaps"):
                hl.matmul(a, right, out=repeated((3, rows, 700), 0))
