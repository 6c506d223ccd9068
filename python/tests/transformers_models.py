"""Small models of Transformers with random weights, of which "headlight" is compared with "eager"."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import formulas  # noqa: E402
import headlight.transformers  # noqa: E402
from headlight.transformers import _attention  # noqa: E402

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


SEVERAL = {"two": [[7, 1, 10], [3, 15]], "one_of_two": [[7, 11], [18]], "three": [[1, 17], [9, 9], [5, 5, 8]]}


def positions_of(rows):
    return torch.stack([torch.cat([torch.arange(length) for length in lengths]) for lengths in rows])
