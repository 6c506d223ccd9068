"""Models of Transformers: "headlight" beside "eager"."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from transformers_models import (  # noqa: E402, F401
    DECODERS,
    ENCODERS,
    GROUPED,
    LENGTHS,
    NEW,
    PADDING,
    ROWS,
    SEVERAL,
    SMALL,
    assert_close,
    assert_gradients_are_close,
    both,
    ids,
    positions_of,
    seen,
)
import headlight.transformers  # noqa: E402
from headlight.transformers import _classes  # noqa: E402


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
