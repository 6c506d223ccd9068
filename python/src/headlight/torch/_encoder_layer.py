"""torch.nn.TransformerEncoderLayer, whose attention headlight computes."""

from __future__ import annotations

from typing import Any

import torch

from headlight.torch._multi_head import MultiheadAttention

Tensor = torch.Tensor


class TransformerEncoderLayer(torch.nn.TransformerEncoderLayer):
    """As torch.nn.TransformerEncoderLayer: its arguments, its parameters and their names, its masks and results.

    torch.nn.TransformerEncoder takes it as a layer.
    """

    def __init__(self, d_model: int, nhead: int, *arguments: Any, **options: Any) -> None:
        super().__init__(d_model, nhead, *arguments, **options)
        self.self_attn.__class__ = MultiheadAttention  # which adds no state to torch's
        # Says to torch.nn.TransformerEncoder that inference is not to pass this layer by, as it does with its own.
        self.activation_relu_or_gelu = 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """src [N, L, E] ([L, N, E] without batch_first, [L, E] without a batch) -> the same shape; the masks are those
        of MultiheadAttention, attn_mask and key_padding_mask."""
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, src_mask, src_key_padding_mask, is_causal))
        out: Tensor = self.norm2(x + self._ff_block(x))
        return out
