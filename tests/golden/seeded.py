"""The numbers of tests/support/random.h, made with NumPy: the same seed gives the same bits."""

import numpy as np

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)


class Random:
    """SplitMix64: the n-th word is a mixer applied to seed + n · GOLDEN_RATIO."""

    def __init__(self, seed):
        self.state = np.uint64(seed)

    def words(self, count):
        with np.errstate(over="ignore"):
            z = self.state + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN_RATIO
            self.state += np.uint64(count) * GOLDEN_RATIO
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return z ^ (z >> np.uint64(31))

    def uniform(self, shape, scale=1.0):
        """[−1, 1), float32."""
        words = self.words(int(np.prod(shape)))
        numbers = ((words >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype(np.float32) * np.float32(2.0**-23)
        return (np.float32(scale) * numbers).reshape(shape)

    def normal(self, shape, scale=1.0):
        """Nearly standard normal, float32."""
        words = self.words(int(np.prod(shape)))
        low16 = np.uint64(0xFFFF)
        pieces = [(words >> np.uint64(shift)) & low16 for shift in (0, 16, 32, 48)]
        numbers = (sum(pieces).astype(np.int64) - 131070).astype(np.float32)
        numbers *= np.float32(1) / np.float32(37837.227)
        return (np.float32(scale) * numbers).reshape(shape)
