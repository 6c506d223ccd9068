"""headlight.torch in programs that torch traces, compiles, exports and runs again."""

import re

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch_peer import assert_close, attend, draw, own, seeded  # noqa: E402, F401


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
