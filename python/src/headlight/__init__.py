"""Multi-head attention for CPUs: forward and backward, exact, in memory that grows with the length and not its square.

Arrays are NumPy's, PyTorch's, or whatever else lies on the CPU and speaks DLPack or the buffer protocol; nothing is
copied. docs/python.md shows what there is.
"""

from headlight import typing
from headlight._core import (
    Encoder,
    Engine,
    FileError,
    PackedMatrix,
    __version__,
    attention,
    attention_backward,
    available_isas,
    default_engine,
    load,
    matmul,
    merge_attention,
    pack,
)

__all__ = [
    "Encoder",
    "Engine",
    "FileError",
    "PackedMatrix",
    "__version__",
    "attention",
    "attention_backward",
    "available_isas",
    "default_engine",
    "load",
    "matmul",
    "merge_attention",
    "pack",
    "typing",
]
