"""Arrays of every kind, read and written where they lie."""

import array
import gc
import weakref

import numpy as np
import pytest

import formulas
from layouts import OnlyDLPack, SHAPE, heads_first, read_only
import headlight as hl


def columns(x):
    wide = np.full((*x.shape[:3], 40), np.nan, np.float32)
    wide[..., 7:23] = x
    return wide[..., 7:23]


def every_third(x):
    wide = np.full((x.shape[0], 3 * x.shape[1], *x.shape[2:]), np.nan, np.float32)
    wide[:, ::3] = x
    return wide[:, ::3]


def subclass(x):
    return x.copy().view(type("Own", (np.ndarray,), {}))


@pytest.mark.parametrize("lay", [heads_first, columns, every_third, read_only, memoryview, subclass])
def test_memory_is_read_where_it_lies(operands, expected, lay):
    result = hl.attention(*(lay(x) for x in operands))
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("lay", [heads_first, columns, every_third])
def test_results_go_where_out_lies(operands, expected, lay):
    out = lay(np.zeros(SHAPE, np.float32))
    assert hl.attention(*operands, out=out) is out
    np.testing.assert_array_equal(out, expected)
    around = out.base if out.base is not None else out
    assert around.size == out.size or np.isnan(around).sum() == around.size - out.size


def test_broadcast_inputs(draw):
    query, key = draw(2, 5, 4, 16), draw(1, 9, 1, 16)
    wide = np.broadcast_to(key, (2, 9, 2, 16))
    assert wide.strides[0] == 0 and wide.strides[2] == 0
    np.testing.assert_array_equal(hl.attention(query, wide, wide), hl.attention(query, wide.copy(), wide.copy()))
    mask = np.broadcast_to(np.arange(9) < 4, (2, 1, 5, 9))
    np.testing.assert_array_equal(
        hl.attention(query, wide, wide, mask=mask, mask_means="attend"), hl.attention(query, wide[:, :4], wide[:, :4])
    )


def test_memory_mapped_files(operands, expected, tmp_path):
    mapped = []
    for number, x in enumerate(operands):
        np.save(tmp_path / f"{number}.npy", x)
        mapped.append(np.load(tmp_path / f"{number}.npy", mmap_mode="r"))
    out = np.lib.format.open_memmap(tmp_path / "out.npy", mode="w+", dtype=np.float32, shape=SHAPE)
    assert hl.attention(*mapped, out=out) is out
    out.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_other_buffers(operands, expected):
    flat = [memoryview(array.array("f", x.ravel())).cast("B").cast("f", SHAPE) for x in operands]
    np.testing.assert_array_equal(hl.attention(*flat), expected)


def test_without_elements(draw):
    none = draw(2, 0, 4, 16)
    some = draw(2, 3, 4, 16)
    assert hl.attention(none, some, some).shape == (2, 0, 4, 16)
    out, lse = hl.attention(some, none, none, log_sum_exp=True)
    assert not out.any() and (lse == -np.inf).all()
    assert hl.matmul(draw(0, 3), draw(3, 4)).shape == (0, 4)
    assert not hl.matmul(draw(2, 0), draw(0, 4)).any()
    assert hl.matmul(draw(0, 2, 3), draw(3, 4)).shape == (0, 2, 4)
    assert hl.matmul(draw(2, 3), draw(0, 3, 4)).shape == (0, 2, 4)
    assert hl.matmul(draw(0, 2, 3), draw(1, 3, 4)).shape == (0, 2, 4)
    with pytest.raises(ValueError):
        hl.matmul(draw(0, 2, 3), draw(2, 3, 4))


@pytest.mark.parametrize("newer", [False, True])
def test_dlpack(operands, expected, newer):
    given = [OnlyDLPack(x, newer) for x in operands]
    result = hl.attention(*given)
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, expected)
    out = OnlyDLPack(np.zeros(SHAPE, np.float32), newer)
    assert hl.attention(*given, out=out) is out
    np.testing.assert_array_equal(out.x, expected)


def test_subclass_that_lies_about_its_type(draw):
    class Liar(np.ndarray):
        dtype = np.dtype("float32")

    small = np.zeros((1, 4, 2, 8), np.uint8).view(Liar)
    with pytest.raises(TypeError, match="query has numbers of type"):
        hl.attention(small, small, small)


def test_read_only_out_is_refused(operands):
    for out in (read_only(np.zeros(SHAPE, np.float32)), OnlyDLPack(read_only(np.zeros(SHAPE, np.float32)), True)):
        with pytest.raises(TypeError, match="out is read-only"):
            hl.attention(*operands, out=out)


def test_owners_live_as_long_as_results_need_them(operands):
    """Results own their memory, and a call holds on to nothing."""
    query, key, value = (x.copy() for x in operands)
    watched = [weakref.ref(x) for x in (query, key, value)]
    out, lse, p = hl.attention(query, key, value, log_sum_exp=True, probabilities=True)
    kept = [x.copy() for x in (out, lse, p)]
    del query, key, value
    gc.collect()
    assert all(ref() is None for ref in watched)
    for result, copy in zip((out, lse, p), kept, strict=True):
        np.testing.assert_array_equal(result, copy)
    result = np.zeros(SHAPE, np.float32)
    assert hl.attention(*operands, out=result) is result


def test_array_cannot_be_freed_while_a_call_reads_it(operands, expected):
    """Whoever wants to give up a buffer in the middle of a call is refused, for the call holds it."""
    key = memoryview(operands[1].copy())
    refused = []

    class GivesUp:
        """An integer that is asked for its value when the arrays have been read."""

        def __index__(self):
            with pytest.raises(BufferError):
                key.release()
            refused.append(True)
            return 9

    result = hl.attention(operands[0], key, operands[2], key_lengths=[GivesUp(), 9])
    assert refused
    np.testing.assert_array_equal(result, expected)
    key.release()


# Numbers of 16 bits.


def rounded(x, kind):
    """x as the kind keeps it: an array, and the same numbers in float32."""
    if kind == "float16":
        return x.astype(np.float16), x.astype(np.float16).astype(np.float32)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    return x.astype(ml_dtypes.bfloat16), x.astype(ml_dtypes.bfloat16).astype(np.float32)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("lay", [np.ascontiguousarray, heads_first, read_only])
def test_sixteen_bits(operands, engine, kind, lay):
    narrow, wide = zip(*(rounded(x, kind) for x in operands), strict=True)
    out, lse = hl.attention(*(lay(x) for x in narrow), log_sum_exp=True, engine=engine)
    assert out.dtype == narrow[0].dtype and lse.dtype == np.float32
    # A rounding of the weights, where pairs are multiplied, and one of the result.
    formula = formulas.attention(*wide)
    formulas.assert_close(out.astype(np.float64), formula[0], unit={"float16": 2.0**-11, "bfloat16": 2.0**-8}[kind], spare=2)
    formulas.assert_close(lse, formula[1])
    if kind == "float16":
        np.testing.assert_array_equal(out, hl.attention(*wide, engine=engine).astype(np.float16))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_types_may_differ(operands, kind):
    query, key, value = operands
    narrow, wide = rounded(key, kind)
    out = np.zeros(SHAPE, np.float32)
    hl.attention(query, narrow, value, out=out)
    np.testing.assert_array_equal(out, hl.attention(query, wide, value))
    assert hl.attention(narrow, key, value).dtype == narrow.dtype


def test_products_of_bfloat16(draw):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = draw(7, 24).astype(ml_dtypes.bfloat16), hl.pack(draw(24, 9), "bfloat16")
    out = np.zeros((7, 9), np.float32)
    hl.matmul(a, b, out=out)
    np.testing.assert_array_equal(out, hl.matmul(a.astype(np.float32), b))
    np.testing.assert_array_equal(hl.matmul(a, b), out.astype(ml_dtypes.bfloat16))
    with pytest.raises(TypeError, match="bfloat16"):
        hl.matmul(a, draw(24, 9))
