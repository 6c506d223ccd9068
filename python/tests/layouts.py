"""Ways in which an array may lie."""

import numpy as np

SHAPE = (2, 9, 4, 16)


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
