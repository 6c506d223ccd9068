"""Multi-head attention for CPUs: forward and backward, exact, in memory that grows with the length and not its square.

Arrays are NumPy's, PyTorch's, or whatever else lies on the CPU and speaks DLPack or the buffer protocol; nothing is
copied. docs/python.md shows what there is.
"""

from headlight import study, typing
from headlight._beams import Beams, beams
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
    quantize_rows,
)
from headlight._heads import Heads, heads
from headlight._pictures import Picture

__all__ = [
    "Beams",
    "Encoder",
    "Engine",
    "FileError",
    "Heads",
    "PackedMatrix",
    "Picture",
    "__version__",
    "attention",
    "attention_backward",
    "available_isas",
    "beams",
    "default_engine",
    "heads",
    "load",
    "matmul",
    "merge_attention",
    "pack",
    "quantize_rows",
    "study",
    "typing",
]
