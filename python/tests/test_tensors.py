"""Tensors of PyTorch: what they give, and which cannot be read."""

import array
import pathlib

import numpy as np
import pytest

import formulas
from layouts import OnlyDLPack
import headlight as hl


def test_tensors_without_the_table_of_functions(operands, expected, torch):
    """Owners whose type shows no table, or one of another version, are asked by their method."""

    class Plain:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **given):
            return self.x.__dlpack__(**given)

    class Future(Plain):
        __dlpack_c_exchange_api__ = 3

    for kind in (Plain, Future):
        np.testing.assert_array_equal(hl.attention(*(kind(torch.from_numpy(x)) for x in operands)), expected)


def test_negated_views_of_pytorch_are_refused(operands, torch):
    query, key, value = (torch.from_numpy(x) for x in operands)
    negated = torch._neg_view(query)
    with pytest.raises(TypeError, match="attention: query"):
        hl.attention(negated, key, value)
    np.testing.assert_array_equal(
        hl.attention(negated.resolve_neg(), key, value).numpy(), hl.attention(-query, key, value).numpy()
    )


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
def test_tensors_give_tensors(operands, expected, torch, kind):
    tensors = [torch.from_numpy(x).to(getattr(torch, kind)) for x in operands]
    out, lse, p = hl.attention(*tensors, log_sum_exp=True, probabilities=True)
    assert isinstance(out, torch.Tensor) and out.dtype == tensors[0].dtype and lse.dtype == p.dtype == torch.float32
    if kind == "float32":
        np.testing.assert_array_equal(out.numpy(), expected)
    else:
        peer = torch.nn.functional.scaled_dot_product_attention(*(x.double().transpose(1, 2) for x in tensors))
        formulas.assert_close(out.double(), peer.transpose(1, 2), unit={"float16": 2.0**-11, "bfloat16": 2.0**-8}[kind], spare=2)
    given = torch.zeros_like(tensors[0])
    assert hl.attention(*tensors, out=given) is given
    assert torch.equal(given, out)
    heads_first = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors]
    assert torch.equal(hl.attention(*heads_first), out)


def test_kinds_may_be_mixed(operands, expected, torch):
    query, key, value = operands
    assert isinstance(hl.attention(torch.from_numpy(query), key, value), torch.Tensor)
    result = hl.attention(query, torch.from_numpy(key), value)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, expected)


def test_gradients_of_tensors_are_pytorchs(operands, torch):
    tensors = [torch.from_numpy(x).double().requires_grad_() for x in operands]
    out = torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in tensors)).transpose(1, 2)
    out.sum().backward()
    given = [torch.from_numpy(x) for x in operands]
    own, lse = hl.attention(*given, log_sum_exp=True)
    for result, tensor in zip(hl.attention_backward(*given, own, lse, torch.ones_like(own)), tensors, strict=True):
        assert isinstance(result, torch.Tensor)
        formulas.assert_close(result, tensor.grad, spare=64)


UNREADABLE = {
    "gradients": (lambda torch, x: x.clone().requires_grad_(), "requires gradients, expected a tensor that does not (tensor.detach())"),
    "meta": (lambda torch, x: x.to("meta"), "is on the device meta, expected the CPU"),
    "sparse": (lambda torch, x: x.to_sparse(), "has the layout torch.sparse_coo, expected torch.strided (tensor.to_dense())"),
    "mkldnn": (lambda torch, x: x.to_mkldnn(), "has the layout torch._mkldnn, expected torch.strided (tensor.to_dense())"),
    "nested": (lambda torch, x: torch.nested.nested_tensor(list(x)), "is a nested tensor, expected a dense one (torch.nested.to_padded_tensor)"),
    "jagged": (
        lambda torch, x: torch.nested.nested_tensor(list(x), layout=torch.jagged),
        "is a nested tensor, expected a dense one (torch.nested.to_padded_tensor)",
    ),
    "quantized": (
        lambda torch, x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        "is quantized (torch.qint8), expected plain numbers (tensor.dequantize())",
    ),
    "negated": (lambda torch, x: torch._neg_view(x), "is a negated view, expected the numbers themselves (tensor.resolve_neg())"),
    "conjugate": (
        lambda torch, x: torch.view_as_complex(x.unflatten(-1, (8, 2))).conj(),
        "has numbers of type complex64, expected float32, bfloat16 or float16",
    ),
    "double": (lambda torch, x: x.double(), "has numbers of type float64, expected float32, bfloat16 or float16"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:.*quantize", "ignore:Sparse")
@pytest.mark.parametrize("kind", UNREADABLE)
def test_tensors_that_cannot_be_read(operands, torch, kind):
    """One sentence of ours, and none of where in PyTorch it went wrong."""
    make, said = UNREADABLE[kind]
    query, key, value = (torch.from_numpy(x) for x in operands)
    bad = make(torch, query)
    for argument, call in (("query", lambda: hl.attention(bad, key, value)), ("out", lambda: hl.attention(query, key, value, out=bad))):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == f"attention: {argument} {said}"


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_lists_and_numbers_that_cannot_be_read(operands, torch):
    for bad, said in (
        (torch.tensor([9, 9], device="meta"), "is on the device meta, expected the CPU"),
        (torch.tensor([9, 9]).to_sparse(), "has the layout torch.sparse_coo"),
        (torch.nested.nested_tensor([torch.tensor([9, 9])]), "is a nested tensor"),
    ):
        for argument in ("query_lengths", "key_offsets", "query_start", "probabilities"):
            with pytest.raises(TypeError) as caught:
                hl.attention(*operands, **{argument: bad})
            assert str(caught.value).startswith(f"attention: {argument} {said}") and "\n" not in str(caught.value)
    for argument in ("key_start", "chunk", "scale", "softcap", "dropout", "seed"):
        with pytest.raises(TypeError) as caught:
            hl.attention(*operands, **{argument: torch.tensor(1, device="meta")})
        assert str(caught.value) == f"attention: {argument} is on the device meta, expected the CPU"


def list_kinds(torch):
    """What makes a list of integers of one kind or another."""
    yield from (list, tuple, lambda numbers: range(numbers[0], numbers[-1] + 1, numbers[-1] - numbers[0]), iter)
    yield lambda numbers: array.array("i", numbers)
    yield lambda numbers: memoryview(array.array("q", numbers))
    yield lambda numbers: np.repeat(numbers, 3)[::3]
    yield lambda numbers: np.array(numbers[::-1])[::-1]
    yield lambda numbers: np.array(numbers, object)
    yield lambda numbers: np.array(numbers, ">i4")
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        yield lambda numbers, kind=kind: np.array(numbers, kind)
        if torch is not None:
            yield lambda numbers, kind=kind: torch.tensor(numbers, dtype=getattr(torch, kind))
    if torch is not None:
        yield lambda numbers: torch.tensor(numbers).repeat_interleave(2)[::2]
        yield lambda numbers: OnlyDLPack(torch.tensor(numbers), True)


def check_lists(operands, torch):
    query, key, value = operands
    one = [x[:1] for x in operands]
    out, lse = hl.attention(*operands, causal="top_left", log_sum_exp=True)
    calls = [
        (lambda given: hl.attention(*operands, query_lengths=given), [5, 9]),
        (lambda given: hl.attention(*operands, key_lengths=given), [5, 9]),
        (lambda given: hl.attention(*operands, causal="top_left", query_start=given), [3, 7]),
        (lambda given: hl.attention(*operands, causal="top_left", query_start=[7, 9], key_start=given), [2, 5]),
        (lambda given: hl.attention(*one, query_offsets=given, key_offsets=[0, 9]), [0, 9]),
        (lambda given: hl.attention(*one, query_offsets=[0, 9], key_offsets=given), [0, 9]),
        (lambda given: hl.attention(*operands, probabilities=given)[1], [2, 8]),
        (lambda given: hl.attention_backward(*operands, out, lse, query, causal="top_left", key_lengths=given)[0], [9, 4]),
        (lambda given: hl.attention_backward(*operands, out, lse, query, causal="top_left", query_start=given)[1], [0, 3]),
    ]
    for call, numbers in calls:
        expected = call(numbers)
        for make in list_kinds(torch):
            if numbers[0] < numbers[1] or make is list:
                np.testing.assert_array_equal(call(make(numbers)), expected)
    for name in ("query_start", "key_start"):
        expected = hl.attention(*operands, causal="top_left", **{name: 3})
        for number in (np.int64(3), np.array(3), *([torch.tensor(3), torch.tensor(3, dtype=torch.uint8)] if torch else [])):
            np.testing.assert_array_equal(hl.attention(*operands, causal="top_left", **{name: number}), expected)


def test_lists_are_any_arrays_of_integers(operands):
    check_lists(operands, None)
    for bad, error, said in (
        (np.array([5.0, 9.0]), TypeError, "key_lengths has numbers of type float64, expected integers"),
        (np.array([True, False]), TypeError, "key_lengths has numbers of type bool, expected integers"),
        (np.array([[5, 9]]), ValueError, "key_lengths has shape [1, 2], expected 1 axis"),
        (np.array(5), ValueError, "key_lengths has shape [], expected 1 axis"),
        (np.array([5, 2**64 - 1], np.uint64), ValueError, "key_lengths[1] is 18446744073709551615, expected an integer of 64 bits"),
    ):
        with pytest.raises(error) as caught:
            hl.attention(*operands, key_lengths=bad)
        assert str(caught.value) == f"attention: {said}"


def test_lists_are_any_tensors_of_integers(operands, torch):
    check_lists(operands, torch)
    model = hl.load(pathlib.Path(__file__).parents[2] / "models" / "demonstration")
    ids = model.tokenize("the animal")
    assert model.decode(torch.tensor(ids)) == model.decode(np.array(ids, np.int32)) == model.decode(ids)


def test_results_of_other_functions_are_tensors(draw, torch):
    a, b = torch.from_numpy(draw(3, 4)), torch.from_numpy(draw(4, 5))
    c = hl.matmul(a, b)
    assert isinstance(c, torch.Tensor)
    np.testing.assert_array_equal(c.numpy(), hl.matmul(a.numpy(), b.numpy()))
    q = torch.from_numpy(draw(1, 3, 2, 8))
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        out, lse = hl.attention(*[q.to(kind)] * 3, log_sum_exp=True)
        merged = hl.merge_attention([(out, lse)])
        assert all(isinstance(x, torch.Tensor) for x in merged) and merged[0].dtype == kind
        assert torch.equal(merged[0], out) and torch.equal(merged[1], lse)
