"""The engines that tensors are computed on: one for each number of threads that torch has been set to."""

import torch

from headlight._core import Engine

_engines: dict[int, Engine] = {}


def engine() -> Engine:
    """That of torch.get_num_threads() threads, made on first use."""
    threads = torch.get_num_threads()
    made = _engines.get(threads)
    return made if made is not None else _engines.setdefault(threads, Engine(threads=threads))
