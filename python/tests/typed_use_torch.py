"""The same of headlight.torch, where torch is."""

from typing import assert_type

import torch

import headlight.torch


def use(query: torch.Tensor, mask: torch.Tensor) -> None:
    attention = headlight.torch.scaled_dot_product_attention
    assert_type(attention(query, query, query, attn_mask=mask, dropout_p=0.1, enable_gqa=True), torch.Tensor)
    assert_type(attention(query, query, query, is_causal=True, scale=0.5), torch.Tensor)
    module = headlight.torch.MultiheadAttention(64, 4, dropout=0.1, batch_first=True)
    assert_type(module.forward(query, query, query, attn_mask=mask), tuple[torch.Tensor, torch.Tensor | None])
    layer = headlight.torch.TransformerEncoderLayer(64, 4, batch_first=True, norm_first=True)
    assert_type(layer.forward(query, src_key_padding_mask=mask), torch.Tensor)
