"""headlight.torch where tensors are not plain memory of the CPU, and what is said of calls that cannot be."""

import re

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch_peer import attend, draw, own, seeded  # noqa: E402, F401
import headlight as hl  # noqa: E402
import headlight.torch as hl_torch  # noqa: E402


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
