"""What the tests of headlight.torch share: random tensors, and what torch makes of them in float64."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import formulas  # noqa: E402
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
