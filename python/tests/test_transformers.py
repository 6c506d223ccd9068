"""Small models of Transformers with random weights: "headlight" beside "eager"."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import formulas  # noqa: E402
import headlight.transformers  # noqa: E402
from headlight.transformers import _attention, _classes, _masks  # noqa: E402

headlight.transformers.register()
transformers.logging.set_verbosity_error()

NEW = hasattr(transformers.masking_utils, "bidirectional_mask_function")
SMALL = dict(vocab_size=97, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96, max_position_embeddings=128)
GROUPED = dict(SMALL, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=None, initializer_range=0.2, tie_word_embeddings=False)
GPT2 = dict(vocab_size=97, n_embd=64, n_layer=3, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=None, initializer_range=0.2, tie_word_embeddings=False)
ENCODERS = {
    "bert": lambda: transformers.BertConfig(**SMALL),
    "roberta": lambda: transformers.RobertaConfig(**SMALL),
    "distilbert": lambda: transformers.DistilBertConfig(vocab_size=97, dim=64, n_layers=3, n_heads=4, hidden_dim=96),
    "xlm_roberta": lambda: transformers.XLMRobertaConfig(**SMALL),
}
DECODERS = {
    "gpt2": lambda: transformers.GPT2Config(**GPT2),
    "gpt2_by_layer": lambda: transformers.GPT2Config(**GPT2, scale_attn_by_inverse_layer_idx=True),
    "llama": lambda: transformers.LlamaConfig(**GROUPED),
    "mistral": lambda: transformers.MistralConfig(**GROUPED, sliding_window=6),
    "gemma2": lambda: transformers.Gemma2Config(**GROUPED, head_dim=16, sliding_window=6, attn_logit_softcapping=2.0, query_pre_attn_scalar=16),
    "qwen2": lambda: transformers.Qwen2Config(**GROUPED),
    "qwen3": lambda: transformers.Qwen3Config(**GROUPED, head_dim=16),
    "gpt_oss": lambda: transformers.GptOssConfig(**GROUPED, head_dim=16, sliding_window=6, num_local_experts=2, num_experts_per_tok=2),
    "stablelm": lambda: transformers.StableLmConfig(**GROUPED),
    "llama4": lambda: transformers.Llama4TextConfig(**GROUPED, head_dim=16, attention_chunk_size=4, num_local_experts=2, intermediate_size_mlp=96),
}
ROWS = 12
LENGTHS = torch.tensor([12, 5, 9])


def both(config, kind=transformers.AutoModel):
    """The same model twice: as eager, and as headlight."""
    models = []
    for implementation in ("eager", "headlight"):
        torch.manual_seed(11)
        models.append(kind.from_config(copy.deepcopy(config), attn_implementation=implementation).eval())
    models[1].load_state_dict(models[0].state_dict())
    return models


def assert_close(result, expected, spare):
    formulas.assert_close(result.detach().double(), expected.detach().double(), spare=spare)


def assert_gradients_are_close(eager, own):
    """Within roundings of the largest of all: those of key biases are 0 but for them."""
    largest = max(x.grad.abs().max() for x in eager.parameters() if x.grad is not None)
    for (name, theirs), ours in zip(eager.named_parameters(), own.parameters(), strict=True):
        assert (theirs.grad is None) == (ours.grad is None), name
        if theirs.grad is not None:
            assert_close(ours.grad / largest, theirs.grad / largest, spare=512)


def ids(batch=3, rows=ROWS):
    return torch.randint(2, 97, (batch, rows), generator=torch.Generator().manual_seed(batch * rows))


PADDING = {
    "none": None,
    "whole": torch.ones(3, ROWS, dtype=torch.int64),
    "right": (torch.arange(ROWS) < LENGTHS[:, None]).long(),
    "left": (torch.arange(ROWS) >= ROWS - LENGTHS[:, None]).long(),
}


@pytest.fixture
def seen(monkeypatch):
    """What each call of the operator was given as options."""
    options, attend = [], _attention.attend_with_weights

    def watch(query, key, value, given, wanted):
        options.append(given)
        return attend(query, key, value, given, wanted)

    monkeypatch.setattr(_attention, "attend_with_weights", watch)
    return options


@pytest.mark.parametrize("padding", PADDING.values(), ids=PADDING.keys())
@pytest.mark.parametrize("make", ENCODERS.values(), ids=ENCODERS.keys())
def test_encoders(make, padding):
    eager, own = both(make())
    own_attention = [type(module).__name__ for module in own.modules() if "ttention" in type(module).__name__]
    assert not any("Eager" in name for name in own_attention)
    given = dict(input_ids=ids(), attention_mask=padding)
    out, expected = own(**given).last_hidden_state, eager(**given).last_hidden_state
    rows = slice(None) if padding is None else padding.bool()
    assert_close(out[rows], expected[rows], spare=128)


@pytest.mark.parametrize("padding", PADDING.values(), ids=PADDING.keys())
@pytest.mark.parametrize("make", DECODERS.values(), ids=DECODERS.keys())
def test_decoders(make, padding, seen):
    eager, own = both(make(), transformers.AutoModelForCausalLM)
    given = dict(input_ids=ids(), attention_mask=padding, use_cache=False)
    out, expected = own(**given).logits, eager(**given).logits
    rows = slice(None) if padding is None else padding.bool()
    assert_close(out[rows], expected[rows], spare=512)
    if make is DECODERS["stablelm"] and not NEW:
        return  # which asks another way: test_models_that_choose_among_classes
    assert len(seen) == 3
    for options in seen:
        assert options.bias is None and options.causal == "top_left"
        assert options.mask is None or options.mask.shape == (3, 1, 1, ROWS)
        if padding is PADDING["right"]:
            assert options.mask is None and options.key_lengths.tolist() == LENGTHS.tolist()
        if padding is None or padding is PADDING["whole"]:
            assert options.mask is None and options.key_lengths is None


@pytest.mark.skipif(NEW, reason="in this Transformers they ask the attention interface")
@pytest.mark.parametrize("make", [ENCODERS["bert"], DECODERS["stablelm"]], ids=["bert", "stablelm"])
def test_models_that_choose_among_classes(make, monkeypatch):
    """Whatever their table is called: headlight computes the attention of each layer."""
    calls, attend = [], _classes._attention
    monkeypatch.setattr(_classes, "_attention", lambda *given, **options: calls.append(options) or attend(*given, **options))
    both(make())[1](input_ids=ids(), attention_mask=PADDING["right"])
    assert len(calls) == 3


@pytest.mark.parametrize("make", DECODERS.values(), ids=DECODERS.keys())
def test_gradients(make):
    eager, own = both(make(), transformers.AutoModelForCausalLM)
    losses = []
    for model in (eager, own):
        model.train()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        labels = ids().masked_fill(PADDING["right"] == 0, -100)
        loss = model(input_ids=ids(), attention_mask=PADDING["right"], labels=labels, use_cache=False).loss
        loss.backward()
        losses.append(loss)
    assert_close(losses[1], losses[0], spare=128)
    assert_gradients_are_close(eager, own)


def test_gradients_of_bert():
    eager, own = both(ENCODERS["bert"](), transformers.AutoModelForMaskedLM)
    for model in (eager, own):
        model(input_ids=ids(), attention_mask=PADDING["right"], labels=ids()).loss.backward()
    assert_gradients_are_close(eager, own)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize("make", DECODERS.values(), ids=DECODERS.keys())
def test_generate_gives_the_same_tokens(make, padding, cache):
    eager, own = both(make(), transformers.AutoModelForCausalLM)
    given = dict(max_new_tokens=12, do_sample=False, cache_implementation="static" if cache == "static" else None)
    tokens = [
        model.generate(ids(), attention_mask=torch.ones(3, ROWS) if padding == "none" else PADDING["left"], **given)
        for model in (eager, own)
    ]
    assert tokens[0].shape == (3, ROWS + 12) and len(tokens[0][:, ROWS:].unique()) > 8
    assert torch.equal(tokens[0], tokens[1])


@pytest.mark.parametrize("make", DECODERS.values(), ids=DECODERS.keys())
def test_decoding_has_the_logits_of_prefill(make, seen):
    """Row by row and chunk by chunk over a cache: the bottom-right corner of the same mask."""
    _, own = both(make(), transformers.AutoModelForCausalLM)
    with torch.no_grad():
        whole = own(input_ids=ids(), use_cache=False).logits
        cache, logits = transformers.DynamicCache(config=own.config), []
        for part in ids().split([5, 1, 1, 4, 1], dim=1):
            logits.append(own(input_ids=part, past_key_values=cache, use_cache=True).logits)
    assert_close(torch.cat(logits, dim=1), whole, spare=512)
    assert all(options.mask is None for options in seen)


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


SEVERAL = {"two": [[7, 1, 10], [3, 15]], "one_of_two": [[7, 11], [18]], "three": [[1, 17], [9, 9], [5, 5, 8]]}


def positions_of(rows):
    return torch.stack([torch.cat([torch.arange(length) for length in lengths]) for lengths in rows])


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


OTHERS = {
    "mpnet": lambda: transformers.MPNetConfig(**SMALL),
    "albert": lambda: transformers.AlbertConfig(**SMALL, embedding_size=32),
    "bloom": lambda: transformers.BloomConfig(vocab_size=97, hidden_size=64, n_layer=2, n_head=4),
    "falcon": lambda: transformers.FalconConfig(vocab_size=97, hidden_size=64, num_hidden_layers=2, num_attention_heads=4),
    "modernbert": lambda: transformers.ModernBertConfig(**dict(SMALL, pad_token_id=0), local_attention=4, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2),
}


@pytest.mark.filterwarnings("ignore:headlight")
@pytest.mark.parametrize("padding", ["none", "right"])
@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS.keys())
def test_other_families(make, padding):
    """Those that ask in other ways, or compute attention themselves from the mask that was made for headlight."""
    eager, own = both(make())
    given = dict(input_ids=ids(), attention_mask=PADDING[padding])
    rows = slice(None) if padding == "none" else PADDING[padding].bool()
    assert_close(own(**given).last_hidden_state[rows], eager(**given).last_hidden_state[rows], spare=512)


@pytest.mark.filterwarnings("ignore:headlight")
def test_encoder_and_decoder():
    """T5, whose scores have a bias that is learned; and BART, which attends to another sequence."""
    sizes = dict(vocab_size=97, d_model=64, decoder_start_token_id=0)
    heads = dict(encoder_attention_heads=4, decoder_attention_heads=4, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=96, decoder_ffn_dim=96)
    for config in (
        transformers.T5Config(**sizes, d_kv=16, d_ff=96, num_layers=2, num_heads=4),
        transformers.BartConfig(**sizes, **heads, max_position_embeddings=64),
    ):
        eager, own = both(config)
        given = dict(input_ids=ids(), attention_mask=PADDING["right"], decoder_input_ids=ids(3, 8))
        outs = [model(**given).last_hidden_state for model in (eager, own)]
        assert_close(outs[1], outs[0], spare=512)
        for model, out in zip((eager, own), outs, strict=True):
            out.square().sum().backward()
        assert_gradients_are_close(eager, own)


@pytest.mark.parametrize("name", ["llama", "gemma2", "bert"])
def test_weights_where_they_are_asked_for(name):
    if name in ENCODERS:
        eager, own = both(ENCODERS[name]())
    else:
        eager, own = both(DECODERS[name](), transformers.AutoModelForCausalLM)
    given = dict(input_ids=ids(), attention_mask=PADDING["whole"], output_attentions=True)
    try:
        found = own(**given).attentions
    except ValueError as error:
        pytest.skip(f"this Transformers gives weights to eager alone: {error}")
    for ours, theirs in zip(found, eager(**given).attentions, strict=True):
        assert_close(ours, theirs, spare=512)


@pytest.mark.parametrize("make", [DECODERS["llama"], DECODERS["gemma2"], ENCODERS["distilbert"]], ids=["llama", "gemma2", "distilbert"])
def test_bfloat16(make):
    """As far from float32 as eager's bfloat16 is, or nearer, with as much again to spare."""
    eager, own = both(make())
    exact = eager(input_ids=ids(), attention_mask=PADDING["right"]).last_hidden_state
    errors = []
    for model in (eager, own):
        out = model.bfloat16()(input_ids=ids(), attention_mask=PADDING["right"]).last_hidden_state
        errors.append((out.float() - exact)[PADDING["right"].bool()].square().mean().sqrt())
    assert errors[1] <= 2 * errors[0]


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_compile(name):
    eager, own = both(DECODERS[name](), transformers.AutoModelForCausalLM)
    given = dict(input_ids=ids(), use_cache=False)
    compiled = torch.compile(own, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        assert_close(compiled(**given).logits, eager(**given).logits, spare=512)
        given["attention_mask"] = PADDING["right"]
        rows = PADDING["right"].bool()
        assert_close(compiled(**given).logits[rows], eager(**given).logits[rows], spare=512)
    torch.compiler.reset()


@pytest.fixture
def programs(monkeypatch):
    """(a backend, the programs that it was given, the options that attention was given as they ran)."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    from headlight.torch import _operator

    graphs, calls = [], []

    def keep(graph, inputs):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    monkeypatch.setattr(_operator, "attention", lambda *given, **options: calls.append(options) or headlight.attention(*given, **options))
    yield aot_autograd(fw_compiler=keep), graphs, calls
    torch.compiler.reset()


def has_matrix(graph, rows, keys):
    values = (node.meta.get("val") for node in graph.graph.nodes)
    return any(isinstance(x, torch.Tensor) and tuple(x.shape[-2:]) == (rows, keys) for x in values)


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "llama4"])
def test_compiled_programs_make_no_masks(name, padding, programs):
    backend, graphs, calls = programs
    eager, own = both(DECODERS[name](), transformers.AutoModelForCausalLM)
    compiled = torch.compile(own, backend=backend, fullgraph=True)
    given = dict(input_ids=ids(), attention_mask=PADDING[padding], use_cache=False)
    rows = slice(None) if PADDING[padding] is None else PADDING[padding].bool()
    with torch.no_grad():
        assert_close(compiled(**given).logits[rows], eager(**given).logits[rows], spare=512)
    assert graphs and not any(has_matrix(graph, ROWS, ROWS) for graph in graphs)
    windows = [options.get("window") for options in calls]
    assert windows == {"mistral": [(5, -1)] * 3, "gemma2": [(5, -1), None, (5, -1)]}.get(name, [None] * 3)
    assert [options.get("chunk") for options in calls] == [4 if name == "llama4" else None] * 3
    for options in calls:
        assert options["causal"] == "top_left" and ("mask" in options) == (padding == "left")
        assert options.get("key_lengths") == (LENGTHS.tolist() if padding == "right" else None)


@pytest.mark.parametrize(
    "name, rows", [("mistral", [[7, 1, 10]]), ("mistral", SEVERAL["two"]), ("llama4", [[7, 1, 10]]), ("llama4", SEVERAL["three"])]
)
def test_compiled_programs_tell_packed_sequences(name, rows, programs):
    backend, graphs, calls = programs
    eager, own = both(DECODERS[name](), transformers.AutoModelForCausalLM)
    given = dict(input_ids=ids(len(rows), 18), position_ids=positions_of(rows), use_cache=False)
    with torch.no_grad():
        out = torch.compile(own, backend=backend, fullgraph=True)(**given).logits
    assert_close(out, eager(**given).logits, spare=512)
    assert not any(has_matrix(graph, 18, 18) for graph in graphs)
    offsets = [0] + torch.tensor(sum(rows, [])).cumsum(0).tolist()
    assert len(calls) == 3 and all(options["query_offsets"] == offsets and "mask" not in options for options in calls)


def test_a_mask_of_the_callers_own_is_kept_in_a_compiled_program(programs):
    backend, graphs, _ = programs
    eager, own = both(DECODERS["llama"](), transformers.AutoModelForCausalLM)
    allowed = torch.rand(3, 1, ROWS, ROWS, generator=torch.Generator().manual_seed(1)) > 0.4
    added = torch.where(allowed | torch.eye(ROWS, dtype=torch.bool), 0.0, torch.finfo(torch.float32).min)
    given = dict(input_ids=ids(), attention_mask=added, use_cache=False)
    with torch.no_grad():
        out = torch.compile(own, backend=backend, fullgraph=True)(**given).logits
    assert_close(out, eager(**given).logits, spare=512)


def test_a_program_of_several_graphs():
    """Between them a mask is a tensor that was computed, with or without what was noted beside it."""
    eager, own = both(DECODERS["mistral"](), transformers.AutoModelForCausalLM)
    for layer in own.model.layers:
        layer.forward = torch.compiler.disable(layer.forward)
    compiled = torch.compile(own, backend="aot_eager")
    for rows in (ROWS, ROWS + 3):
        given = dict(input_ids=ids(3, rows), use_cache=False)
        with torch.no_grad():
            assert_close(compiled(**given).logits, eager(**given).logits, spare=512)
    torch.compiler.reset()


@pytest.mark.parametrize("padding", ["none", "left"])
def test_compiled_generation_over_a_static_cache(padding):
    eager, own = both(DECODERS["mistral"](), transformers.AutoModelForCausalLM)
    own.forward = torch.compile(own.forward, backend="aot_eager", fullgraph=True)
    mask = torch.ones(3, ROWS, dtype=torch.int64) if padding == "none" else PADDING["left"]
    given = dict(attention_mask=mask, max_new_tokens=6, do_sample=False, cache_implementation="static")
    assert torch.equal(own.generate(ids(), **given), eager.generate(ids(), **given))
    torch.compiler.reset()


def test_dropout_follows_manual_seed():
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.LlamaConfig(**GROUPED, attention_dropout=0.3), attn_implementation="headlight"
    ).train()
    logits = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        logits.append(model(ids()).logits)
    assert torch.equal(logits[0], logits[1]) and not torch.equal(logits[0], logits[2])


def test_models_with_attention_of_their_own_still_run():
    if not hasattr(transformers.models.electra.modeling_electra, "ELECTRA_SELF_ATTENTION_CLASSES"):
        pytest.skip("in this Transformers Electra asks the attention interface")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eager, own = both(transformers.ElectraConfig(**SMALL, embedding_size=32))
    assert any("ElectraSelfAttention" in str(one.message) for one in caught)
    assert torch.equal(own(ids()).last_hidden_state, eager(ids()).last_hidden_state)


@pytest.mark.parametrize("form", ["set_default_device", "context"])
@pytest.mark.parametrize("padding", ["none", "right", "left"])
@pytest.mark.parametrize("name", ["mistral", "llama4", "bert"])
def test_the_default_device_is_of_no_account(name, padding, form):
    """Where tensors that name no device lie elsewhere; with packed sequences and behind a cache, too."""
    kind = transformers.AutoModel if name == "bert" else transformers.AutoModelForCausalLM
    model = both({**ENCODERS, **DECODERS}[name](), kind)[1]
    own_cache = {} if name == "bert" else dict(use_cache=False)
    given = [dict(input_ids=ids(), attention_mask=PADDING[padding], **own_cache)]
    if name != "bert" and padding == "none":
        given.append(dict(input_ids=ids(2, 18), position_ids=positions_of(SEVERAL["two"]), use_cache=False))

    first, *parts = ids().split([5, 1, 6], dim=1)

    def cache():  # whose first keys settle where it lies
        made = transformers.DynamicCache(config=model.config)
        model(input_ids=first, past_key_values=made, use_cache=True)
        return made

    def results(behind):
        outs = [model(**one)[0] for one in given]
        if behind is not None:
            outs += [model(input_ids=part, past_key_values=behind, use_cache=True).logits for part in parts]
        return outs

    caches = [None, None] if name == "bert" else [cache(), cache()]
    expected = results(caches[0])
    try:
        if form == "context":
            with torch.device("meta"):
                found = results(caches[1])
        else:
            torch.set_default_device("meta")
            found = results(caches[1])
    finally:
        torch.set_default_device(None)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_register_twice_is_once():
    before = transformers.PreTrainedModel._check_and_adjust_attn_implementation
    headlight.transformers.register()
    assert transformers.PreTrainedModel._check_and_adjust_attn_implementation is before
