"""Ways in which an array may lie, and what attention gives of the plain one."""

import numpy as np
import pytest

import headlight as hl

SHAPE = (2, 9, 4, 16)


@pytest.fixture
def operands(draw):
    return draw(*SHAPE), draw(*SHAPE), draw(*SHAPE)


@pytest.fixture
def expected(operands):
    return hl.attention(*operands)


def heads_first(x):
    return np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


class OnlyDLPack:
    """An array of somebody's who knows the first form of DLPack alone, or both."""

    def __init__(self, x, newer):
        self.x = x
        if newer:
            self.__class__ = type("BothForms", (OnlyDLPack,), {"__dlpack__": lambda self, **given: x.__dlpack__(**given)})

    def __dlpack__(self):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()
