"""What the tests share: random numbers that are the same on each run, and the engines of this machine."""

import os
import signal

import numpy as np
import pytest

import demonstration
import headlight as hl
import layouts

WHOLE = os.environ.get("HEADLIGHT_TEST_WHOLE") == "1"


def pytest_collection_modifyitems(items):
    """With HEADLIGHT_TEST_QUICK, as `tools/test` sets it, what is marked `full` is left out."""
    if "HEADLIGHT_TEST_QUICK" in os.environ:
        for item in items:
            if item.get_closest_marker("full"):
                item.add_marker(pytest.mark.skip(reason="it runs where HEADLIGHT_TEST_QUICK is not set, as by tools/test --full"))


@pytest.fixture(autouse=True, scope="session")
def interrupts():
    """Ctrl-C raises KeyboardInterrupt, even where a shell that started this in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng(request):
    return np.random.default_rng(sum(request.node.name.encode()))


@pytest.fixture(params=hl.available_isas())
def engine(request):
    return hl.Engine(threads=2, isa=request.param)


@pytest.fixture
def draw(rng):
    """draw(shape): float32, normally distributed."""
    return lambda *shape: rng.standard_normal(shape, dtype=np.float32)


@pytest.fixture
def operands(draw):
    return draw(*layouts.SHAPE), draw(*layouts.SHAPE), draw(*layouts.SHAPE)


@pytest.fixture
def expected(operands):
    return hl.attention(*operands)


@pytest.fixture(scope="module")
def model():
    return hl.load(demonstration.FOLDER)
