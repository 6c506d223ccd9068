"""The operator headlight::attention: log-sum-exp, weights, marks of padding and sequences, and their gradients."""

import re

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch_peer import assert_close, attend, draw, own, seeded  # noqa: E402, F401
import headlight as hl  # noqa: E402

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
