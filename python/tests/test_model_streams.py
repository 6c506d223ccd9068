"""Streams of vectors: the bits of embed(), a few texts at a time, in the memory that was said."""

import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import headlight as hl
from demonstration import FOLDER, TEXTS


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
    # An engine of its own: what the package's holds grows by every thread of the machine, and by whatever was called before.
    stream = model.embed_stream(["the robot", "x" * 100_000_000], 1 << 24, hl.Engine(threads=1))
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
