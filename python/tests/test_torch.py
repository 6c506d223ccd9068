"""headlight.torch beside torch.nn.functional: the same meanings, gradients, and what compiles and exports programs."""

import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import formulas  # noqa: E402
from test_interrupt import PATIENCE, seconds_until_interrupted  # noqa: E402
import headlight as hl  # noqa: E402
import headlight.torch as hl_torch  # noqa: E402

attend = torch.ops.headlight.attention.default
UNIT = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
peer = torch.nn.functional.scaled_dot_product_attention
own = hl_torch.scaled_dot_product_attention


@pytest.fixture(autouse=True)
def seeded(request):
    torch.manual_seed(sum(request.node.name.encode()))
    yield
    torch.compiler.reset()


def draw(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


def assert_close(result, expected, spare=32.0):
    formulas.assert_close(result.detach().double(), expected.detach().double(), unit=UNIT[result.dtype], spare=spare)


def assert_as_torch(tensors, spare=64.0, **options):
    """Forward and gradients as those of torch in float64; tensors are query, key, value, and a float mask or None."""
    leaves = [None if x is None else x.detach().requires_grad_(x.is_floating_point()) for x in tensors]
    wide = [None if x is None else x.detach().double().requires_grad_() if x.is_floating_point() else x for x in tensors]
    out, expected = own(*leaves, **options), peer(*wide, **options)
    assert out.dtype == leaves[0].dtype
    assert_close(out, expected, spare)
    by_out = torch.randn_like(out)
    wanted = [x is not None and x.requires_grad for x in leaves]
    gradients = torch.autograd.grad(out, [x for x, one in zip(leaves, wanted, strict=True) if one], by_out)
    exact = torch.autograd.grad(expected, [x for x, one in zip(wide, wanted, strict=True) if one], by_out.double())
    for gradient, formula in zip(gradients, exact, strict=True):
        assert_close(gradient, formula, spare)


SHAPES = {
    "four_axes": [(2, 4, 9, 16), (2, 4, 13, 16), (2, 4, 13, 24)],
    "three_axes": [(3, 9, 16), (3, 13, 16), (3, 13, 16)],
    "two_axes": [(9, 16), (13, 16), (13, 8)],
    "five_axes": [(2, 3, 4, 9, 16), (2, 3, 4, 13, 16), (2, 3, 4, 13, 16)],
    "broadcast_batch": [(2, 4, 9, 16), (1, 4, 13, 16), (4, 13, 16)],
    "broadcast_heads": [(2, 4, 9, 16), (2, 1, 13, 16), (2, 1, 13, 16)],
    "broadcast_query": [(1, 1, 9, 16), (2, 4, 13, 16), (2, 4, 13, 16)],
    "values_of_fewer_heads": [(2, 4, 9, 16), (2, 4, 13, 16), (2, 1, 13, 16)],
    "broadcast_five": [(2, 3, 4, 9, 16), (3, 4, 13, 16), (1, 1, 1, 13, 16)],
    "one_row": [(2, 4, 1, 16), (2, 4, 13, 16), (2, 4, 13, 16)],
    "no_keys": [(2, 4, 3, 16), (2, 4, 0, 16), (2, 4, 0, 16)],
}


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


def test_meta_tensors_have_shapes():
    query, key = (torch.empty(2, 4, length, 16, device="meta") for length in (9, 13))
    out = own(query, key, key)
    assert out.is_meta and out.shape == (2, 4, 9, 16) and out.stride() == own(draw(2, 4, 9, 16), *[draw(2, 4, 13, 16)] * 2).stride()


@pytest.fixture(params=["set_default_device", "context"])
def elsewhere(request):
    """Tensors that name no device lie on another than the CPU."""
    if request.param == "context":
        with torch.device("meta"):
            yield
        return
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


def test_the_default_device_is_of_no_account(elsewhere):
    query, key, value = (torch.linspace(-1, 1, 2 * 2 * 9 * 8, device="cpu").reshape(2, 2, 9, 8).roll(n) for n in range(3))
    bias = torch.linspace(-1, 1, 9, device="cpu").requires_grad_()
    leaves = [x.requires_grad_() for x in (query, key, value)]
    seen = torch.arange(9, device="cpu") < torch.tensor([[9], [4]], device="cpu")
    packed = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2], [0] * 8 + [1]], device="cpu")
    for options in (dict(is_causal=True), dict(attn_mask=seen[:, None, None]), dict(attn_mask=bias), dict(dropout_p=0.3)):
        out = own(*leaves, **options)
        assert out.is_cpu and out.isfinite().all()
        assert torch.autograd.grad(out.sum(), leaves)[0].isfinite().all()
    for options in (dict(padding=seen), dict(packed=packed), dict(key_lengths=seen.sum(1)), dict(weights=True, bias=bias)):
        results = attend(*leaves, **options)
        assert all(result.is_cpu and result.isfinite().all() for result in results)
        for gradient in torch.autograd.grad(results[0].sum() + results[1].sum(), leaves):
            assert gradient.is_cpu and gradient.isfinite().all()
    for result in hl.attention(*(x.detach().transpose(1, 2) for x in leaves), log_sum_exp=True):
        assert result.is_cpu and result.isfinite().all()


# What is neither dense memory of the CPU nor without any, and what is said of it.
PLACES = {
    "meta": (lambda x: x.to("meta"), "on"),
    "sparse": (lambda x: x.to_sparse(), "has the layout torch.sparse_coo, expected torch.strided (tensor.to_dense())"),
    "mkldnn": (lambda x: x.to_mkldnn(), "has the layout torch._mkldnn, expected torch.strided (tensor.to_dense())"),
    "nested": (lambda x: torch.nested.nested_tensor(list(x)), "is a nested tensor, expected a dense one (torch.nested.to_padded_tensor)"),
    "jagged": (
        lambda x: torch.nested.nested_tensor(list(x), layout=torch.jagged),
        "is a nested tensor, expected a dense one (torch.nested.to_padded_tensor)",
    ),
    "quantized": (
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        "is quantized (torch.qint8), expected plain numbers (tensor.dequantize())",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:.*quantize")
@pytest.mark.parametrize("place", PLACES)
def test_tensors_elsewhere_are_refused_in_one_sentence(place):
    lay, said = PLACES[place]
    x, mask = draw(2, 4, 9, 16), draw(2, 4, 9, 9)
    rows = draw(2, 9, 16)
    module = hl_torch.MultiheadAttention(16, 4, batch_first=True)
    layer = hl_torch.TransformerEncoderLayer(16, 4, batch_first=True)
    calls = {
        "scaled_dot_product_attention: key": lambda: own(x, lay(x), x),
        "scaled_dot_product_attention: attn_mask": lambda: own(x, x, x, lay(mask)),
        "MultiheadAttention: value": lambda: module(rows, rows, lay(rows)),
        "MultiheadAttention: attn_mask": lambda: module(rows, rows, rows, attn_mask=lay(mask.flatten(0, 1))),
    }
    if place not in ("meta", "jagged"):  # which are shapes to the operator, and what has a sentence of its own
        calls["attention: query"] = lambda: attend(lay(x), x, x)
        calls["attention: bias"] = lambda: attend(x, x, x, bias=lay(mask))
    if place != "meta":
        calls["MultiheadAttention: query"] = lambda: layer(lay(rows))
    for subject, call in calls.items():
        with pytest.raises(TypeError) as caught:
            call()
        sentence = str(caught.value)
        if place == "quantized" and subject.endswith(("key", "scaled_dot_product_attention: attn_mask")):
            assert "key is quantized" in sentence or "attn_mask has numbers of type torch.qint8" in sentence
        elif place == "meta":
            assert sentence == f"{subject} is on meta, query on cpu; expected the CPU"
        else:
            assert sentence == f"{subject} {said}"
        assert "\n" not in sentence


Q = torch.zeros(2, 4, 9, 16)


@pytest.mark.parametrize(
    "call, error, sentence",
    [
        (lambda: own(Q.double(), Q, Q), TypeError, "query has numbers of type float64, expected float32, bfloat16 or float16"),
        (lambda: own(Q.int(), Q, Q), TypeError, "query has numbers of type int32"),
        (lambda: own(Q, Q.to(torch.complex64), Q), TypeError, "key has numbers of type complex64"),
        (lambda: own(Q.to("meta"), Q, Q), TypeError, "key is on cpu, query on meta"),
        (lambda: own(Q, Q, Q.to_sparse()), TypeError, "value has the layout torch.sparse_coo"),
        (lambda: own(Q, Q, Q.numpy()), TypeError, "value is a ndarray, expected a torch.Tensor"),
        (lambda: own(Q, Q, Q, torch.zeros(9, 9, dtype=torch.int)), TypeError, "attn_mask has numbers of type torch.int32"),
        (lambda: own(Q, Q, Q, torch.zeros(9, 9, dtype=torch.float64)), TypeError, "attn_mask has numbers of type torch.float64"),
        (lambda: own(Q, Q, Q, torch.zeros(9, 8)), ValueError, "attn_mask has shape [9, 8], expected one that broadcasts to [2, 4, 9, 9]"),
        # Not nine samples made of three and three.
        (lambda: own(*[Q[0].expand(3, 1, 4, 9, 16)] * 3, torch.zeros(3, 1, 9, 9)), ValueError, "broadcasts to [3, 1, 4, 9, 9]"),
        (lambda: own(Q, Q, Q, torch.zeros(1, 2, 4, 9, 9)), ValueError, "attn_mask has shape [1, 2, 4, 9, 9]"),
        (lambda: own(Q, Q, Q, torch.zeros(9, 9), is_causal=True), ValueError, "attn_mask given together with is_causal=True"),
        (lambda: own(Q, Q, Q, dropout_p=1.5), ValueError, "dropout_p is 1.5, expected 0 to 1"),
        (lambda: own(Q, Q[:, :2], Q[:, :2]), ValueError, "enable_gqa=True"),
        (lambda: own(Q, Q[:, :3], Q[:, :3], enable_gqa=True), ValueError, "expected a multiple of the 3 of key"),
        (lambda: own(Q, Q[..., :8], Q), ValueError, "key has shape"),
        (lambda: own(Q, Q[:, :, :8], Q), ValueError, "value has shape"),
        (lambda: own(Q[0, 0, 0], Q, Q), ValueError, "query has shape [16], expected 2 axes or more"),
        (lambda: torch.compile(own, backend="eager")(Q.double(), Q, Q), Exception, "expected float32, bfloat16 or float16"),
    ],
)
def test_sentences(call, error, sentence):
    with pytest.raises(error, match=re.escape(sentence)):
        call()


def test_second_gradients_are_refused():
    query = draw(1, 2, 5, 8).requires_grad_()
    gradient = torch.autograd.grad(own(query, query, query).sum(), query, create_graph=True)[0]
    with pytest.raises(NotImplementedError, match="no second gradients"):
        gradient.sum().backward()


def test_transforms_of_gradients_are_refused():
    query = draw(1, 2, 5, 8)
    with pytest.raises(NotImplementedError, match="torch.func"):
        torch.func.grad(lambda query: own(query, query, query).sum())(query)


def test_forward_mode_is_refused():
    from torch.autograd import forward_ad

    query, key = draw(1, 2, 5, 8), draw(1, 2, 7, 8)
    for transform in (torch.func.jacfwd, lambda function: lambda x: torch.func.jvp(function, (x,), (x,))):
        with pytest.raises(NotImplementedError, match="no forward-mode derivatives.*torch.autograd.grad"):
            transform(lambda query: own(query, key, key))(query)
    operands = [query, key, key, draw(5, 7)]
    expected = own(*operands)
    with forward_ad.dual_level():
        for number, x in enumerate(operands):
            given = list(operands)
            given[number] = forward_ad.make_dual(x, torch.ones_like(x))
            with pytest.raises(NotImplementedError, match="no forward-mode derivatives"):
                own(*given)
        assert torch.equal(own(*operands), expected)  # without a tangent there is nothing to refuse


def meta(*shape):
    return torch.empty(*shape, device="meta")


SCORES = dict(
    out=meta(2, 4, 5, 6), log_sum_exp=meta(2, 4, 5), out_gradient=meta(2, 4, 5, 6), log_sum_exp_gradient=meta(2, 4, 5)
)


@pytest.mark.parametrize(
    "given, sentence",
    [
        (dict(query=meta(4, 5, 8)), "query has rank 3, expected 4"),
        (dict(key=meta(2, 2, 7, 9)), "key has shape [2, 2, 7, 9], expected [2, any, any, 8]"),
        (dict(key=meta(1, 2, 7, 8)), "key has shape [1, 2, 7, 8], expected [2, any, any, 8]"),
        (dict(key=meta(2, 3, 7, 8)), "query has 4 heads, expected a multiple of the 3 of key"),
        (dict(key=meta(2, 0, 7, 8)), "query has 4 heads, expected a multiple of the 0 of key"),
        (dict(value=meta(2, 2, 8, 6)), "value has shape [2, 2, 8, 6], expected [2, 2, 7, any]"),
        (dict(value=meta(2, 1, 7, 6)), "value has shape [2, 1, 7, 6], expected [2, 2, 7, any]"),
        (dict(value=meta(1, 2, 7, 6)), "value has shape [1, 2, 7, 6], expected [2, 2, 7, any]"),
        (dict(mask=meta(5, 6).bool()), "mask has shape [5, 6], expected [2, 4, 5, 7]"),
        (dict(bias=meta(2, 2, 5, 7)), "bias has shape [2, 2, 5, 7], expected [2, 4, 5, 7]"),
        (dict(bias=meta(1, 2, 4, 5, 7)), "bias has shape [1, 2, 4, 5, 7], expected [2, 4, 5, 7]"),
        (dict(out=meta(2, 4, 5, 7)), "out has shape [2, 4, 5, 7], expected [2, 4, 5, 6]"),
        (dict(log_sum_exp=meta(2, 5, 4)), "log_sum_exp has shape [2, 5, 4], expected [2, 4, 5]"),
        (dict(out_gradient=meta(2, 4, 5)), "out_gradient has shape [2, 4, 5], expected [2, 4, 5, 6]"),
        (dict(log_sum_exp_gradient=meta(2, 4, 6)), "log_sum_exp_gradient has shape [2, 4, 6], expected [2, 4, 5]"),
    ],
)
def test_traced_calls_are_refused_as_those_with_numbers(given, sentence):
    good = dict(query=meta(2, 4, 5, 8), key=meta(2, 2, 7, 8), value=meta(2, 2, 7, 6))
    backward = torch.ops.headlight.attention_backward.default
    attend(**good), backward(**good, **SCORES)
    with pytest.raises(ValueError, match=re.escape("attention: " + sentence)):
        backward(**{**good, **SCORES, **given})
    numbers = {name: torch.zeros(x.shape, dtype=x.dtype) for name, x in {**good, **given}.items() if name not in SCORES}
    if not given.keys() & SCORES.keys():
        with pytest.raises(ValueError, match=re.escape("attention: " + sentence)):
            attend(**{**good, **given})
        with pytest.raises((ValueError, RuntimeError)):
            attend(**numbers)


def test_export_refuses_what_a_call_does():
    class Model(torch.nn.Module):
        def forward(self, query, key):
            return own(query, key, key)

    with pytest.raises(Exception, match="key has shape"):
        torch.export.export(Model(), (draw(2, 4, 5, 8), draw(2, 4, 7, 9)))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_goes_sample_by_sample():
    query, key = draw(3, 1, 2, 5, 8), draw(3, 1, 2, 7, 8)
    expected = torch.stack([own(*pair, pair[1]) for pair in zip(query, key, strict=True)])
    assert torch.equal(torch.vmap(own)(query, key, key), expected)


OPERATOR = {
    "plain": {},
    "mask": dict(mask=torch.arange(13).remainder(3) > 0, causal="bottom_right"),
    "bias": dict(bias=torch.linspace(-1, 1, 9 * 13).reshape(9, 13).requires_grad_(), scale=0.3),
    "sinks": dict(sinks=torch.linspace(-1, 1, 4).requires_grad_(), softcap=3.0, left=4, right=2),
    "lengths": dict(key_lengths=torch.tensor([13, 4]), query_start=torch.tensor([4, 0]), causal="top_left", chunk=8),
    "dropout": dict(dropout=0.3, seed=torch.tensor(5)),
    "padding": dict(padding=torch.arange(13) < torch.tensor([[13], [4]])),
    "weights": dict(weights=True, bias=torch.linspace(-1, 1, 13).requires_grad_(), sinks=torch.zeros(4).requires_grad_()),
}


@pytest.mark.parametrize("options", OPERATOR.values(), ids=OPERATOR.keys())
def test_opcheck(options):
    operands = [draw(2, heads, length, 16).requires_grad_() for heads, length in ((4, 9), (2, 13), (2, 13))]
    torch.library.opcheck(attend, operands, options)
    torch.library.opcheck(attend, [x.detach().bfloat16() for x in operands], options)


def test_gradients_by_weights():
    """Those who use the weights in a loss get the gradients that torch gives."""
    query, key, value = (draw(2, heads, length, 8) for heads, length in ((4, 5), (2, 7), (2, 7)))
    bias, sinks = draw(1, 4, 5, 7), draw(4)
    by_out, by_weights = draw(2, 4, 5, 8), draw(2, 4, 5, 7)
    leaves = [x.clone().requires_grad_() for x in (query, key, value, bias, sinks)]
    out, _, weights = attend(*leaves[:3], bias=leaves[3], sinks=leaves[4], softcap=2.0, weights=True)
    found = torch.autograd.grad([out, weights], leaves, [by_out, by_weights])

    wide = [x.double().requires_grad_() for x in (query, key, value, bias, sinks)]
    keys, values = (x.repeat_interleave(2, 1) for x in wide[1:3])
    scores = 2.0 * torch.tanh(wide[0] @ keys.mT / 8**0.5 / 2.0) + wide[3]
    logits = torch.cat([scores, wide[4][None, :, None, None].expand(2, 4, 5, 1)], dim=-1)
    expected = logits.softmax(-1)[..., :-1]
    assert_close(weights, expected)
    exact = torch.autograd.grad([expected @ values, expected], wide, [by_out.double(), by_weights.double()])
    for gradient, formula in zip(found, exact, strict=True):
        assert_close(gradient, formula, spare=64)


@pytest.mark.parametrize("with_out", [True, False])
def test_gradients_through_the_log_sum_exp(with_out):
    query, key, value = (draw(2, heads, length, 8) for heads, length in ((4, 5), (2, 7), (2, 7)))
    bias, sinks = draw(1, 4, 5, 7), draw(4)
    by_out, by_lse = draw(2, 4, 5, 8), draw(2, 4, 5)
    leaves = [x.clone().requires_grad_() for x in (query, key, value, bias, sinks)]
    out, lse, _ = attend(*leaves[:3], bias=leaves[3], sinks=leaves[4], softcap=2.0)
    results, upstream = ([out, lse], [by_out, by_lse]) if with_out else ([lse], [by_lse])
    found = torch.autograd.grad(results, leaves, upstream, retain_graph=True)

    wide = [x.double().requires_grad_() for x in (query, key, value, bias, sinks)]
    keys, values = (x.repeat_interleave(2, 1) for x in wide[1:3])
    scores = 2.0 * torch.tanh(wide[0] @ keys.mT / 8**0.5 / 2.0) + wide[3]
    logits = torch.cat([scores, wide[4][None, :, None, None].expand(2, 4, 5, 1)], dim=-1)
    assert_close(lse, logits.logsumexp(-1))
    expected = [logits.softmax(-1)[..., :-1] @ values, logits.logsumexp(-1)][0 if with_out else 1 :]
    exact = torch.autograd.grad(expected, wide, [x.double() for x in upstream], materialize_grads=True)
    for gradient, formula in zip(found, exact, strict=True):
        assert_close(gradient, formula, spare=64)
    # Without it in the sum nothing is added.
    alone = torch.autograd.grad(out, leaves, by_out, retain_graph=True)
    zeros = torch.autograd.grad([out, lse], leaves, [by_out, torch.zeros_like(lse)])
    assert all(torch.equal(one, other) for one, other in zip(alone, zeros, strict=True))


def test_gradients_of_parts_that_are_merged_are_those_of_the_whole():
    query, key, value, by_out = draw(1, 2, 5, 8), draw(1, 2, 7, 8), draw(1, 2, 7, 8), draw(1, 2, 5, 8)
    leaves = [x.requires_grad_() for x in (query, key, value)]
    parts = [attend(query, key[:, :, some], value[:, :, some])[:2] for some in (slice(0, 3), slice(3, 7))]
    weights = torch.stack([lse for _, lse in parts]).softmax(0)
    merged = sum(weight[..., None] * out for weight, (out, _) in zip(weights, parts, strict=True))
    found, expected = (torch.autograd.grad(out, leaves, by_out) for out in (merged, own(query, key, value)))
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, spare=64)


MARKS = {
    "behind": (dict(padding=torch.arange(9) < torch.tensor([[9], [4]])), dict(key_lengths=[9, 4])),
    "in_front": (dict(padding=torch.arange(9) >= torch.tensor([[0], [4]])), dict(mask=(2, 1, 1, 9))),
    "nowhere": (dict(padding=torch.ones(2, 9, dtype=torch.bool)), {}),
    "packed": (dict(packed=torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2]])), dict(query_offsets=[0, 3, 5, 9])),
    "packed_and_padded": (
        dict(packed=torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1, 1]]), padding=torch.arange(9)[None] < 8),
        dict(query_offsets=[0, 5, 9], mask=(1, 1, 1, 9)),
    ),
    "packed_in_several_rows": (
        dict(packed=torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2], [0] * 8 + [1]])), dict(query_offsets=[0, 3, 5, 9, 17, 18])
    ),
    "one_sequence": (dict(packed=torch.zeros(2, 9, dtype=torch.int64)), {}),
}


@pytest.mark.parametrize("marks, told", MARKS.values(), ids=MARKS.keys())
def test_marks_become_intervals_as_the_operator_runs(marks, told, monkeypatch):
    from headlight.torch import _operator

    calls = []
    monkeypatch.setattr(_operator, "attention", lambda *given, **options: calls.append(options) or hl.attention(*given, **options))
    batch = len(next(iter(marks.values())))
    query, key, value = (draw(batch, 2, 9, 8).requires_grad_() for _ in range(3))
    seen = torch.ones(batch, 9, 9, dtype=torch.bool).tril()
    if "padding" in marks:
        seen &= marks["padding"][:, None]
    if "packed" in marks:
        seen &= marks["packed"][:, :, None] == marks["packed"][:, None]
    start = torch.tensor([0]) if "packed" in marks else None
    out = attend(query, key, value, **marks, query_start=start, causal="top_left")[0]
    expected = own(query, key, value, seen[:, None])
    assert_close(out, expected)
    given = calls[0]
    for name in ("key_lengths", "query_offsets", "mask"):
        assert (name in given) == (name in told)
        if name in told:
            assert (tuple(given[name].shape) if name == "mask" else given[name]) == told[name]
    gradients = (torch.autograd.grad(x.sum(), [query, key, value]) for x in (out, expected))
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other, spare=64)


def test_marks_that_do_not_fit():
    for device in ("cpu", "meta"):
        query, key = torch.zeros(2, 4, 5, 8, device=device), torch.zeros(2, 4, 7, 8, device=device)
        with pytest.raises(ValueError, match=re.escape("padding has shape [2, 5], expected [2, 7] ([B, Lk])")):
            attend(query, key, key, padding=torch.ones(2, 5, dtype=torch.bool, device=device))
        with pytest.raises(ValueError, match=re.escape("packed has shape [2, 5], expected [2, 5] ([B, L], where Lq = Lk = L)")):
            attend(query, key, key, packed=torch.zeros(2, 5, dtype=torch.int64, device=device))


class Block(torch.nn.Module):
    """Some of everything around attention."""

    def __init__(self, **options):
        super().__init__()
        self.linear = torch.nn.Linear(32, 96)
        self.options = options

    def forward(self, x):
        query, key, value = self.linear(x).unflatten(-1, (3, 4, 8)).unbind(-3)
        return own(*(part.transpose(1, 2) for part in (query, key, value)), **self.options).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("options", [{}, dict(is_causal=True, scale=0.3)], ids=str)
def test_compile(backend, options, tmp_path, monkeypatch):
    if backend == "inductor":
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
        try:
            torch.compile(lambda x: x + 1)(torch.ones(3))
        except Exception as error:
            pytest.skip(f"inductor has no compiler here: {error}")
    block, x = Block(**options), draw(2, 9, 32)
    compiled = torch.compile(block, fullgraph=True, backend=backend)
    expected, out = block(x), compiled(x)
    assert_close(out, expected)
    for one, other in zip(*(torch.autograd.grad(y.sum(), block.parameters()) for y in (out, expected)), strict=True):
        assert_close(one, other, spare=128)
    with torch.no_grad():
        longer = draw(2, 17, 32)
        assert_close(compiled(longer), block(longer))


def test_compiled_dropout_is_drawn_anew_and_follows_manual_seed():
    compiled = torch.compile(Block(dropout_p=0.5), fullgraph=True, backend="aot_eager")
    x = draw(2, 9, 32)
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(compiled(x))
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])
    assert not torch.equal(compiled(x), compiled(x))


def test_export():
    block, x = Block(is_causal=True).eval(), draw(2, 9, 32)
    length = torch.export.Dim("length", min=2, max=100)
    program = torch.export.export(block, (x,), dynamic_shapes={"x": {1: length}})
    assert any("headlight.attention" in str(node.target) for node in program.graph.nodes)
    for x in (x, draw(2, 17, 32)):
        assert torch.equal(program.module()(x), block(x))


def test_checkpointing_draws_the_same_numbers_again():
    x = draw(1, 2, 16, 8).requires_grad_()

    def call(x):
        return own(x, x, x, dropout_p=0.5)

    gradients = []
    for function in (call, lambda x: torch.utils.checkpoint.checkpoint(call, x, use_reentrant=False)):
        torch.manual_seed(7)
        gradients.append(torch.autograd.grad(function(x).square().sum(), x)[0])
    assert torch.equal(*gradients)


def test_long_calls_can_be_interrupted():
    query = torch.randn(1, 8, 1, 64).expand(1, 8, 60_000, 64)
    leaf = torch.randn(1, 512, 1024, 64).requires_grad_()
    assert seconds_until_interrupted(lambda: own(query, query, query)) < PATIENCE
    out = own(leaf, leaf, leaf)
    assert seconds_until_interrupted(lambda: [out.sum().backward(retain_graph=True) for _ in range(100)]) < PATIENCE


def test_headlight_alone_does_not_import_torch():
    program = "import sys, headlight; assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
