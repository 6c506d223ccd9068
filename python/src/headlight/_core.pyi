import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar, Unpack, overload

import numpy as np
import numpy.typing as npt

from headlight.typing import (
    Activation,
    Array,
    AttentionOptions,
    Floats,
    Integers,
    PackedPrecision,
    Precision,
    PrecisionLike,
    Progress,
    SupportsDLPack,
)

# Results are of the kind of the first array.
A = TypeVar("A", bound=SupportsDLPack)

__version__: str

class FileError(OSError, ValueError): ...

class Engine:
    def __init__(
        self,
        threads: int | None = None,
        isa: str | None = None,
        numerics: Literal["reproducible", "fast"] = "reproducible",
    ) -> None: ...
    @property
    def threads(self) -> int: ...
    @property
    def isa(self) -> str: ...
    @property
    def features(self) -> list[str]: ...
    @property
    def numerics(self) -> Literal["reproducible", "fast"]: ...
    @property
    def scratch_bytes(self) -> int: ...
    def release_scratch(self) -> None: ...

class PackedMatrix:
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def precision(self) -> PackedPrecision: ...
    @property
    def nbytes(self) -> int: ...

class VectorStream:
    def __iter__(self) -> Iterator[Floats]: ...
    def __next__(self) -> Floats: ...

class Encoder:
    def embed(
        self,
        texts: str | Iterable[str],
        batch_tokens: int | None = None,
        progress: Progress = None,
        engine: Engine | None = None,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
    ) -> Floats: ...
    def embed_stream(
        self,
        texts: str | Iterable[str],
        memory: int = 268435456,
        engine: Engine | None = None,
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        truncate_dim: int | None = None,
    ) -> VectorStream: ...
    def encode(
        self,
        texts: str | Iterable[str],
        batch_tokens: int | None = None,
        progress: Progress = None,
        engine: Engine | None = None,
    ) -> list[Floats]: ...
    @overload
    def encode_ids(
        self,
        ids: npt.NDArray[np.int64],
        mask: Array | None = None,
        *,
        out: Array | None = None,
        engine: Engine | None = None,
    ) -> Floats: ...
    @overload
    def encode_ids(
        self, ids: A, mask: Array | None = None, *, out: Array | None = None, engine: Engine | None = None
    ) -> A: ...
    @overload
    def embed_ids(
        self,
        ids: npt.NDArray[np.int64],
        mask: Array | None = None,
        *,
        prompt_tokens: int = 0,
        normalize: bool = True,
        truncate_dim: int | None = None,
        out: Array | None = None,
        engine: Engine | None = None,
    ) -> Floats: ...
    @overload
    def embed_ids(
        self,
        ids: A,
        mask: Array | None = None,
        *,
        prompt_tokens: int = 0,
        normalize: bool = True,
        truncate_dim: int | None = None,
        out: Array | None = None,
        engine: Engine | None = None,
    ) -> A: ...
    def score(self, pairs: Iterable[Sequence[str]], engine: Engine | None = None) -> Floats: ...
    def tokenize(self, text: str) -> list[int]: ...
    def decode(self, ids: Integers) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def embed_width(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def max_length(self) -> int: ...
    @property
    def embed_max_length(self) -> int: ...
    @property
    def prompts(self) -> dict[str, str]: ...
    @property
    def default_prompt_name(self) -> str | None: ...
    @property
    def unknown_keys(self) -> list[str]: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def folder(self) -> str: ...

def default_engine() -> Engine: ...
def available_isas() -> list[str]: ...
@overload
def attention(
    query: A,
    key: Array,
    value: Array,
    *,
    key_scales: Array | None = None,
    value_scales: Array | None = None,
    log_sum_exp: Literal[False] = False,
    probabilities: Literal[False] = False,
    out: Array | None = None,
    engine: Engine | None = None,
    **options: Unpack[AttentionOptions],
) -> A: ...
@overload
def attention(
    query: A,
    key: Array,
    value: Array,
    *,
    key_scales: Array | None = None,
    value_scales: Array | None = None,
    log_sum_exp: Literal[True],
    probabilities: Literal[False] = False,
    out: Array | None = None,
    engine: Engine | None = None,
    **options: Unpack[AttentionOptions],
) -> tuple[A, A]: ...
@overload
def attention(
    query: A,
    key: Array,
    value: Array,
    *,
    key_scales: Array | None = None,
    value_scales: Array | None = None,
    log_sum_exp: Literal[False] = False,
    probabilities: Literal[True] | Integers,
    out: Array | None = None,
    engine: Engine | None = None,
    **options: Unpack[AttentionOptions],
) -> tuple[A, A]: ...
@overload
def attention(
    query: A,
    key: Array,
    value: Array,
    *,
    key_scales: Array | None = None,
    value_scales: Array | None = None,
    log_sum_exp: Literal[True],
    probabilities: Literal[True] | Integers,
    out: Array | None = None,
    engine: Engine | None = None,
    **options: Unpack[AttentionOptions],
) -> tuple[A, A, A]: ...
@overload
def attention(
    query: memoryview,
    key: Array,
    value: Array,
    *,
    key_scales: Array | None = None,
    value_scales: Array | None = None,
    log_sum_exp: bool = False,
    probabilities: bool | Integers = False,
    out: Array | None = None,
    engine: Engine | None = None,
    **options: Unpack[AttentionOptions],
) -> Any: ...
@overload
def attention(
    query: SupportsDLPack,
    key: Array,
    value: Array,
    *,
    key_scales: Array | None = None,
    value_scales: Array | None = None,
    log_sum_exp: bool = False,
    probabilities: bool | Integers = False,
    out: Array | None = None,
    engine: Engine | None = None,
    **options: Unpack[AttentionOptions],
) -> Any: ...
def attention_backward(
    query: A,
    key: Array,
    value: Array,
    out: Array,
    lse: Array,
    out_gradient: Array,
    *,
    lse_gradient: Array | None = None,
    bias_gradient: bool = True,
    sinks_gradient: bool = False,
    engine: Engine | None = None,
    **options: Unpack[AttentionOptions],
) -> tuple[A, ...]: ...
@overload
def quantize_rows(
    x: npt.NDArray[Any],
    *,
    numbers: Array | None = None,
    scales: Array | None = None,
    engine: Engine | None = None,
) -> tuple[npt.NDArray[np.int8], Floats]: ...
@overload
def quantize_rows(
    x: A,
    *,
    numbers: Array | None = None,
    scales: Array | None = None,
    engine: Engine | None = None,
) -> tuple[A, A]: ...
def merge_attention(
    parts: Iterable[tuple[A, Array]], *, engine: Engine | None = None
) -> tuple[A, A]: ...
def matmul(
    a: A,
    b: Array | PackedMatrix,
    *,
    bias: Array | None = None,
    activation: Activation | None = None,
    out: Array | None = None,
    engine: Engine | None = None,
) -> A: ...
def pack(
    b: Array, precision: PrecisionLike = "float32", *, engine: Engine | None = None
) -> PackedMatrix: ...
def load(folder: str | os.PathLike[str], precision: PrecisionLike = "float32") -> Encoder: ...
