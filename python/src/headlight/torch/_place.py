"""How a tensor must lie: dense, in memory of the CPU, or all of them without any (meta)."""

from __future__ import annotations

import torch


def check_place(operation: str, **tensors: object) -> None:
    """Raises TypeError naming the first of them that lies otherwise; None is none."""
    where: torch.device | None = None
    for name, x in tensors.items():
        if x is None:
            continue
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{operation}: {name} is a {type(x).__name__}, expected a torch.Tensor")
        # Asked first, for of such a tensor PyTorch answers few other questions.
        if x.is_nested:
            raise TypeError(
                f"{operation}: {name} is a nested tensor, expected a dense one (torch.nested.to_padded_tensor)"
            )
        if x.layout is not torch.strided:
            raise TypeError(f"{operation}: {name} has the layout {x.layout}, expected torch.strided (tensor.to_dense())")
        if x.is_quantized:
            raise TypeError(f"{operation}: {name} is quantized ({x.dtype}), expected plain numbers (tensor.dequantize())")
        where = where or x.device
        if x.device.type not in ("cpu", "meta") or x.device != where:
            raise TypeError(f"{operation}: {name} is on {x.device}, {next(iter(tensors))} on {where}; expected the CPU")
