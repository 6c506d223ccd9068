"""Every option of attention against the formula in float64, on every instruction set of the machine."""

import numpy as np
import pytest

import formulas
import headlight as hl

OPTIONS = {
    "plain": {},
    "causal_top_left": dict(causal="top_left"),
    "causal_bottom_right": dict(causal="bottom_right"),
    "window": dict(window=(5, 3)),
    "window_left": dict(window=(4, None), causal="bottom_right"),
    "window_unbounded": dict(window=(-1, 2), align="bottom_right"),
    "chunk": dict(chunk=7),
    "chunk_causal": dict(chunk=8, causal="bottom_right"),
    "query_lengths": dict(query_lengths=[3, 19], key_lengths=[31, 7]),
    "lengths_causal": dict(query_lengths=np.array([3, 19]), key_lengths=(0, 30), causal="bottom_right"),
    "starts": dict(query_start=40, key_start=30, causal="top_left"),
    "starts_each": dict(query_start=[5, 29], key_start=np.array([0, 4]), causal="bottom_right", window=(9, None)),
    "scale": dict(scale=0.3),
    "softcap": dict(softcap=1.5),
    "alibi": dict(alibi=np.array([0.5, 0.25, 0.125, 0.0625], np.float32), causal="bottom_right"),
    "sinks": dict(sinks=np.array([0.5, -1.0, -np.inf, 3.0], np.float32)),
    "sinks_and_lengths": dict(sinks=np.ones(4, np.float32), query_lengths=[3, 19], key_lengths=[31, 7]),
}


@pytest.fixture
def operands(draw):
    return draw(2, 19, 4, 16), draw(2, 31, 2, 16), draw(2, 31, 2, 24)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_option(operands, engine, options):
    out, log_sum_exp, probabilities = hl.attention(
        *operands, **options, log_sum_exp=True, probabilities=True, engine=engine
    )
    expected = formulas.attention(*operands, **options)
    for result, formula in zip((out, log_sum_exp, probabilities), expected, strict=True):
        formulas.assert_close(result, formula)
        assert result.dtype == np.float32


@pytest.mark.parametrize("shape", [(2, 4, 19, 31), (1, 4, 19, 31), (2, 1, 1, 31), (19, 31), (31,), (4, 1, 31)])
@pytest.mark.parametrize("means", ["attend", "ignore"])
def test_mask_is_broadcast(operands, engine, rng, shape, means):
    mask = rng.random(shape) < 0.5
    options = dict(mask=mask, mask_means=means)
    formulas.assert_close(hl.attention(*operands, **options, engine=engine), formulas.attention(*operands, **options)[0])
    as_bytes = hl.attention(*operands, mask=mask.astype(np.uint8) * 3, mask_means=means, engine=engine)
    np.testing.assert_array_equal(as_bytes, hl.attention(*operands, **options, engine=engine))


@pytest.mark.parametrize("shape", [(2, 4, 19, 31), (1, 1, 19, 31), (19, 31), (4, 1, 31)])
def test_bias_is_broadcast(operands, engine, draw, shape):
    bias = draw(*shape)
    bias[..., 3] = -np.inf
    formulas.assert_close(
        hl.attention(*operands, bias=bias, engine=engine), formulas.attention(*operands, bias=bias)[0]
    )


def test_packed_sequences(operands, engine):
    query, key, value = (x[:1] for x in operands)
    out = hl.attention(
        query, key, value, query_offsets=[0, 4, 4, 19], key_offsets=[0, 9, 11, 31], causal="bottom_right", engine=engine
    )
    for rows, keys in [(slice(0, 4), slice(0, 9)), (slice(4, 19), slice(11, 31))]:
        expected = formulas.attention(query[:, rows], key[:, keys], value[:, keys], causal="bottom_right")[0]
        formulas.assert_close(out[:, rows], expected)


def test_some_rows_of_the_probabilities(operands, engine):
    out, rows = hl.attention(*operands, probabilities=[7, 0, 7], causal="bottom_right", engine=engine)
    expected = formulas.attention(*operands, causal="bottom_right")[2]
    formulas.assert_close(rows, expected[:, :, [7, 0, 7]])
    np.testing.assert_array_equal(out, hl.attention(*operands, causal="bottom_right", engine=engine))


def test_dropout_keeps_the_expectation_and_depends_on_the_seed(draw, engine):
    query, key = draw(1, 64, 2, 8), draw(1, 512, 2, 8)
    ones = np.ones((1, 512, 2, 8), np.float32)
    first, again, other = (
        hl.attention(query, key, ones, dropout=0.25, seed=seed, engine=engine) for seed in (1, 1, 2**64 - 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    # Each sum of about 512 weights of 1/512 has a deviation of some √(0.25 / 0.75 / 512) and more, for they are uneven.
    assert abs(first.mean() - 1) < 6 * np.sqrt(0.25 / 0.75 / 512) / np.sqrt(128) * 4


def test_booleans_may_be_of_numpy(operands):
    expected = hl.attention(*operands, log_sum_exp=True, probabilities=True)
    given = hl.attention(*operands, log_sum_exp=np.True_, probabilities=np.True_)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert isinstance(hl.attention(*operands, log_sum_exp=np.False_, probabilities=np.False_), np.ndarray)
    out, lse, _ = expected
    assert len(hl.attention_backward(*operands, out, lse, out, sinks=np.ones(4, np.float32), sinks_gradient=np.True_)) == 4


def test_out_is_written_and_returned(operands, engine):
    out = np.full((2, 19, 4, 24), np.nan, np.float32)
    assert hl.attention(*operands, out=out, engine=engine) is out
    np.testing.assert_array_equal(out, hl.attention(*operands, engine=engine))


@pytest.mark.parametrize(
    "options",
    [{}, dict(causal="bottom_right"), dict(softcap=2.0, scale=0.4), dict(window=(6, 2), key_lengths=[31, 12])],
    ids=["plain", "causal", "softcap", "window"],
)
def test_backward(operands, engine, draw, options):
    out_gradient = draw(2, 19, 4, 24)
    out, log_sum_exp = hl.attention(*operands, **options, log_sum_exp=True, engine=engine)
    gradients = hl.attention_backward(*operands, out, log_sum_exp, out_gradient, **options, engine=engine)
    expected = formulas.attention_backward(*operands, out_gradient, **options)[:3]
    assert len(gradients) == 3
    for gradient, formula in zip(gradients, expected, strict=True):
        formulas.assert_close(gradient, formula, spare=64)


@pytest.mark.parametrize("options", [{}, dict(causal="bottom_right", key_lengths=[31, 12])], ids=["plain", "lengths"])
def test_backward_of_a_sum_with_the_log_sum_exp_in_it(operands, engine, draw, options):
    out_gradient, lse_gradient = draw(2, 19, 4, 24), draw(4, 2, 19).swapaxes(0, 1)  # of any strides but the last
    forward = hl.attention(*operands, **options, log_sum_exp=True, engine=engine)
    gradients = hl.attention_backward(*operands, *forward, out_gradient, **options, lse_gradient=lse_gradient, engine=engine)
    expected = formulas.attention_backward(*operands, out_gradient, lse_gradient=lse_gradient, **options)[:3]
    for gradient, formula in zip(gradients, expected, strict=True):
        formulas.assert_close(gradient, formula, spare=64)
    with pytest.raises(ValueError, match=r"lse_gradient has shape \[2, 19, 4\], expected \[2, 4, 19\]"):
        hl.attention_backward(*operands, *forward, out_gradient, **options, lse_gradient=draw(2, 19, 4))
    with pytest.raises(TypeError, match="lse_gradient has numbers of type float64"):
        hl.attention_backward(*operands, *forward, out_gradient, lse_gradient=lse_gradient.astype(np.float64))


@pytest.mark.parametrize("options", [{}, dict(causal="bottom_right", key_lengths=[31, 12])], ids=["plain", "lengths"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_backward_over_16_bits(operands, engine, draw, kind, options):
    dtype = np.float16 if kind == "float16" else pytest.importorskip("ml_dtypes").bfloat16
    unit = 2.0**-11 if kind == "float16" else 2.0**-8
    query, key, value = (x.astype(dtype) for x in operands)
    out_gradient = draw(2, 19, 4, 24).astype(dtype)
    out, lse = hl.attention(query, key, value, **options, log_sum_exp=True, engine=engine)
    gradients = hl.attention_backward(query, key, value, out, lse=lse, out_gradient=out_gradient, **options, engine=engine)
    expected = formulas.attention_backward(query, key, value, out_gradient, **options)[:3]
    for gradient, formula in zip(gradients, expected, strict=True):
        assert gradient.dtype == dtype
        formulas.assert_close(gradient, formula, unit=unit, spare=6)


def test_gradients_are_of_the_types_of_operands(operands, draw):
    query, key, value = operands
    out_gradient = draw(2, 19, 4, 24)
    out, lse = hl.attention(query, key.astype(np.float16), value, log_sum_exp=True)
    by_query, by_key, by_value = hl.attention_backward(query, key.astype(np.float16), value, out, lse, out_gradient)
    assert by_query.dtype == by_value.dtype == np.float32 and by_key.dtype == np.float16
    # Widened operands have the same bits, rounded once.
    wide = hl.attention_backward(query, key.astype(np.float16).astype(np.float32), value, out, lse, out_gradient)
    np.testing.assert_array_equal(by_query, wide[0])
    np.testing.assert_array_equal(by_key, wide[1].astype(np.float16))


@pytest.mark.parametrize("shape", [(2, 4, 19, 31), (19, 31), (4, 1, 31)])
def test_gradient_of_a_bias_has_its_shape(operands, engine, draw, shape):
    bias, out_gradient = draw(*shape), draw(2, 19, 4, 24)
    out, log_sum_exp = hl.attention(*operands, bias=bias, log_sum_exp=True, engine=engine)
    gradients = hl.attention_backward(*operands, out, log_sum_exp, out_gradient, bias=bias, engine=engine)
    expected = formulas.attention_backward(*operands, out_gradient, bias=bias)[3]
    wide = (1,) * (4 - len(shape)) + shape
    summed = tuple(axis for axis in range(4) if wide[axis] != expected.shape[axis])
    assert len(gradients) == 4
    formulas.assert_close(gradients[3], expected.sum(summed, keepdims=True).reshape(shape), spare=64)
    alone = hl.attention_backward(*operands, out, log_sum_exp, out_gradient, bias=bias, bias_gradient=False, engine=engine)
    for one, other in zip(alone, gradients[:3], strict=True):
        np.testing.assert_array_equal(one, other)


def test_gradient_of_sinks(operands, engine, draw):
    sinks, out_gradient = draw(4), draw(2, 19, 4, 24)
    out, log_sum_exp = hl.attention(*operands, sinks=sinks, log_sum_exp=True, engine=engine)
    by_sinks = hl.attention_backward(
        *operands, out, log_sum_exp, out_gradient, sinks=sinks, sinks_gradient=True, engine=engine
    )[-1]
    delta = np.einsum("bihd,bihd->bhi", np.float64(out_gradient), np.float64(out))
    expected = -(np.exp(sinks[:, None] - np.float64(log_sum_exp)) * delta).sum((0, 2))
    formulas.assert_close(by_sinks, expected, spare=64)


def test_parts_over_different_keys_are_merged(operands, engine):
    query, key, value = operands
    parts = [
        hl.attention(query, key[:, keys], value[:, keys], log_sum_exp=True, engine=engine)
        for keys in (slice(0, 10), slice(10, 11), slice(11, 31))
    ]
    out, log_sum_exp = hl.merge_attention(parts, engine=engine)
    expected = formulas.attention(*operands)
    formulas.assert_close(out, expected[0])
    formulas.assert_close(log_sum_exp, expected[1])
    again = hl.merge_attention((part for part in parts), engine=engine)
    np.testing.assert_array_equal(out, again[0])


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_parts_of_16_bits_are_merged(operands, engine, kind):
    """With the bits of the widened parts, rounded once into the type of the first."""
    kind = np.float16 if kind == "float16" else pytest.importorskip("ml_dtypes").bfloat16
    query, key, value = operands
    parts = [
        hl.attention(query, key[:, keys], value[:, keys], log_sum_exp=True, engine=engine)
        for keys in (slice(0, 10), slice(10, 31))
    ]
    narrow = [(out.astype(kind), lse) for out, lse in parts]
    wide = hl.merge_attention([(out.astype(np.float32), lse) for out, lse in narrow], engine=engine)
    merged = hl.merge_attention(narrow, engine=engine)
    assert merged[0].dtype == kind and merged[1].dtype == np.float32
    np.testing.assert_array_equal(merged[0], wide[0].astype(kind))
    np.testing.assert_array_equal(merged[1], wide[1])
    # Of two types, each.
    mixed = hl.merge_attention([narrow[0], parts[1]], engine=engine)
    wide = hl.merge_attention([(narrow[0][0].astype(np.float32), parts[0][1]), parts[1]], engine=engine)
    np.testing.assert_array_equal(mixed[0], wide[0].astype(kind))
