"""What the signatures of headlight speak of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt


class SupportsDLPack(Protocol):
    """numpy.ndarray, torch.Tensor, jax.Array, and whatever else hands its memory on by DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


Array: TypeAlias = SupportsDLPack | memoryview
Floats: TypeAlias = npt.NDArray[np.float32]
# A list, a tuple, any array of whole numbers.
Integers: TypeAlias = Iterable[int] | npt.NDArray[np.integer[Any]] | Array
Alignment: TypeAlias = Literal["top_left", "bottom_right"]
MaskMeans: TypeAlias = Literal["attend", "ignore"]
Window: TypeAlias = tuple[int | None, int | None]
Activation: TypeAlias = Literal["relu", "gelu", "gelu_tanh", "silu"]
Precision: TypeAlias = Literal["float32", "bfloat16", "float16", "int8", "int4"]
# What may be given for one: the short names, too, as many command lines have it.
PrecisionLike: TypeAlias = Precision | Literal["fp32", "bf16", "fp16"]
# The same as Precision, under the name it had while models knew fewer.
PackedPrecision: TypeAlias = Precision
Progress: TypeAlias = bool | Callable[[int, int], object] | None


class AttentionOptions(TypedDict, total=False):
    """The keywords that attention() and attention_backward() share."""

    causal: Alignment | None
    align: Alignment | None
    window: Window | None
    chunk: int
    query_lengths: Integers | None
    key_lengths: Integers | None
    query_offsets: Integers | None
    key_offsets: Integers | None
    query_start: int | Integers | None
    key_start: int | Integers
    mask: Array | None
    mask_means: MaskMeans | None
    bias: Array | None
    scale: float | None
    softcap: float | None
    alibi: Array | None
    sinks: Array | None
    dropout: float
    seed: int
    # Other names of softcap and alibi.
    soft_cap: float | None
    slopes: Array | None
