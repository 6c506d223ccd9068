"""torch.nn.MultiheadAttention, whose attention headlight computes."""

from __future__ import annotations

import torch
from torch.nn import functional

from headlight.torch._operator import attend_with_weights, seed_for
from headlight.torch._options import Options
from headlight.torch._padding import lengths_of
from headlight.torch._place import check_place

Tensor = torch.Tensor


class MultiheadAttention(torch.nn.MultiheadAttention):
    """As torch.nn.MultiheadAttention: its arguments, its parameters and their names, its masks and results.

    Differs in four things: a row that sees no key gives zeros and not NaN; weights are those before dropout; without
    need_weights no matrix of L x S numbers is made; and every row sees the keys of add_bias_kv and add_zero_attn, which
    torch hides from most rows where is_causal=True comes without need_weights. It trains with and without weights.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(out, weights): out [N, L, E], weights [N, L, S], or [N, H, L, S] with average_attn_weights=False, or None.

        query [N, L, E], key [N, S, kdim], value [N, S, vdim]; without batch_first [L, N, E] and so on, and without a
        batch [L, E] and so on. key_padding_mask [N, S] and attn_mask [L, S] or [N * H, L, S]: bool, where True is NOT
        seen, or float, added to the scores. is_causal says that attn_mask, which must be given, is the causal one.
        """
        check_place(
            "MultiheadAttention",
            query=query, key=key, value=value, key_padding_mask=key_padding_mask, attn_mask=attn_mask,
        )  # fmt: skip
        batched = query.dim() == 3
        if not batched:
            query, key, value = query[None], key[None], value[None]
            key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
        elif not self.batch_first:
            # One and the same tensor stays so: its projections are one product.
            turned = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = turned[id(query)], turned[id(key)], turned[id(value)]
        if is_causal and attn_mask is None:
            raise ValueError("MultiheadAttention: is_causal=True given without attn_mask, of which it speaks")

        rows, keys, values = self._projections(query, key, value)
        causal = is_causal and self.bias_k is None and not self.add_zero_attn
        options = self._masks(query.shape[:2], key.shape[1], key_padding_mask, None if causal else attn_mask)
        dropout = self.dropout if self.training else 0.0
        options = options._replace(
            causal="top_left" if causal else "",
            dropout=dropout,
            seed=seed_for(dropout),
        )
        heads, weights = attend_with_weights(rows, keys, values, options, need_weights)
        out = self.out_proj(heads.transpose(1, 2).flatten(2))

        shown = None
        if weights is not None:
            shown = weights.mean(1) if average_attn_weights else weights
            shown = shown if batched else shown[0]
        if not batched:
            return out[0], shown
        return out if self.batch_first else out.transpose(0, 1), shown

    def _projections(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What attention takes, each [N, H, length, head_dim]."""
        if self._qkv_same_embed_dim and query is key is value:
            together = functional.linear(query, self.in_proj_weight, self.in_proj_bias)
            rows, keys, values = together.chunk(3, dim=-1)
        else:
            if self._qkv_same_embed_dim:
                weights = self.in_proj_weight.chunk(3)
            else:
                weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
            inputs = zip((query, key, value), weights, biases, strict=True)
            rows, keys, values = (functional.linear(x, weight, bias) for x, weight, bias in inputs)
        if self.bias_k is not None and self.bias_v is not None:
            own = (len(keys), -1, -1)
            keys = torch.cat([keys, self.bias_k.expand(own)], dim=1)
            values = torch.cat([values, self.bias_v.expand(own)], dim=1)
        if self.add_zero_attn:
            keys, values = functional.pad(keys, (0, 0, 0, 1)), functional.pad(values, (0, 0, 0, 1))
        shape = (self.num_heads, self.head_dim)
        rows, keys, values = (x.view(*x.shape[:2], *shape).transpose(1, 2) for x in (rows, keys, values))
        return rows, keys, values

    def _masks(self, inputs: torch.Size, keys: int, padding: Tensor | None, attn_mask: Tensor | None) -> Options:
        """Both masks as the operator takes them: lengths, what is seen, what is added. inputs are N and L."""
        batch, rows = inputs
        further = (self.bias_k is not None) + self.add_zero_attn
        lengths: Tensor | None = None
        marks: Tensor | None = None  # what a compiled program hands on for lengths
        masks: list[Tensor] = []
        if attn_mask is not None:
            of_all = (batch * self.num_heads, rows, keys)
            _check_mask("attn_mask", attn_mask, of_all if attn_mask.dim() == 3 else (rows, keys))
            masks.append(attn_mask.reshape(batch, self.num_heads, rows, keys) if attn_mask.dim() == 3 else attn_mask)
        if padding is not None:
            _check_mask("key_padding_mask", padding, (batch, keys))
            if padding.dtype == torch.bool and not further:
                marks = ~padding if torch.compiler.is_compiling() else None
                lengths = lengths_of(~padding)
            if lengths is None and marks is None:
                masks.append(padding[:, None, None, :])
        if further:  # keys behind all others, which everybody sees
            masks = [functional.pad(mask, (0, further)) for mask in masks]
        hidden = [mask for mask in masks if mask.dtype == torch.bool]
        added = [mask for mask in masks if mask.dtype != torch.bool]
        return Options(
            mask=~(hidden[0] | hidden[1] if len(hidden) == 2 else hidden[0]) if hidden else None,
            bias=(added[0] + added[1] if len(added) == 2 else added[0]).float() if added else None,
            key_lengths=lengths,
            padding=marks,
        )


def _check_mask(name: str, mask: Tensor, shape: tuple[int, ...]) -> None:
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(f"MultiheadAttention: {name} has numbers of type {mask.dtype}, expected torch.bool or floats")
    if mask.shape != shape:
        raise ValueError(f"MultiheadAttention: {name} has shape {list(mask.shape)}, expected {list(shape)}")
