"""The operator headlight::attention: what torch.compile, torch.export and autograd see of attention.

query [B, Hq, Lq, D], key [B, Hkv, Lk, D], value [B, Hkv, Lk, Dv]
    -> out [B, Hq, Lq, Dv], of query's type; log_sum_exp [B, Hq, Lq]; weights [B, Hq, Lq, Lk], or [0] unless wanted

All three are differentiable. Behind the tensors are the options of `_options`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import torch
from torch._C import (
    _are_functorch_transforms_active,
    _get_tracing_state,
    _is_torch_function_mode_enabled,
    _len_torch_dispatch_stack,
)
from torch._C._autograd import _profiler_enabled
from torch.autograd import forward_ad

from headlight._core import attention, attention_backward
from headlight.torch._engine import engine
from headlight.torch._options import COUNT, NO_OPTIONS, TENSORS, Options, schema
from headlight.torch._padding import settled, with_mask_of_sequences
from headlight.torch._place import check_place
from headlight.torch._shapes import check_marks, check_results, check_shapes
from headlight.torch._weights import gradients_by_weights

Tensor: TypeAlias = torch.Tensor

_TYPES = (torch.float32, torch.bfloat16, torch.float16)

_library: Any = torch.library.Library("headlight", "DEF")  # type: ignore[no-untyped-call]
_library.define(
    f"attention(Tensor query, Tensor key, Tensor value, {schema()}, bool weights=False) -> (Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
_library.define(
    "attention_backward(Tensor query, Tensor key, Tensor value, Tensor out, Tensor log_sum_exp, Tensor out_gradient, "
    f"{schema()}, bool bias_gradient=False, bool sinks_gradient=False, Tensor? log_sum_exp_gradient=None) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)

_attend = torch.ops.headlight.attention.default
_attend_backward = torch.ops.headlight.attention_backward.default


class _Wanted(NamedTuple):
    """What the operator of the way back takes behind the options."""

    bias_gradient: bool = False
    sinks_gradient: bool = False
    log_sum_exp_gradient: Tensor | None = None


def attend(query: Tensor, key: Tensor, value: Tensor, options: Options | None = None) -> Tensor:
    """out of the operator, which is passed by where nobody would see it: it takes longer than small attention does."""
    if not _is_plain(query, key, value, options):
        out: Tensor = _attend(query, key, value, *(options or ()))[0]
        return out
    given = NO_OPTIONS if options is None else options
    if torch.is_grad_enabled() and _wants_gradients(query, key, value, given):
        return _Differentiable.apply(query, key, value, *given)[0]  # type: ignore[no-any-return, no-untyped-call]
    keywords = {} if options is None else _keywords(options)
    several = _are_several(query, keywords)
    result: Tensor = attention(
        _rows(query, several), _rows(key, several), _rows(value, several), engine=engine(), **keywords
    )
    return _of_heads(result, query, several)


def attend_with_weights(
    query: Tensor, key: Tensor, value: Tensor, options: Options, wanted: bool
) -> tuple[Tensor, Tensor | None]:
    """out and the weights, where they are wanted."""
    if not wanted:
        return attend(query, key, value, options), None
    out, _, weights = _attend(query, key, value, *options, True)
    return out, weights


def _is_plain(query: Tensor, key: Tensor, value: Tensor, options: Options | None) -> bool:
    """Whether the tensors are memory of the CPU, and nobody traces, transforms, records or watches operators."""
    return (
        not torch.compiler.is_compiling()
        and type(query) in _PLAIN
        and type(key) in _PLAIN
        and type(value) in _PLAIN
        and (options is None or (type(options.mask) in _PLAIN_OR_NONE and type(options.bias) in _PLAIN_OR_NONE))
        and _len_torch_dispatch_stack() == 0
        and not _is_torch_function_mode_enabled()
        and not _are_functorch_transforms_active()
        and _get_tracing_state() is None
        and not _profiler_enabled()
        and forward_ad._current_level < 0
        and query.is_cpu
    )


def _wants_gradients(query: Tensor, key: Tensor, value: Tensor, options: Options) -> bool:
    return (
        query.requires_grad
        or key.requires_grad
        or value.requires_grad
        or (options.bias is not None and options.bias.requires_grad)
        or (options.sinks is not None and options.sinks.requires_grad)
    )


def seed_for(dropout: float) -> Tensor | None:
    """One of torch's default generator where there is dropout: torch.manual_seed() repeats it."""
    return torch.randint(2**63 - 1, (), device="cpu") if dropout else None


def _close(x: Tensor) -> Tensor:
    """The same numbers with a last stride of 1; a copy only where it is another."""
    if x.requires_grad:
        x = x.detach()
    if x.is_neg():
        x = x.resolve_neg()
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _heads_inside(x: Tensor) -> Tensor:
    """[B, H, L, D] as the engine takes it, [B, L, H, D]."""
    if x.requires_grad or x.stride(-1) != 1 or x.is_neg():
        x = _close(x)
    return x.transpose(1, 2)


def _are_several(query: Tensor, keywords: dict[str, Any]) -> bool:
    """Whether the engine takes all samples as one, in which sequences lie one after another."""
    return len(query) > 1 and "query_offsets" in keywords


def _rows(x: Tensor, several: bool) -> Tensor:
    """[B, H, L, D] as the engine takes it: [B, L, H, D], or [1, B * L, H, D]."""
    x = _heads_inside(x)
    return x.flatten(0, 1)[None] if several else x


def _of_heads(result: Tensor, query: Tensor, several: bool) -> Tensor:
    """What the engine gave for _rows(), as [B, H, L, D]."""
    return (result.reshape(len(query), query.shape[2], *result.shape[2:]) if several else result).transpose(1, 2)


def _sums(x: Tensor, several: bool) -> Tensor:
    """[B, H, L] as the engine takes it: the same, or [1, H, B * L]."""
    return _close(x.transpose(0, 1).flatten(1, 2)[None] if several else x)


def _keywords(options: Options) -> dict[str, Any]:
    """Those that are set, as headlight.attention() takes them."""
    given: dict[str, Any] = {}
    if options.padding is not None or options.packed is not None:
        options = settled(options)
    if options.mask is not None:
        given["mask"], given["mask_means"] = _close(options.mask), "attend"
    if options.bias is not None:
        given["bias"] = _close(options.bias)
    if options.sinks is not None:
        given["sinks"] = _close(options.sinks)
    if options.key_lengths is not None:
        given["key_lengths"] = options.key_lengths.tolist()
    if options.query_offsets is not None:
        given["query_offsets"] = options.query_offsets.tolist()
    if options.key_offsets is not None:
        given["key_offsets"] = options.key_offsets.tolist()
    if options.query_start is not None:
        given["query_start"] = _start(options.query_start)
    if options.key_start is not None:
        given["key_start"] = _start(options.key_start)
    if options.causal:
        given["causal"] = options.causal
    if options.left != -1 or options.right != -1:
        given["window"] = (options.left, options.right)
    if options.chunk:
        given["chunk"] = options.chunk
    if options.scale is not None:
        given["scale"] = options.scale
    if options.softcap:
        given["softcap"] = options.softcap
    if options.dropout:
        given["dropout"] = options.dropout
        if options.seed is not None:
            given["seed"] = options.seed.item()
    return given


def _start(positions: Tensor) -> Any:
    """One number for all samples, or one for each."""
    return positions.item() if positions.numel() == 1 else positions.tolist()


def _forward(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    options, weights = Options(*rest[:COUNT]), rest[COUNT:] == (True,)
    _check_marks(query, key, options)
    keywords = _keywords(_of_weights(options) if weights else options)
    several = _are_several(query, keywords)
    results: Any = attention(
        _rows(query, several), _rows(key, several), _rows(value, several),
        log_sum_exp=True, probabilities=weights, engine=engine(), **keywords,
    )  # fmt: skip
    log_sum_exp = results[1]
    if several:
        log_sum_exp = log_sum_exp[0].unflatten(1, (len(query), -1)).transpose(0, 1).contiguous()
    shown = results[2] if weights else query.new_empty(0, dtype=torch.float32)
    return _of_heads(results[0], query, several), log_sum_exp, shown


def _of_weights(options: Options) -> Options:
    """Those of a call that gives the weights [B, Hq, Lq, Lk], which are those of each sample by itself."""
    packed = options.packed
    return options if packed is None or len(packed) == 1 else with_mask_of_sequences(options, packed)


def _check_marks(query: Tensor, key: Tensor, options: Options) -> None:
    if options.padding is not None or options.packed is not None:
        check_marks(query, key, options.padding, options.packed)


def _forward_shapes(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dtype not in _TYPES:
            raise TypeError(f"attention: {name} has numbers of type {x.dtype}, expected float32, bfloat16 or float16")
    options = Options(*rest[:COUNT])
    check_shapes(query, key, value, options.mask, options.bias)
    _check_marks(query, key, options)
    batch, heads, rows, _ = query.shape
    out = query.new_empty(batch, rows, heads, value.shape[3]).transpose(1, 2)
    shape = (batch, heads, rows, key.shape[2]) if rest[COUNT:] == (True,) else (0,)
    return out, query.new_empty(batch, heads, rows, dtype=torch.float32), query.new_empty(shape, dtype=torch.float32)


def _backward(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, log_sum_exp: Tensor, out_gradient: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    options, (by_bias, by_sinks, by_log_sum_exp) = Options(*rest[:COUNT]), _Wanted(*rest[COUNT:])
    keywords = _keywords(options)
    several = _are_several(query, keywords)
    results: Any = attention_backward(
        _rows(query, several), _rows(key, several), _rows(value, several),
        _rows(out, several), _sums(log_sum_exp, several), _rows(out_gradient, several),
        lse_gradient=None if by_log_sum_exp is None else _sums(by_log_sum_exp, several),
        bias_gradient=by_bias, sinks_gradient=by_sinks, engine=engine(), **keywords,
    )  # fmt: skip
    none = query.new_empty(0, dtype=torch.float32)
    further = iter(results[3:])
    by_query, by_key, by_value = (_of_heads(x, query, several) for x in results[:3])
    return by_query, by_key, by_value, next(further) if by_bias else none, next(further) if by_sinks else none.clone()


def _backward_shapes(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, log_sum_exp: Tensor, out_gradient: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    options, (by_bias, by_sinks, by_log_sum_exp) = Options(*rest[:COUNT]), _Wanted(*rest[COUNT:])
    check_shapes(query, key, value, options.mask, options.bias)
    _check_marks(query, key, options)
    check_results(query, value, out, log_sum_exp, out_gradient, by_log_sum_exp)

    def heads_inside(x: Tensor) -> Tensor:
        batch, heads, rows, dim = x.shape
        return x.new_empty(batch, rows, heads, dim).transpose(1, 2)

    def vector(x: Tensor | None, wanted: bool) -> Tensor:
        return query.new_empty(x.shape if wanted and x is not None else 0, dtype=torch.float32)

    by_query, by_key, by_value = (heads_inside(x) for x in (query, key, value))
    return by_query, by_key, by_value, vector(options.bias, by_bias), vector(options.sinks, by_sinks)


class _Differentiable(torch.autograd.Function):
    """Attention as autograd sees it. torch.library.register_autograd would do, at five times the cost of a call."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, Tensor, Tensor]:
        options = Options(*given[3 : 3 + COUNT])
        plain = _is_plain(given[0], given[1], given[2], options)
        with torch._C._AutoDispatchBelowAutograd():
            out, log_sum_exp, weights = (_forward if plain else _attend)(*given)
        ctx.set_materialize_grads(False)
        ctx.gave_weights = given[3 + COUNT :] == (True,)
        if not ctx.gave_weights:
            ctx.mark_non_differentiable(weights)
        ctx.numbers = options[TENSORS:]
        ctx.save_for_backward(*given[:3], out, log_sum_exp, weights, *options[:TENSORS])
        return out, log_sum_exp, weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        by_out, by_log_sum_exp, by_weights = gradients
        query, key, value, out, log_sum_exp, weights, *tensors = ctx.saved_tensors
        options = Options(*tensors, *ctx.numbers)
        if ctx.gave_weights:
            options = _of_weights(options)  # what goes by dropout depends on how sequences are told apart
        by_bias, by_sinks = (*ctx.needs_input_grad[4:6], False, False)[:2]
        found: list[Tensor | None] = [None] * 5
        if by_out is not None or by_log_sum_exp is not None:
            upstream = torch.zeros_like(out) if by_out is None else by_out
            wanted = _Wanted(by_bias, by_sinks, by_log_sum_exp)
            found = list(_attend_backward(query, key, value, out, log_sum_exp, upstream, *options, *wanted))
        by_query, by_key, by_value, bias_gradient, sinks_gradient = found
        if by_weights is not None:
            more = gradients_by_weights(query, key, weights, by_weights, options.scale, options.softcap)
            by_query, by_key = _sum(by_query, more[0]), _sum(by_key, more[1])
            if by_bias and options.bias is not None:
                bias_gradient = _sum(bias_gradient, more[2].sum_to_size(options.bias.shape))
            if by_sinks and options.sinks is not None:
                # A sink adds nothing to the weights shown but its share of their sum.
                share = torch.exp(options.sinks[:, None] - log_sum_exp) * (by_weights * weights).sum(-1)
                sinks_gradient = _sum(sinks_gradient, -share.sum((0, 2)))
        further = (None, bias_gradient if by_bias else None, sinks_gradient if by_sinks else None)
        # Behind them nothing has a gradient, however much of it was given.
        return (by_query, by_key, by_value, *further, *(None,) * (COUNT - 2))


def _autograd(*given: Any) -> Any:
    if forward_ad._current_level >= 0 and any(isinstance(x, Tensor) and _has_tangent(x) for x in given):
        raise NotImplementedError(
            "headlight::attention has no forward-mode derivatives (torch.func.jvp, jacfwd, make_dual); "
            "torch.autograd.grad() and torch.autograd.functional.jacobian() go backward"
        )
    if torch.is_grad_enabled() and torch._C._any_requires_grad(*given):
        if _are_functorch_transforms_active():
            raise NotImplementedError(
                "headlight::attention has no gradients within torch.func (grad, vjp, jacrev); torch.autograd.grad() has"
            )
        return _Differentiable.apply(*given)  # type: ignore[no-untyped-call]
    with torch._C._AutoDispatchBelowAutograd():
        return _attend(*given)


def _has_tangent(x: Tensor) -> bool:
    return forward_ad.unpack_dual(x).tangent is not None  # type: ignore[no-untyped-call]


def _sum(a: Tensor | None, b: Tensor) -> Tensor:
    return b if a is None else a + b


def _no_second_gradients(ctx: Any, *gradients: Tensor | None) -> Any:
    raise NotImplementedError("headlight::attention has no second gradients (create_graph=True)")


def _refuse_place(*given: Any) -> Any:
    """What tensors come to that are neither memory of the CPU nor without any: PyTorch would list all its backends."""
    names = ("query", "key", "value", *Options._fields)
    check_place("attention", **{name: x for name, x in zip(names, given, strict=False) if isinstance(x, Tensor)})
    raise TypeError("attention: an operand is no tensor with strides on the CPU")


_PLAIN = (torch.Tensor, torch.nn.Parameter)
_PLAIN_OR_NONE = (type(None), *_PLAIN)

_library.impl("attention", _forward, "CPU")
_library.impl("attention", _autograd, "Autograd")
for _place in ("CompositeExplicitAutograd", "NestedTensorCPU"):  # every other place
    _library.impl("attention", _refuse_place, _place)
_library.impl("attention_backward", _backward, "CPU")
torch.library.register_fake("headlight::attention", _forward_shapes, lib=_library)
torch.library.register_fake("headlight::attention_backward", _backward_shapes, lib=_library)
torch.library.register_autograd("headlight::attention_backward", _no_second_gradients, lib=_library)
