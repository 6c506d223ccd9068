"""Keys and values of int8 with a scale for each row and head."""

import numpy as np
import pytest

import headlight as hl

OPTIONS = {
    "plain": {},
    "causal": dict(causal="bottom_right", window=(9, None)),
    "lengths": dict(key_lengths=[31, 7], softcap=2.0),
    "dropout": dict(dropout=0.25, seed=3),
}


@pytest.fixture
def operands(draw):
    return draw(2, 19, 4, 16), draw(2, 31, 2, 16), draw(2, 31, 2, 24)


def widened(numbers, scales):
    return numbers.astype(np.float32) * scales[..., None]


def test_numbers_and_scales_are_those_of_the_formula(draw, engine):
    x = draw(2, 31, 3, 17)
    x[0, 3, 1], x[1, 4, 2, 5], x[1, 4, 1, 5] = 0, np.inf, np.nan
    for rows in (x, x.astype(np.float16)):
        numbers, scales = hl.quantize_rows(rows, engine=engine)
        assert numbers.dtype == np.int8 and scales.dtype == np.float32 and scales.shape == x.shape[:3]
        with np.errstate(invalid="ignore"):
            expected = np.maximum(np.abs(rows.astype(np.float32)).max(-1) / np.float32(127), np.float32(2.0**-126))
        bad = ~np.isfinite(expected)
        assert bad.sum() == 2 and np.isnan(scales[bad]).all() and not numbers[bad].any()
        np.testing.assert_array_equal(scales[~bad], expected[~bad])
        exact = np.rint(rows[~bad].astype(np.float32) * (1 / expected[~bad])[:, None])
        np.testing.assert_array_equal(numbers[~bad], exact)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_bits_are_those_of_the_widened_rows(operands, engine, options):
    query, key, value = operands
    (keys, of_keys), (values, of_values) = (hl.quantize_rows(x, engine=engine) for x in (key, value))
    options = dict(options, log_sum_exp=True, engine=engine)
    scales = dict(key_scales=of_keys, value_scales=of_values)
    expected = hl.attention(query, widened(keys, of_keys), widened(values, of_values), **options)
    for result, wide in zip(hl.attention(query, keys, values, **scales, **options), expected, strict=True):
        np.testing.assert_array_equal(result, wide)
    # One of the two alone, and one row, as in decoding.
    np.testing.assert_array_equal(
        hl.attention(query, keys, value, key_scales=of_keys, **options)[0],
        hl.attention(query, widened(keys, of_keys), value, **options)[0],
    )
    row = query[:, :1].astype(np.float16)
    np.testing.assert_array_equal(
        hl.attention(row, key, values, value_scales=of_values, **options)[0],
        hl.attention(row, key, widened(values, of_values), **options)[0],
    )


def test_rows_are_appended_to_a_cache(draw, engine):
    cache, scales = np.zeros((1, 40, 2, 16), np.int8), np.zeros((1, 40, 2), np.float32)
    new = draw(1, 3, 2, 16)
    numbers, of_rows = hl.quantize_rows(new, numbers=cache[:, 20:23], scales=scales[:, 20:23], engine=engine)
    assert numbers.base is cache and of_rows.base is scales
    for part, whole in zip((cache[:, 20:23], scales[:, 20:23]), hl.quantize_rows(new, engine=engine), strict=True):
        np.testing.assert_array_equal(part, whole)
    assert not cache[:, :20].any() and not cache[:, 23:].any()


def test_long_calls_are_cut_with_the_same_bits(rng):
    query, key, value = (rng.standard_normal((2, length, 4, 32), dtype=np.float32) for length in (1500, 1700, 1700))
    (keys, of_keys), (values, of_values) = hl.quantize_rows(key[:, :, :2]), hl.quantize_rows(value[:, :, 2:])
    scales = dict(key_scales=of_keys, value_scales=of_values)
    options = dict(causal="bottom_right", key_lengths=[1700, 900])
    out = hl.attention(query, keys, values, **scales, **options)
    np.testing.assert_array_equal(out, hl.attention(query, keys, values, **scales, **options, probabilities=[0])[0])
    np.testing.assert_array_equal(out, hl.attention(query, widened(keys, of_keys), widened(values, of_values), **options))


def test_numbers_may_not_lie_in_what_they_are_made_of():
    x = np.zeros((3, 14, 1, 128), np.float32)
    with pytest.raises(ValueError, match="overlaps"):
        hl.quantize_rows(x, numbers=x.view(np.int8)[..., :128])


def test_tensors_give_tensors():
    torch = pytest.importorskip("torch")
    x = torch.randn(1, 20, 2, 8)
    numbers, scales = hl.quantize_rows(x)
    assert numbers.dtype == torch.int8 and scales.dtype == torch.float32
    out = hl.attention(x, numbers, numbers, key_scales=scales, value_scales=scales)
    np.testing.assert_array_equal(out.numpy(), hl.attention(x.numpy(), *[numbers.numpy()] * 2, key_scales=scales, value_scales=scales))
