"""headlight.torch beside torch.nn.functional: the same meanings, types, gradients and dropout."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from test_interrupt import PATIENCE, seconds_until_interrupted  # noqa: E402
from torch_peer import SHAPES, UNIT, assert_as_torch, assert_close, draw, own, peer, seeded  # noqa: E402, F401
import headlight as hl  # noqa: E402


@pytest.mark.parametrize("options", [{}, dict(is_causal=True), dict(scale=0.4), dict(scale=0.0)], ids=str)
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES.keys())
def test_shapes(shapes, options):
    assert_as_torch([draw(*shape) for shape in shapes] + [None], **options)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("options", [{}, dict(is_causal=True)], ids=str)
def test_16_bits(dtype, options):
    assert_as_torch([draw(*shape, dtype=dtype) for shape in SHAPES["four_axes"]] + [None], spare=8, **options)


@pytest.mark.parametrize("heads", [(8, 2, 2), (8, 1, 1), (8, 2, 4), (6, 6, 3)], ids=str)
def test_heads_that_share(heads):
    query, key, value = (draw(2, own_heads, 9, 16) for own_heads in heads)
    assert_as_torch([query, key, value, None], enable_gqa=True)


MASKS = [(9, 13), (4, 9, 13), (2, 4, 9, 13), (2, 1, 1, 13), (1, 4, 9, 1), (9, 1)]


@pytest.mark.parametrize("shape", MASKS, ids=str)
@pytest.mark.parametrize("kind", [torch.bool, torch.float32], ids=str)
def test_masks(shape, kind):
    operands = [draw(*one) for one in SHAPES["four_axes"]]
    mask = draw(*shape) > -0.5 if kind == torch.bool else draw(*shape)
    assert_as_torch([*operands, mask])


@pytest.mark.parametrize("shapes, mask", [("three_axes", (3, 9, 13)), ("two_axes", (9, 13)), ("five_axes", (2, 1, 4, 9, 13))])
@pytest.mark.parametrize("kind", [torch.bool, torch.float32], ids=str)
def test_masks_of_other_axes(shapes, mask, kind):
    operands = [draw(*one) for one in SHAPES[shapes]]
    assert_as_torch([*operands, draw(*mask) > -0.5 if kind == torch.bool else draw(*mask)])


@pytest.mark.parametrize("mask", [(2, 1, 9, 13), (2, 4, 1, 13), (1, 4, 9, 13), (4, 9, 13), (9, 13), (3, 2, 1, 9, 1)], ids=str)
@pytest.mark.parametrize("kind", [torch.bool, torch.float32], ids=str)
def test_masks_over_several_axes_of_the_batch(mask, kind):
    operands = draw(3, 1, 4, 9, 16), draw(1, 2, 4, 13, 16), draw(2, 4, 13, 8)
    assert_as_torch([*operands, draw(*mask) > -0.5 if kind == torch.bool else draw(*mask)])


def test_mask_of_the_querys_type():
    operands = [draw(*shape, dtype=torch.bfloat16) for shape in SHAPES["four_axes"]]
    assert_as_torch([*operands, draw(2, 1, 9, 13, dtype=torch.bfloat16)], spare=8)
    assert torch.equal(own(*operands, torch.ones(9, 13)), own(*operands, torch.ones(9, 13, dtype=torch.bfloat16)))


def test_rows_that_see_nothing_are_zeros_as_torchs():
    query = draw(1, 2, 3, 8).requires_grad_()
    for mask in (torch.tensor([True, False, True])[:, None], torch.tensor([0, -torch.inf, 0])[:, None]):
        out = own(query, query, query, mask.expand(3, 3))
        assert torch.equal(out[:, :, 1], torch.zeros(1, 2, 8)) and torch.equal(out[:, :, 1], peer(query, query, query, mask.expand(3, 3))[:, :, 1])
        assert torch.autograd.grad(out.sum(), query)[0].isfinite().all()


def layouts(x):
    yield x.transpose(1, 2).contiguous().transpose(1, 2)
    yield x.mT.contiguous().mT  # a last stride other than 1
    yield torch.stack([x, x], dim=-1)[..., 0]
    yield torch.cat([x, x], dim=-1)[..., : x.shape[-1]]
    yield torch._neg_view(-x)
    yield torch.nn.Parameter(x)


def test_layouts():
    operands = [draw(*shape) for shape in SHAPES["four_axes"]]
    expected = own(*operands)
    for laid in zip(*(layouts(x) for x in operands), strict=True):
        assert torch.equal(own(*laid), expected)
    mask = torch.rand(13, 9) > 0.3
    assert torch.equal(own(*operands, mask.T), own(*operands, mask.T.contiguous()))
    assert torch.equal(own(*operands, mask.float().T), own(*operands, mask.float().T.contiguous()))


def test_nothing_is_copied_but_what_must_be(monkeypatch):
    from headlight.torch import _operator

    seen = []
    monkeypatch.setattr(_operator, "attention", lambda *given, **options: seen.append(given) or attention(*given, **options))
    from headlight import attention

    query, key, value = draw(2, 4, 9, 16), draw(2, 4, 13, 16), draw(2, 2, 13, 16).repeat_interleave(2, 1).mT.contiguous().mT
    own(query, key[:, :, 3:], value[:, :, 3:])
    (given,) = seen
    assert given[0].data_ptr() == query.data_ptr() and given[1].data_ptr() == key[:, :, 3:].data_ptr()
    assert given[2].data_ptr() != value[:, :, 3:].data_ptr()


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_plain_calls_have_the_bits_of_the_operator(kind):
    """They pass it by: nobody would see it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    calls = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    operands = [draw(2, 4, 9, 16, dtype=kind).requires_grad_() for _ in range(3)]
    bias = draw(4, 9, 9).requires_grad_()
    for options in ({}, dict(is_causal=True, scale=0.3), dict(attn_mask=bias), dict(attn_mask=bias.detach() > 0, dropout_p=0.3)):
        leaves = [*operands, *([bias] if options.get("attn_mask") is bias else [])]
        torch.manual_seed(1)
        out = own(*operands, **options)
        plain = torch.autograd.grad(out.float().sum(), leaves)
        with torch.no_grad():
            torch.manual_seed(1)
            assert torch.equal(own(*operands, **options), out)
        assert not calls
        with Watch():
            torch.manual_seed(1)
            seen = own(*operands, **options)
            gradients = torch.autograd.grad(seen.float().sum(), leaves)
        assert any("headlight.attention.default" in call for call in calls)
        assert torch.equal(seen, out)
        for one, other in zip(gradients, plain, strict=True):
            assert torch.equal(one, other)
        calls.clear()
    with torch.profiler.profile() as profile:
        own(*operands)
    assert "headlight::attention" in [event.key for event in profile.key_averages()]


def test_gradients_that_are_expanded():
    query = draw(2, 4, 9, 16).requires_grad_()
    by_sum = torch.autograd.grad(own(query, query, query).sum(), query)[0]
    by_ones = torch.autograd.grad(own(query, query, query), query, torch.ones(2, 4, 9, 16))[0]
    assert torch.equal(by_sum, by_ones)


def test_gradcheck():
    """Central differences in float32: with a step h they err by about h^2 + u / h, which h = u^(1/3) balances."""
    step = UNIT[torch.float32] ** (1 / 3)
    operands = [(0.5 * draw(*shape)).requires_grad_() for shape in ((1, 2, 3, 4), (1, 1, 5, 4), (1, 1, 5, 4), (2, 3, 5))]

    def call(query, key, value, mask):
        return own(query, key, value, mask, scale=0.7, enable_gqa=True)

    # The precision of the inputs is what gradcheck warns of.
    with pytest.warns(UserWarning, match="double precision"):
        assert torch.autograd.gradcheck(call, operands, eps=step, atol=20 * step**2, rtol=20 * step**2)


def test_dropout_follows_manual_seed():
    query = draw(2, 4, 64, 16).requires_grad_()
    results = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        out = own(query, query, query, dropout_p=0.25)
        results.append((out.detach(), torch.autograd.grad(out.square().sum(), query)[0]))
    assert all(torch.equal(a, b) for a, b in zip(results[0], results[1], strict=True))
    assert not torch.equal(results[0][0], results[2][0])
    torch.manual_seed(3)
    assert not torch.equal(own(query, query, query, dropout_p=0.25), own(query, query, query, dropout_p=0.25))


def test_dropout_is_linear_in_the_values():
    """Forward and backward drop the same weights: out is linear in value, so <dO, out(value)> = <dV, value>."""
    query, key, value, by_out = (draw(1, 2, 40, 8) for _ in range(4))
    value.requires_grad_()
    out = own(query, key, value, dropout_p=0.4)
    by_value = torch.autograd.grad(out, value, by_out)[0]
    assert_close((by_value * value).sum() / 100, (by_out * out).sum() / 100)
    kept = own(torch.zeros(1, 1, 512, 8), torch.zeros(1, 1, 512, 8), torch.ones(1, 1, 512, 8), dropout_p=0.4)
    assert abs(kept.mean() - 1) < 6 * (0.4 / 0.6 / 512**2) ** 0.5


def test_dropout_of_everything():
    query = draw(1, 2, 5, 8).requires_grad_()
    out = own(query, query, query, dropout_p=1.0)
    assert not out.any() and not torch.autograd.grad(out.sum(), query)[0].any()


@pytest.mark.parametrize("dtype", UNIT, ids=str)
def test_the_bits_are_those_of_headlight_at_any_number_of_threads(dtype):
    query, key, value, by_out = (draw(2, 300, 4, 32, dtype=dtype) for _ in range(4))
    expected, lse = hl.attention(query, key, value, causal="top_left", log_sum_exp=True, engine=hl.Engine(threads=2))
    gradients = hl.attention_backward(query, key, value, expected, lse, by_out, causal="top_left")
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            leaves = [x.transpose(1, 2).requires_grad_() for x in (query, key, value)]
            out = own(*leaves, is_causal=True)
            assert torch.equal(out.transpose(1, 2), expected)
            found = torch.autograd.grad(out, leaves, by_out.transpose(1, 2))
            assert all(torch.equal(one.transpose(1, 2), other) for one, other in zip(found, gradients, strict=True))
    finally:
        torch.set_num_threads(before)


def test_threads_follow_torch():
    from headlight.torch._engine import engine

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert engine().threads == 1
        torch.set_num_threads(2)
        assert engine().threads == 2 and engine() is engine()
    finally:
        torch.set_num_threads(before)


def test_autocast():
    query = draw(2, 4, 9, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert own(query, query, query).dtype == torch.bfloat16
        half = draw(9, 9, dtype=torch.float16)
        assert_close(own(*[query.half()] * 3, half), peer(*[query.half()] * 3, half), spare=8)
        single = draw(9, 9)  # which is added as it is
        assert torch.equal(own(query, query, query, single), own(*[query.bfloat16()] * 3, single))
        for other in (torch.float64, torch.int64):
            with pytest.raises(TypeError, match=f"query has numbers of type {str(other)[6:]}"):
                own(query.to(other), query, query)


def test_types_may_be_mixed():
    query, key, value = (draw(2, 4, 9, 16, dtype=dtype) for dtype in (torch.bfloat16, torch.float32, torch.float16))
    assert_close(own(query, key, value), peer(query.double(), key.double(), value.double()), spare=8)


def test_long_calls_can_be_interrupted():
    query = torch.randn(1, 8, 1, 64).expand(1, 8, 60_000, 64)
    leaf = torch.randn(1, 512, 1024, 64).requires_grad_()
    assert seconds_until_interrupted(lambda: own(query, query, query)) < PATIENCE
    out = own(leaf, leaf, leaf)
    assert seconds_until_interrupted(lambda: [out.sum().backward(retain_graph=True) for _ in range(100)]) < PATIENCE


def test_headlight_alone_does_not_import_torch():
    program = "import sys, headlight; assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
