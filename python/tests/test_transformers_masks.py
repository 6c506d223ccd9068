"""Masks of Transformers as headlight.transformers reads them: packed sequences, windows, intervals."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from transformers_models import (  # noqa: E402, F401
    DECODERS,
    NEW,
    ROWS,
    SEVERAL,
    assert_close,
    assert_gradients_are_close,
    both,
    ids,
    positions_of,
    seen,
)
import headlight.transformers  # noqa: E402
from headlight.transformers import _attention, _masks  # noqa: E402


@pytest.mark.parametrize("make", [DECODERS["llama"], DECODERS["mistral"], DECODERS["qwen3"]], ids=["llama", "mistral", "qwen3"])
def test_packed_sequences(make, seen):
    """Three texts in one row, told apart by positions alone, are three texts."""
    eager, own = both(make(), transformers.AutoModelForCausalLM)
    lengths = [7, 1, 10]
    positions = torch.cat([torch.arange(length) for length in lengths])[None]
    given = dict(input_ids=ids(1, 18), position_ids=positions, use_cache=False)
    out = own(**given).logits
    assert_close(out, eager(**given).logits, spare=512)
    for options in seen:
        assert options.mask is None and options.query_offsets.tolist() == [0, 7, 8, 18]
    apart = [own(input_ids=part, use_cache=False).logits for part in ids(1, 18).split(lengths, dim=1)]
    assert_close(out, torch.cat(apart, dim=1), spare=512)


@pytest.fixture
def told(monkeypatch):
    """What the engine was told in each call, forward and backward."""
    from headlight.torch import _operator

    calls = []
    for name in ("attention", "attention_backward"):
        call = getattr(headlight, name)
        monkeypatch.setattr(_operator, name, lambda *given, call=call, **options: calls.append(options) or call(*given, **options))
    return calls


@pytest.mark.parametrize("rows", SEVERAL.values(), ids=SEVERAL.keys())
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "llama4"])
def test_packed_sequences_in_several_rows(name, rows, told):
    """To the engine they are one long row of sequences; that of a row alone are no others, and train as well."""
    eager, own = both(DECODERS[name](), transformers.AutoModelForCausalLM)
    given = dict(input_ids=ids(len(rows), 18), position_ids=positions_of(rows), use_cache=False)
    outs = [model(**given).logits for model in (own, eager)]
    assert_close(*outs, spare=512)
    assert len(told) == 3
    offsets = [0] + torch.tensor(sum(rows, [])).cumsum(0).tolist()
    for options in told:
        assert "mask" not in options and "bias" not in options and options["query_offsets"] == offsets
    for model, out in zip((own, eager), outs, strict=True):
        out.square().mean().backward()
    assert_gradients_are_close(eager, own)
    assert len(told) == 6 and not any("mask" in options for options in told)
    for row, lengths in enumerate(rows):
        alone = own(input_ids=given["input_ids"][row : row + 1], position_ids=given["position_ids"][row : row + 1], use_cache=False)
        assert_close(outs[0][row], alone.logits[0], spare=512)


def test_packed_sequences_take_no_memory_of_their_square():
    """What a mask of all rows by all keys would take alone is more than the call may."""
    resource = pytest.importorskip("resource")
    _, own = both(DECODERS["llama4"](), transformers.AutoModel)
    rows = [[3000, 5000], [8000]]
    own(input_ids=ids(2, 16), position_ids=positions_of([[8, 8], [16]]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with torch.no_grad():
        own(input_ids=ids(2, 8000), position_ids=positions_of(rows), use_cache=False)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 2 * 8000 * 8000


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("chunk", [0, 3])
def test_weights_of_packed_sequences_in_several_rows(dropout, chunk):
    """Those who show weights see a mask: the same weights and gradients as of each row by itself."""
    generator = torch.Generator().manual_seed(1)
    packed = torch.tensor([[0, 0, 0, 1, 1, 2], [0, 1, 1, 1, 1, 1]])
    places = positions_of([[3, 2, 1], [1, 5]]) + 1
    operands = [torch.randn(2, 4, 6, 8, generator=generator, requires_grad=True) for _ in range(3)]
    options = dict(causal="top_left", chunk=chunk, dropout=dropout, seed=torch.tensor(5))
    start = places if chunk else None
    out, _, weights = torch.ops.headlight.attention(*operands, packed=packed, query_start=start, **options, weights=True)
    apart = (packed[:, :, None] == packed[:, None, :]) & torch.ones(6, 6).tril().bool()
    if chunk:
        apart &= (places // 3)[:, :, None] == (places // 3)[:, None, :]
    same, _, expected = torch.ops.headlight.attention(
        *operands, mask=apart[:, None], dropout=dropout, seed=options["seed"], weights=True
    )
    assert_close(weights, expected, spare=64)
    assert_close(out, same, spare=64)
    gradients = [torch.autograd.grad((result * torch.arange(8)).sum(), operands) for result in (out, same)]
    for ours, theirs in zip(*gradients, strict=True):
        assert_close(ours, theirs, spare=512)
    if not dropout:
        alone = torch.ops.headlight.attention(*operands, packed=packed, query_start=start, **options)[0]
        assert_close(alone, same, spare=64)


def test_masks_of_the_callers_own(seen):
    eager, own = both(DECODERS["llama"](), transformers.AutoModelForCausalLM)
    allowed = torch.rand(3, 1, ROWS, ROWS, generator=torch.Generator().manual_seed(1)) > 0.4
    allowed |= torch.eye(ROWS, dtype=torch.bool)
    added = torch.where(allowed, 0.0, torch.finfo(torch.float32).min)
    expected = eager(input_ids=ids(), attention_mask=added, use_cache=False).logits
    for mask in (allowed, added):
        assert_close(own(input_ids=ids(), attention_mask=mask, use_cache=False).logits, expected, spare=512)
    assert seen[0].mask is not None and seen[-1].bias is not None


@pytest.mark.parametrize("rows", [1, 3])
def test_a_window_without_a_mask(rows):
    """A single row behind a cache, too, sees its window and no more."""
    query, key = torch.randn(1, 2, rows, 8), torch.randn(1, 2, 10, 8)
    module = torch.nn.Module()
    distance = torch.arange(10 - rows, 10)[:, None] - torch.arange(10)
    for window in (4, None):
        allowed = (distance >= 0) & (distance < (window or 10))
        out = _attention.attention(module, query, key, key, None, sliding_window=window)[0].transpose(1, 2)
        wide = torch.nn.functional.scaled_dot_product_attention(query.double(), key.double(), key.double(), attn_mask=allowed)
        assert_close(out, wide, spare=32)


def mask_functions():
    from transformers import masking_utils as masks

    yield "causal", masks.causal_mask_function, True
    yield "sliding", masks.sliding_window_causal_mask_function(3), True
    yield "chunks", masks.chunked_causal_mask_function(4, torch.zeros(2, dtype=torch.int64)), True
    yield "chunks_behind_padding", masks.chunked_causal_mask_function(4, torch.tensor([0, 2])), True
    yield "or", masks.or_masks(masks.causal_mask_function, masks.sliding_window_overlay(2)), False
    yield "unknown", masks.and_masks(lambda batch, head, row, key: (row - key) % 2 == 0, masks.causal_mask_function), False
    if NEW:
        yield "everything", masks.bidirectional_mask_function, True
        yield "sliding_both_ways", masks.sliding_window_bidirectional_mask_function(2), True


KEY_PADDING = {
    "none": None,
    "behind": torch.arange(9) < torch.tensor([[9], [5]]),
    "in_front": torch.arange(9) >= torch.tensor([[0], [2]]),
    "between": torch.arange(9) != torch.tensor([[9], [4]]),
    "shorter": torch.ones(2, 7, dtype=torch.bool),
}


@pytest.mark.parametrize("padding", KEY_PADDING.values(), ids=KEY_PADDING.keys())
@pytest.mark.parametrize("name, function, known", [pytest.param(*one, id=one[0]) for one in mask_functions()])
@pytest.mark.parametrize("rows, row_start, keys, key_start", [(9, 0, 9, 0), (4, 5, 9, 0), (1, 8, 9, 0), (4, 3, 9, 0), (3, 6, 6, 3)])
def test_intervals_hide_what_the_mask_hides(padding, name, function, known, rows, row_start, keys, key_start):
    if padding is not None and padding.shape[1] < 9 and key_start:
        pytest.skip("a mask that is shorter than the cache comes with a cache that begins at 0")
    place = dict(q_length=rows, q_offset=row_start) if NEW else dict(cache_position=torch.arange(row_start, row_start + rows))
    given = dict(batch_size=2, kv_length=keys, kv_offset=key_start, mask_function=function, attention_mask=padding, **place)
    if not NEW or name == "unknown":
        given["use_vmap"] = True
    mask = _masks.make_mask(**given)
    assert isinstance(mask, _masks.IntervalMask)
    if known:
        assert mask.options.mask is None or mask.options.mask.shape == (2, 1, 1, keys)
    expected = transformers.masking_utils.sdpa_mask(**given, allow_is_causal_skip=False).expand(2, 1, rows, keys)
    query, key = torch.zeros(2, 1, rows, 8), torch.zeros(2, 1, keys, 8)
    seen = _attention.attend_with_weights(query, key, key, mask.options, True)[1] > 0
    assert torch.equal(seen, expected)
    # To whoever looks it is what "eager" makes.
    assert mask.shape == (2, 1, rows, keys) and mask.dtype == torch.float32
    assert torch.equal(mask == 0, expected) and torch.equal(torch.zeros(1) + mask, torch.where(expected, 0, torch.finfo(torch.float32).min))
    assert "IntervalMask" in repr(mask)
