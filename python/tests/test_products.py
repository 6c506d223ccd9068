"""matmul() and pack() against NumPy in float64."""

import math

import numpy as np
import pytest

import formulas
import headlight as hl

ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("packed", [False, True])
def test_product_with_bias_and_activation(draw, engine, activation, packed):
    a, b, bias = draw(37, 29), draw(29, 41), draw(41)
    given = hl.pack(b, engine=engine) if packed else b
    c = hl.matmul(a, given, bias=bias, activation=activation, engine=engine)
    formulas.assert_close(c, ACTIVATIONS[activation](np.float64(a) @ np.float64(b) + bias))


@pytest.mark.parametrize("a_shape, b_shape", [((3, 5, 7), (3, 7, 9)), ((3, 5, 7), (7, 9)), ((5, 7), (3, 7, 9)), ((1, 5, 7), (3, 7, 9))])
def test_samples(draw, engine, a_shape, b_shape):
    a, b = draw(*a_shape), draw(*b_shape)
    c = hl.matmul(a, b, engine=engine)
    formulas.assert_close(c, np.float64(a) @ np.float64(b))
    if b.ndim == 2:
        np.testing.assert_array_equal(hl.matmul(a, hl.pack(b, engine=engine), engine=engine), c)
        apart = np.concatenate([a, a], axis=1)[:, :5]
        np.testing.assert_array_equal(hl.matmul(apart, hl.pack(b, engine=engine), engine=engine), c)


def test_transposes_are_read_where_they_lie(draw, engine):
    a, b = draw(29, 37), draw(41, 29)
    expected = np.float64(a.T) @ np.float64(b.T)
    for c in (hl.matmul(a.T, b.T, engine=engine), hl.matmul(a.T, hl.pack(b.T, engine=engine), engine=engine)):
        formulas.assert_close(c, expected)
    out = np.zeros((37, 50), np.float32)
    assert hl.matmul(a.T, b.T, out=out[:, 3:44], engine=engine).base is out
    formulas.assert_close(out[:, 3:44], expected)
    assert not out[:, :3].any() and not out[:, 44:].any()


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16", "int8", "int4"])
def test_precisions(draw, engine, precision):
    a, b = draw(5, 64), draw(64, 33)
    packed = hl.pack(b, precision=precision, engine=engine)
    assert packed.shape == (64, 33) and packed.precision == precision and packed.nbytes > 0
    c = np.float64(hl.matmul(a, packed, engine=engine))
    sizes = np.abs(np.float64(a)) @ np.abs(np.float64(b))
    if precision == "int8":  # half a step of each number: a row's of a, a column's of b
        low, high = np.minimum(a.min(1), 0), np.maximum(a.max(1), 0)
        step_a, step_b = (high - low)[:, None] / 255, np.abs(b).max(0)[None] / 127
        allowed = 0.51 * (step_a * (np.abs(b).sum(0) + 64 * step_b) + step_b * np.abs(a).sum(1)[:, None])
    elif precision == "int4":  # the same in groups of 32
        step_a = np.repeat(np.abs(a).reshape(5, 2, 32).max(2), 32, 1) / 127
        step_b = np.repeat(np.abs(b).reshape(2, 32, 33).max(1), 32, 0) / 7
        allowed = 0.51 * (step_a @ (np.abs(b) + step_b) + np.abs(a) @ step_b)
    else:
        allowed = sizes * {"float32": 2.0**-19, "bfloat16": 2.0**-7, "float16": 2.0**-11 + 2.0**-19}[precision]
    assert (np.abs(c - np.float64(a) @ np.float64(b)) <= allowed).all()


@pytest.mark.parametrize("precision", ["int2", "float64"])
def test_other_precisions_are_refused(draw, precision):
    with pytest.raises(ValueError, match=precision):
        hl.pack(draw(4, 4), precision=precision)


def test_samples_of_one_array_are_read_before_they_are_written(draw, engine):
    b = hl.pack(draw(8, 8), engine=engine)
    x = draw(4, 10, 8)
    expected = hl.matmul(x[:, :5].copy(), b, engine=engine)
    with pytest.raises(ValueError, match="out overlaps a"):
        hl.matmul(x[:3, :5], b, out=x[1:, :5], engine=engine)
    # Between the rows of A, where nothing is read, they may go.
    np.testing.assert_array_equal(hl.matmul(x[:, :5], b, out=x[:, 5:], engine=engine), expected)


def test_shapes_that_do_not_fit_are_named_as_they_were_given(draw):
    for a, b in [(draw(3, 4), draw(5, 6)), (draw(4, 3).T, draw(5, 6)), (draw(3, 4), hl.pack(draw(5, 6)))]:
        with pytest.raises(ValueError, match=r"matmul: a has shape \[3, 4\], expected a last axis of 5, as many as b"):
            hl.matmul(a, b)
    with pytest.raises(ValueError, match=r"matmul: a has shape \[2, 3, 4\], expected a last axis of 5"):
        hl.matmul(draw(2, 3, 4), draw(2, 5, 6))
