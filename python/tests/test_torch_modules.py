"""headlight.torch's modules beside those of torch.nn whose state they load: torch in float64 is what is compared with."""

import copy
import itertools
import re

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import formulas  # noqa: E402
import headlight.torch as hl_torch  # noqa: E402

BATCH, ROWS, KEYS, WIDTH, HEADS = 3, 7, 9, 32, 4


@pytest.fixture(autouse=True)
def seeded(request):
    torch.manual_seed(sum(request.node.name.encode()))


def assert_close(result, expected, spare=96.0):
    formulas.assert_close(result.detach().double(), expected.detach().double(), spare=spare)


def pair(own_class, theirs_class, *arguments, **options):
    """One of ours in float32 and one of torch's in float64, with the same parameters, none of them zero."""
    theirs = theirs_class(*arguments, **options)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    own = own_class(*arguments, **options)
    assert own.load_state_dict(theirs.state_dict()).missing_keys == []
    theirs.load_state_dict(own.state_dict())
    return own, theirs.double()


def compare(own, theirs, inputs, *, check_weights=False, **options):
    """Outputs, weights, and the gradients of inputs and parameters."""
    wide_options = {name: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for name, x in options.items()}
    narrow = [x.clone().requires_grad_() for x in inputs]
    wide = [x.double().requires_grad_() for x in inputs]
    if len(inputs) == 1 and isinstance(own, torch.nn.MultiheadAttention):
        narrow, wide = narrow * 3, wide * 3
    out, expected = own(*narrow, **options), theirs(*wide, **wide_options)
    if isinstance(out, torch.Tensor):
        out, expected = (out,), (expected,)
    assert (out[-1] is None) == (expected[-1] is None)
    shown = [x for x in out if x is not None]
    exact = [x for x in expected if x is not None]
    for one, other in zip(shown, exact, strict=True):
        assert one.shape == other.shape
        assert_close(one, other)
    by_outs = [torch.randn_like(x) for x in (shown if check_weights else shown[:1])]
    leaves = [x for x in own.parameters()] + list({id(x): x for x in narrow}.values())
    wide_leaves = [x for x in theirs.parameters()] + list({id(x): x for x in wide}.values())
    found = torch.autograd.grad(shown[: len(by_outs)], leaves, by_outs)
    formula = torch.autograd.grad(exact[: len(by_outs)], wide_leaves, [x.double() for x in by_outs])
    for one, other in zip(found, formula, strict=True):
        assert_close(one, other)


def drawn(batch_first, *lengths, width=WIDTH):
    return [torch.randn(*((BATCH, length) if batch_first else (length, BATCH)), width) for length in lengths]


PADDINGS = {
    "none": None,
    "right": torch.arange(KEYS) >= torch.tensor([[9], [4], [6]]),
    "left": torch.arange(KEYS) < torch.tensor([[0], [2], [1]]),
    "float": torch.linspace(-1, 1, BATCH * KEYS).reshape(BATCH, KEYS),
}
MASKS = {
    "none": None,
    "bool": torch.ones(ROWS, KEYS).triu(3).bool(),
    "float": torch.linspace(-2, 1, ROWS * KEYS).reshape(ROWS, KEYS),
    "each_head": torch.arange(BATCH * HEADS * ROWS * KEYS).reshape(BATCH * HEADS, ROWS, KEYS) % 7 == 1,
}


@pytest.mark.parametrize("padding, mask", list(itertools.product(PADDINGS, MASKS)))
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.filterwarnings("ignore:Support for mismatched")
def test_multi_head_attention(padding, mask, need_weights):
    own, theirs = pair(hl_torch.MultiheadAttention, torch.nn.MultiheadAttention, WIDTH, HEADS, batch_first=True)
    query, key, value = drawn(True, ROWS, KEYS, KEYS)
    options = dict(key_padding_mask=PADDINGS[padding], attn_mask=MASKS[mask], need_weights=need_weights)
    compare(own, theirs, [query, key, value], check_weights=need_weights, average_attn_weights=False, **options)
    compare(own, theirs, [query, key, value], check_weights=need_weights, **options)


VARIANTS = {
    "batch_in_the_middle": dict(),
    "without_biases": dict(bias=False, batch_first=True),
    "bias_kv": dict(add_bias_kv=True, batch_first=True),
    "zero_key": dict(add_zero_attn=True, add_bias_kv=True),
    "other_widths": dict(kdim=24, vdim=24, batch_first=True),
}


@pytest.mark.parametrize("padding", ["none", "right"])
@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS.keys())
def test_variants(options, padding):
    own, theirs = pair(hl_torch.MultiheadAttention, torch.nn.MultiheadAttention, WIDTH, HEADS, **options)
    first = options.get("batch_first", False)
    inputs = drawn(first, ROWS) + drawn(first, KEYS, KEYS, width=options.get("kdim", WIDTH))
    compare(own, theirs, inputs, key_padding_mask=PADDINGS[padding], attn_mask=MASKS["bool"], check_weights=True)


@pytest.mark.parametrize("batch_first", [False, True])
def test_self_attention_is_one_projection(batch_first):
    own, theirs = pair(hl_torch.MultiheadAttention, torch.nn.MultiheadAttention, WIDTH, HEADS, batch_first=batch_first)
    compare(own, theirs, drawn(batch_first, KEYS), need_weights=False)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(KEYS)
    compare(own, theirs, drawn(batch_first, KEYS), need_weights=False, attn_mask=causal, is_causal=True)
    compare(own, theirs, drawn(batch_first, KEYS), attn_mask=causal, is_causal=True, key_padding_mask=torch.where(PADDINGS["right"], -torch.inf, 0.0))


def test_without_a_batch():
    own, theirs = pair(hl_torch.MultiheadAttention, torch.nn.MultiheadAttention, WIDTH, HEADS)
    inputs = [torch.randn(ROWS, WIDTH), torch.randn(KEYS, WIDTH), torch.randn(KEYS, WIDTH)]
    compare(own, theirs, inputs, key_padding_mask=PADDINGS["right"][1], attn_mask=MASKS["bool"], check_weights=True)


def test_rows_that_see_nothing_are_zeros():
    own, _ = pair(hl_torch.MultiheadAttention, torch.nn.MultiheadAttention, WIDTH, HEADS, bias=False, batch_first=True)
    out, weights = own(*drawn(True, ROWS, KEYS, KEYS), key_padding_mask=torch.arange(KEYS).expand(BATCH, KEYS) >= 0)
    assert not out.any() and not weights.any()


def test_errors_name_the_argument():
    own, _ = pair(hl_torch.MultiheadAttention, torch.nn.MultiheadAttention, WIDTH, HEADS, batch_first=True)
    x = torch.randn(BATCH, KEYS, WIDTH)
    with pytest.raises(ValueError, match="is_causal=True given without attn_mask"):
        own(x, x, x, is_causal=True)
    with pytest.raises(ValueError, match=r"key_padding_mask has shape \[3, 8\], expected \[3, 9\]"):
        own(x, x, x, key_padding_mask=torch.zeros(BATCH, KEYS - 1, dtype=torch.bool))
    for shape, expected in (((8, 9), [9, 9]), ((1, 9), [9, 9]), ((3, 9, 9), [12, 9, 9]), ((9,), [9, 9]), ((3, 4, 9, 9), [9, 9])):
        with pytest.raises(ValueError, match=re.escape(f"attn_mask has shape {list(shape)}, expected {expected}")):
            own(x, x, x, attn_mask=torch.zeros(shape))
    # torch refuses numbers that might mean either kind of mask.
    for dtype in (torch.uint8, torch.int64):
        with pytest.raises(TypeError, match="MultiheadAttention: attn_mask has numbers of type"):
            own(x, x, x, attn_mask=torch.ones(KEYS, KEYS, dtype=dtype))
        with pytest.raises(TypeError, match="MultiheadAttention: key_padding_mask has numbers of type"):
            own(x, x, x, key_padding_mask=torch.ones(BATCH, KEYS, dtype=dtype))
    with pytest.raises(TypeError, match="attention: query has numbers of type"):
        own.double()(x.double(), x.double(), x.double())


def test_further_keys_are_seen_by_every_row():
    """Of a causal mask, too: with and without weights alike, as torch has it with them."""
    options = dict(add_bias_kv=True, add_zero_attn=True, batch_first=True)
    own, theirs = pair(hl_torch.MultiheadAttention, torch.nn.MultiheadAttention, WIDTH, HEADS, **options)
    (x,) = drawn(True, KEYS)
    causal = torch.ones(KEYS, KEYS).triu(1).bool()
    expected = theirs(*[x.double()] * 3, attn_mask=causal, is_causal=True)[0]
    for need_weights in (False, True):
        assert_close(own(x, x, x, attn_mask=causal, is_causal=True, need_weights=need_weights)[0], expected)


class Padded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = hl_torch.MultiheadAttention(WIDTH, HEADS, batch_first=True).requires_grad_(False)

    def forward(self, x, padding):
        return self.layer(x, x, x, key_padding_mask=padding, need_weights=False)[0]


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("tracer", ["jit", "make_fx"])
def test_traced_programs_take_any_padding(tracer):
    """What is traced with padding that is lengths gives the same with padding that is not."""
    from torch.fx.experimental.proxy_tensor import make_fx

    model, (x,) = Padded(), drawn(True, KEYS)
    first = (x, PADDINGS["right"])
    traced = torch.jit.trace(model, first) if tracer == "jit" else make_fx(model)(*first)
    for padding in (PADDINGS["right"], PADDINGS["left"], torch.arange(KEYS).expand(BATCH, KEYS) % 3 == 1):
        assert_close(traced(x, padding), model(x, padding))


def test_fake_tensors_have_shapes():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        model = Padded()
        assert model(torch.randn(BATCH, KEYS, WIDTH), torch.zeros(BATCH, KEYS, dtype=torch.bool)).shape == (BATCH, KEYS, WIDTH)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_over_padding():
    model, x = Padded(), torch.randn(2, BATCH, KEYS, WIDTH)
    paddings = torch.stack([PADDINGS["right"], PADDINGS["left"]])
    expected = torch.stack([model(*one) for one in zip(x, paddings, strict=True)])
    assert_close(torch.vmap(model)(x, paddings), expected)


LAYERS = {
    "plain": dict(batch_first=True),
    "norm_first": dict(norm_first=True, activation="gelu"),
    "without_biases": dict(bias=False, batch_first=True),
}


@pytest.mark.parametrize("padding", ["none", "right", "left"])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("options", LAYERS.values(), ids=LAYERS.keys())
def test_encoder_layer(options, training, padding):
    classes = hl_torch.TransformerEncoderLayer, torch.nn.TransformerEncoderLayer
    own, theirs = pair(*classes, WIDTH, HEADS, 48, dropout=0.0, **options)
    own.train(training), theirs.train(training)
    mask = torch.ones(KEYS, KEYS).triu(1).bool()
    x = drawn(options.get("batch_first", False), KEYS)
    given = dict(src_key_padding_mask=PADDINGS[padding])
    compare(own, theirs, x, **given)
    if padding != "left":  # whose first rows then see nothing, which torch makes NaN
        compare(own, theirs, x, src_mask=mask, is_causal=True, **given)
        compare(own, theirs, x, src_mask=mask, **given)


def test_the_same_seed_gives_the_same_layer():
    layers = []
    for one in (hl_torch.TransformerEncoderLayer, torch.nn.TransformerEncoderLayer):
        torch.manual_seed(5)
        layers.append((one(WIDTH, HEADS), torch.rand(())))
    for (name, own), theirs in zip(layers[0][0].state_dict().items(), layers[1][0].state_dict().values(), strict=True):
        assert torch.equal(own, theirs), name
    assert layers[0][1] == layers[1][1]


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("training", [False, True])
def test_in_an_encoder_of_torchs(training):
    own, theirs = pair(hl_torch.TransformerEncoderLayer, torch.nn.TransformerEncoderLayer, WIDTH, HEADS, 48, batch_first=True)
    own_stack = torch.nn.TransformerEncoder(own, 2, enable_nested_tensor=not training).train(training)
    stack = torch.nn.TransformerEncoder(theirs, 2, enable_nested_tensor=False).train(training)
    for module in itertools.chain(own_stack.modules(), stack.modules()):
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, torch.nn.MultiheadAttention):
            module.dropout = 0.0
    assert all(isinstance(layer.self_attn, hl_torch.MultiheadAttention) for layer in own_stack.layers)
    (x,) = drawn(True, KEYS)
    with torch.set_grad_enabled(training):
        out, expected = (stack_(y, src_key_padding_mask=PADDINGS["right"]) for stack_, y in ((own_stack, x), (stack, x.double())))
    seen = ~PADDINGS["right"]
    assert_close(out[seen], expected[seen], spare=256)


def test_dropout_of_weights_follows_manual_seed_and_training():
    own = hl_torch.MultiheadAttention(WIDTH, HEADS, dropout=0.5, batch_first=True)
    (x,) = drawn(True, KEYS)
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(own(x, x, x, need_weights=False)[0])
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])
    own.eval()
    assert torch.equal(own(x, x, x)[0], own(x, x, x)[0])


def test_training_takes_the_steps_of_torchs():
    """Some steps of AdamW on both, and the losses stay together."""
    own, theirs = pair(hl_torch.TransformerEncoderLayer, torch.nn.TransformerEncoderLayer, WIDTH, HEADS, 48, dropout=0.0, batch_first=True)
    x, target = torch.randn(BATCH, KEYS, WIDTH), torch.randn(BATCH, KEYS, WIDTH)
    losses = []
    for layer, like in ((own, torch.float32), (theirs, torch.float64)):
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
        for _ in range(10):
            loss = (layer(x.to(like)) - target.to(like)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.detach())
    assert_close(losses[0], losses[1], spare=256)


def test_compile_and_copy():
    layer = hl_torch.TransformerEncoderLayer(WIDTH, HEADS, 48, batch_first=True).eval()
    (x,) = drawn(True, KEYS)
    padding = PADDINGS["right"]
    expected = layer(x, src_key_padding_mask=padding)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert_close(compiled(x, src_key_padding_mask=padding)[~padding], expected[~padding])
    assert torch.equal(copy.deepcopy(layer)(x, src_key_padding_mask=padding), expected)
    torch.compiler.reset()
