"""Small models of Transformers with random weights: "headlight" beside "eager"."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import formulas  # noqa: E402
import headlight.transformers  # noqa: E402
from headlight.transformers import _attention, _masks  # noqa: E402

headlight.transformers.register()
transformers.logging.set_verbosity_error()

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
    options, attend = [], _attention.attend

    def watch(query, key, value, *given):
        options.append(_attention.Options(*given[: len(_attention.Options._fields)]))
        return attend(query, key, value, *given)

    monkeypatch.setattr(_attention, "attend", watch)
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
    assert len(seen) == 3
    for options in seen:
        assert options.bias is None and options.causal == "top_left"
        assert options.mask is None or options.mask.shape == (3, 1, 1, ROWS)
        if padding is PADDING["right"]:
            assert options.mask is None and options.key_lengths.tolist() == LENGTHS.tolist()
        if padding is None or padding is PADDING["whole"]:
            assert options.mask is None and options.key_lengths is None


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
    for (name, theirs), ours in zip(eager.named_parameters(), own.parameters(), strict=True):
        assert (theirs.grad is None) == (ours.grad is None), name
        if theirs.grad is not None:
            scale = theirs.grad.abs().max().clamp(min=1e-3)
            assert_close(ours.grad / scale, theirs.grad / scale, spare=4096)


def test_gradients_of_bert():
    eager, own = both(ENCODERS["bert"](), transformers.AutoModelForMaskedLM)
    for model in (eager, own):
        model(input_ids=ids(), attention_mask=PADDING["right"], labels=ids()).loss.backward()
    for theirs, ours in zip(eager.parameters(), own.parameters(), strict=True):
        scale = theirs.grad.abs().max().clamp(min=1e-3)
        assert_close(ours.grad / scale, theirs.grad / scale, spare=4096)


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


def test_masks_of_the_callers_own(seen):
    eager, own = both(DECODERS["llama"](), transformers.AutoModelForCausalLM)
    allowed = torch.rand(3, 1, ROWS, ROWS, generator=torch.Generator().manual_seed(1)) > 0.4
    allowed |= torch.eye(ROWS, dtype=torch.bool)
    added = torch.where(allowed, 0.0, torch.finfo(torch.float32).min)
    expected = eager(input_ids=ids(), attention_mask=added, use_cache=False).logits
    for mask in (allowed, added):
        assert_close(own(input_ids=ids(), attention_mask=mask, use_cache=False).logits, expected, spare=512)
    assert seen[0].mask is not None and seen[-1].bias is not None


def test_a_mask_function_nobody_knows_is_a_mask(seen):
    from transformers.masking_utils import and_masks, causal_mask_function

    def every_second(batch, head, row, key):
        return (row - key) % 2 == 0

    own = both(DECODERS["llama"](), transformers.AutoModelForCausalLM)[1]
    given = dict(batch_size=2, kv_length=5, mask_function=and_masks(every_second, causal_mask_function), attention_mask=None)
    rows = dict(q_length=5, q_offset=0) if hasattr(transformers.masking_utils, "bidirectional_mask_function") else dict(cache_position=torch.arange(5))
    mask = _masks.make_mask(**given, **rows)
    assert type(mask) is torch.Tensor
    place = torch.arange(5)
    assert torch.equal(mask[1, 0], (place[:, None] >= place) & ((place[:, None] - place) % 2 == 0))
    assert own is not None


def test_an_interval_mask_is_a_mask_to_whoever_looks():
    from transformers.masking_utils import sliding_window_causal_mask_function

    rows = dict(q_length=4, q_offset=3) if hasattr(transformers.masking_utils, "bidirectional_mask_function") else dict(cache_position=torch.arange(3, 7))
    mask = _masks.make_mask(
        batch_size=2, kv_length=7, mask_function=sliding_window_causal_mask_function(3),
        attention_mask=torch.arange(7) < torch.tensor([[7], [5]]), **rows,
    )  # fmt: skip
    assert isinstance(mask, _masks.IntervalMask) and mask.shape == (2, 1, 4, 7) and mask.dtype == torch.bool
    row, key = torch.arange(3, 7)[:, None], torch.arange(7)
    expected = (key <= row) & (key > row - 3) & (key < torch.tensor([7, 5])[:, None, None, None])
    assert torch.equal(mask[..., :], expected) and torch.equal(~mask, ~expected) and bool(mask.any())
    assert "IntervalMask" in repr(mask)


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


def test_models_with_attention_of_their_own_still_run():
    if not hasattr(transformers.models.electra.modeling_electra, "ELECTRA_SELF_ATTENTION_CLASSES"):
        pytest.skip("in this Transformers Electra asks the attention interface")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eager, own = both(transformers.ElectraConfig(**SMALL, embedding_size=32))
    assert any("ElectraSelfAttention" in str(one.message) for one in caught)
    assert torch.equal(own(ids()).last_hidden_state, eager(ids()).last_hidden_state)


def test_register_twice_is_once():
    before = transformers.PreTrainedModel._check_and_adjust_attn_implementation
    headlight.transformers.register()
    assert transformers.PreTrainedModel._check_and_adjust_attn_implementation is before
