"""Bad calls, many threads, forks and long runs: nothing crashes, nothing is left behind.

HEADLIGHT_TEST_WHOLE=1 makes 10,000 bad calls and looks for leaks over 100,000 calls."""

import gc
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import headlight as hl
from conftest import WHOLE

SHAPE = (2, 5, 4, 8)
MODEL = hl.load(pathlib.Path(__file__).parents[2] / "models" / "demonstration")


def odd_array(rng, good_shape=SHAPE):
    """Mostly an array of that shape; else what somebody might take for one."""
    shape = tuple(int(x) for x in rng.integers(0, 6, rng.integers(0, 7)))
    good = rng.standard_normal(good_shape, dtype=np.float32)
    if rng.random() < 0.8:
        return good
    choices = [
        lambda: rng.standard_normal(shape),
        lambda: rng.standard_normal(shape).astype(np.float32),
        lambda: good[..., ::2],
        lambda: good[:, ::-1],
        lambda: good.swapaxes(1, -1),
        lambda: good.astype(rng.choice(["f2", "f8", "i4", "u1", "?", "c8", ">f4", "M8[s]", "O", "V0", "V3", "S4"])),
        lambda: np.frombuffer(bytes(4 * good.size + 1), np.float32, offset=1, count=good.size).reshape(good_shape)
        if rng.random() < 0.5
        else np.zeros(good.size * 6 + 8, np.uint8)[: good.size * 6].view([("x", "<f4"), ("y", "<i2")])["x"].reshape(good_shape),
        lambda: np.lib.stride_tricks.as_strided(good, good_shape, (0, 0, 0, 4)[-good.ndim :]),
        lambda: np.broadcast_to(np.float32(1), (2**20, 2**20, 4, 8)),
        lambda: np.float32(3),
        lambda: np.ma.masked_array(good),
        lambda: good.tolist(),
        lambda: good.tobytes(),
        lambda: memoryview(good),
        lambda: bytearray(8),
        lambda: None,
        lambda: object(),
        lambda: "query",
        lambda: 3,
        lambda: hl.default_engine(),
        lambda: type("Bad", (), {"__dlpack__": lambda self, **given: 3})(),
        lambda: type("Worse", (), {"__dlpack__": None})(),
        lambda: type("Worst", (), {"__dlpack__": property(lambda self: 1 / 0)})(),
    ]
    return choices[rng.integers(len(choices))]()


def odd_value(rng):
    choices = [
        None, True, False, 0, 1, -1, 3, 7, 2**31, 2**60, 2**63, 2**64, -(2**70), 0.5, -0.0, float("nan"), float("inf"), 1e300,
        "", "top_left", "bottom_right", "attend", "ignore", "gelu", "float32", "int8", b"", [], [0], [0, 5], [0, 2, 5], [5, 3],
        [-1, 9], [1, 2, 3], (1, 2), (None, None), (-1, None), ("a", 1), range(3), range(10**3), {}, {1: 2}, set(), object(),
        np.int64(3), np.float32(2), np.array([2, 3]), np.array(3), np.array([2.5]), lambda: 1, hl.Engine, Ellipsis,
    ]  # fmt: skip
    return choices[rng.integers(len(choices))] if rng.random() < 0.7 else odd_array(rng)


KEYWORDS = [*hl.typing.AttentionOptions.__annotations__, "key_scales", "value_scales", "log_sum_exp", "probabilities", "out", "engine", "lse_gradient", "bias_gradient", "sinks_gradient", "nothing"]


def odd_call(rng):
    """A call of any function, each argument of which may be anything."""
    query, key, value, out, gradient = (odd_array(rng) for _ in range(5))
    lse = odd_array(rng, (SHAPE[0], SHAPE[2], SHAPE[1]))
    options = {KEYWORDS[rng.integers(len(KEYWORDS))]: odd_value(rng) for _ in range(rng.integers(0, 4))}
    function = rng.integers(11)
    if function < 2:
        return hl.attention(query, key, value, **options)
    if function == 2:
        numbers = rng.integers(-127, 128, SHAPE, np.int8)
        scales = {name: odd_array(rng, SHAPE[:3]) for name in ("key_scales", "value_scales") if rng.random() < 0.8}
        return hl.attention(query, numbers if rng.random() < 0.8 else key, numbers, **{**scales, **options})
    if function == 8:
        return hl.quantize_rows(query, **{name: odd_value(rng) for name in ("numbers", "scales") if rng.random() < 0.2})
    if function > 8:
        ids = rng.integers(-1, 200, (3, 8)) if rng.random() < 0.8 else odd_array(rng, (3, 8))
        given = {name: odd_value(rng) for name in ("mask", "out", "engine") if rng.random() < 0.2}
        return (MODEL.encode_ids if function == 9 else MODEL.embed_ids)(ids, **given)
    if function == 3:
        return hl.attention_backward(query, key, value, out, lse, gradient, **options)
    if function == 4:
        return hl.merge_attention([(query, lse), (key, lse)] if rng.random() < 0.8 else odd_value(rng))
    if function == 5:
        a, b = odd_array(rng, (7, 5)), odd_array(rng, (5, 6))
        given = {name: odd_value(rng) for name in ("bias", "activation", "out", "engine") if rng.random() < 0.2}
        return hl.matmul(a, hl.pack(b, odd_value(rng)) if rng.random() < 0.2 else b, **given)
    if function == 6:
        return hl.Engine(threads=odd_value(rng), isa=odd_value(rng), numerics=odd_value(rng))
    return hl.load(odd_value(rng), odd_value(rng))


@pytest.mark.full
def test_bad_calls_end_in_an_error():
    """In a process of its own, so that a crash is a failure of this test."""
    calls = 10_000 if WHOLE else 1_500
    program = f"import test_robustness; test_robustness.make_bad_calls({calls})"
    path = os.pathsep.join([str(pathlib.Path(__file__).parent), str(pathlib.Path(hl.__file__).parents[1])])
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONPATH": path, "HEADLIGHT_NUM_THREADS": "2"},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    done, refused = map(int, result.stdout.split())
    assert done + refused == calls and done > calls // 10 and refused > calls // 2


def make_bad_calls(calls):
    rng = np.random.default_rng(7)
    done = refused = 0
    for _ in range(calls):
        try:
            odd_call(rng)
            done += 1
        except (TypeError, ValueError, MemoryError, OSError, ZeroDivisionError) as error:
            assert str(error)
            refused += 1
    print(done, refused)


def test_threads_share_an_engine(rng):
    engine = hl.Engine(threads=2)
    query, key = (rng.standard_normal((2, 200, 4, 32), dtype=np.float32) for _ in range(2))
    expected = hl.attention(query, key, key)
    wrong = []

    def work():
        for _ in range(20):
            for on in (engine, None):
                if not np.array_equal(hl.attention(query, key, key, engine=on), expected):
                    wrong.append(True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_while_one_computes():
    """The GIL is free: another thread counts on while a long call is under way."""
    x = np.broadcast_to(np.ones((1, 1, 4, 64), np.float32), (1, 12_000, 4, 64))
    state = {"count": 0, "run": True}

    def count():
        while state["run"]:
            state["count"] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = state["count"]
    hl.attention(x, x, x)
    during = state["count"] - before
    state["run"] = False
    thread.join()
    assert during > 1000


def child(connection, query, expected):
    result = hl.attention(query, query, query)
    own = hl.attention(query, query, query, engine=hl.Engine(threads=2))
    connection.send(np.array_equal(result, expected) and np.array_equal(own, expected))


def test_forked_processes_compute(rng):
    query = rng.standard_normal((2, 100, 4, 32), dtype=np.float32)
    expected = hl.attention(query, query, query)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=child, args=(there, query, expected))
    process.start()
    assert here.poll(60) and here.recv()
    process.join(60)
    assert process.exitcode == 0
    np.testing.assert_array_equal(hl.attention(query, query, query), expected)


def test_default_engine_is_made_once():
    program = (
        "import threading, headlight as hl\n"
        "seen = []\n"
        "threads = [threading.Thread(target=lambda: seen.append(hl.default_engine())) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "assert len(seen) == 8 and all(e is seen[0] for e in seen)\n"
    )
    path = str(pathlib.Path(hl.__file__).parents[1])
    for variables, code in (({}, 0), ({"HEADLIGHT_ISA": "scalar"}, 0), ({"HEADLIGHT_ISA": "nothing"}, 1)):
        result = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path, **variables}, capture_output=True, text=True
        )
        assert result.returncode == code, result.stderr
        if code:
            assert "ValueError" in result.stderr and "HEADLIGHT_ISA" in result.stderr


def test_sub_interpreters_are_refused():
    program = (
        "import sys\n"
        "try:\n    import _xxsubinterpreters as interpreters\n"
        "except ImportError:\n    import _interpreters as interpreters\n"
        "import headlight\n"
        f"own = interpreters.create(**({{'isolated': False}} if sys.version_info < (3, 13) else {{}}))\n"
        f"code = 'import sys; sys.path = ' + repr(sys.path) + '''\n"
        "try:\n    import headlight._core\n"
        "except ImportError as error:\n    print('refused:', error, flush=True)\n'''\n"
        "interpreters.run_string(own, code)\n"
        # CPython 3.11 may wait for ever where it ends with an interpreter beside the main one.
        "import os\nos._exit(0)\n"
    )
    path = str(pathlib.Path(hl.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120
    )
    assert "refused:" in result.stdout, result.stdout + result.stderr


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_calls_leave_nothing_behind(rng):
    calls = 100_000 if WHOLE else 5_000
    query, key, value = (rng.standard_normal((1, 4, 2, 8), dtype=np.float32) for _ in range(3))
    mask, lengths, ids = np.ones((4, 4), bool), [3], np.ones((1, 3), np.int64)
    weight = hl.pack(np.ones((8, 8), np.float32))
    narrow = query.astype(np.float16)
    kinds = [query]
    if "torch" in sys.modules:
        kinds.append(sys.modules["torch"].from_numpy(query))

    def once():
        for array in kinds:
            hl.attention(array, key, value)
        out, lse, _ = hl.attention(query, key, value, mask=mask, mask_means="attend", key_lengths=lengths, log_sum_exp=True, probabilities=[0])
        hl.attention_backward(query, key, value, out, lse, out)
        hl.merge_attention([(out, lse)])
        hl.attention(narrow, narrow, narrow)
        numbers, scales = hl.quantize_rows(key)
        hl.attention(query, numbers, numbers, key_scales=scales, value_scales=scales)
        MODEL.embed_ids(ids)
        hl.matmul(query[0, 0], weight)
        for bad in (dict(causal="x"), dict(out=3), dict(mask=mask), dict(key_lengths=[9])):
            try:
                hl.attention(query, key, value, **bad)
            except (ValueError, TypeError):
                pass

    for _ in range(500):
        once()
    gc.collect()
    objects, memory = len(gc.get_objects()), resident_bytes()
    for _ in range(calls):
        once()
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
    # One array kept of each call would be 200 bytes and more.
    assert resident_bytes() - memory < max(2**22, calls * 40)
