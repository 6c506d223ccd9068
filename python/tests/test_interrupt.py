"""Ctrl-C ends long calls, wherever they are, and the engine computes on."""

import os
import pathlib
import signal
import threading
import time

import numpy as np
import pytest

import headlight as hl

# Seconds of this process's threads, so that what else the machine does counts little; a call that is not ended takes
# many.
PATIENCE = 1.0


def seconds_until_interrupted(call):
    """How long the process worked after the signal until `call` ended, which it had to."""
    sent = []
    begun, over = threading.Event(), threading.Event()

    def send():
        begun.wait()  # a busy machine takes its time to start a thread
        if not over.wait(0.2):
            sent.append(time.process_time())
            os.kill(os.getpid(), signal.SIGINT)

    ended = False
    threading.Thread(target=send).start()
    try:
        begun.set()
        call()
        ended = True  # before the signal came: too short to say anything
        time.sleep(10)
    except KeyboardInterrupt:
        assert not ended
        return time.process_time() - sent[0]
    finally:
        over.set()
    raise AssertionError("the signal was lost")


def repeated(rng, length, heads, head_dim):
    """[1, length, heads, head_dim] with one row of memory: long without taking any."""
    return np.broadcast_to(rng.standard_normal((1, 1, heads, head_dim), dtype=np.float32), (1, length, heads, head_dim))


@pytest.fixture
def rng():
    return np.random.default_rng(1)


# One head of many rows, or many heads: one long unit of work, or many.
SIZES = {"one_head": (200_000, 1), "heads": (4000, 256)}
OPTIONS = {
    "plain": {},
    "causal": dict(causal="bottom_right"),
    "dropout": dict(dropout=0.1, seed=3),
    "packed": dict(query_offsets=[0, 1000, 2000], key_offsets=[0, 1000, 2000]),
    "probabilities": dict(probabilities=[7]),
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_attention_can_be_interrupted(rng, size, options):
    query, key, value = (repeated(rng, *size, 64) for _ in range(3))
    if "query_offsets" in options:  # the second sequence is the long one
        options = {name: [*offsets[:-1], size[0]] for name, offsets in options.items()}
    small = rng.standard_normal((1, 4, 8, 64), dtype=np.float32)
    before = hl.attention(small, small, small)
    assert seconds_until_interrupted(lambda: hl.attention(query, key, value, **options)) < PATIENCE
    np.testing.assert_array_equal(hl.attention(small, small, small), before)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("options", [{}, OPTIONS["dropout"], OPTIONS["causal"]], ids=["plain", "dropout", "causal"])
def test_backward_can_be_interrupted(rng, size, options):
    length, heads = size
    query, key, value = (repeated(rng, length, heads, 64) for _ in range(3))
    out, lse = np.zeros(query.shape, np.float32), np.zeros((1, heads, length), np.float32)
    call = lambda: hl.attention_backward(query, key, value, out, lse, query, **options)  # noqa: E731
    assert seconds_until_interrupted(call) < PATIENCE


def test_gradient_of_a_shared_bias_can_be_interrupted(rng):
    query, key, value = (repeated(rng, 4000, 64, 64) for _ in range(3))
    out, lse = np.zeros(query.shape, np.float32), np.zeros((1, 64, 4000), np.float32)
    bias = np.zeros((1, 1, 1, 1), np.float32)
    call = lambda: hl.attention_backward(query, key, value, out, lse, query, bias=bias)  # noqa: E731
    assert seconds_until_interrupted(call) < PATIENCE


def test_products_can_be_interrupted():
    a = np.broadcast_to(np.ones((1, 4096), np.float32), (100_000, 4096))
    b = np.ones((4096, 8192), np.float32)
    packed = hl.pack(b)
    assert seconds_until_interrupted(lambda: hl.matmul(a, b)) < PATIENCE
    assert seconds_until_interrupted(lambda: hl.matmul(a, packed)) < PATIENCE


@pytest.mark.full
@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
def test_products_of_long_sums_can_be_interrupted(transposed):
    terms = 2_000_000  # of which one row of memory
    a = np.broadcast_to(np.ones((1, 144), np.float32), (terms, 144)).T if transposed else np.ones((144, terms), np.float32)
    b = np.broadcast_to(np.ones((1, 2048), np.float32), (terms, 2048))
    assert seconds_until_interrupted(lambda: hl.matmul(a, b)) < PATIENCE


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8", "int4"])
def test_packing_can_be_interrupted(precision):
    b = np.broadcast_to(np.ones((1, 4096), np.float32), (4096, 4096))

    def call():
        while True:
            hl.pack(b, precision=precision)

    assert seconds_until_interrupted(call) < PATIENCE


@pytest.mark.parametrize("calls", [1, 10**9], ids=["long", "short"])
def test_what_goes_over_rows_can_be_interrupted(rng, calls):
    part = repeated(rng, 2_000_000 if calls == 1 else 1000, 16, 64), np.zeros((1, 16, 2_000_000 if calls == 1 else 1000), np.float32)
    for call in (lambda: hl.merge_attention([part] * 16), lambda: hl.quantize_rows(part[0])):
        assert seconds_until_interrupted(lambda: [call() for _ in range(max(calls, 20))]) < PATIENCE


def test_texts_can_be_interrupted():
    model = hl.load(pathlib.Path(__file__).parents[2] / "models" / "demonstration")
    text = "The animal did not cross the street because it was too tired."
    assert seconds_until_interrupted(lambda: model.embed([text] * 2_000_000, batch_tokens=10**12)) < PATIENCE
    ids = np.ones((200_000, model.max_length), np.int64)
    assert seconds_until_interrupted(lambda: model.embed_ids(ids)) < PATIENCE


def test_engines_work_on_in_other_threads(rng):
    """A call of the main thread that is ended is not the others' end."""
    query = rng.standard_normal((1, 2000, 8, 64), dtype=np.float32)
    whole = hl.attention(query, query, query)
    long = repeated(rng, 200_000, 8, 64)
    wrong, stop = [], threading.Event()

    def work():
        while not stop.is_set():
            wrong.append((hl.attention(query, query, query) != whole).any())

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert seconds_until_interrupted(lambda: hl.attention(long, long, long)) < PATIENCE + 1  # of both threads
    finally:
        stop.set()
        worker.join()
    assert wrong and not any(wrong)


def test_handlers_of_signals_may_compute(rng):
    """What a handler calls runs within the call that it interrupts, which goes on."""
    query = rng.standard_normal((1, 3000, 8, 64), dtype=np.float32)
    whole = hl.attention(query, query, query)
    inner = []
    before = signal.signal(signal.SIGALRM, lambda *_: inner.append(hl.attention(query[:, :50], query, query)))
    try:
        for _ in range(5):
            signal.setitimer(signal.ITIMER_REAL, 0.03)  # once: a handler that takes longer than that is not interrupted
            np.testing.assert_array_equal(hl.attention(query, query, query), whole)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert inner and all((one == whole[:, :50]).all() for one in inner)
