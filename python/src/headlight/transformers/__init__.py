"""Models of Hugging Face's Transformers, whose attention headlight computes.

    import headlight.transformers
    headlight.transformers.register()
    model = AutoModel.from_pretrained(..., attn_implementation="headlight")

Padding, packed sequences, causal and sliding masks reach the engine as intervals of keys: no mask of Lq x Lk is made.
"""

from __future__ import annotations

from transformers import AttentionInterface, AttentionMaskInterface

from headlight.transformers._attention import attention
from headlight.transformers._classes import cover_model_classes
from headlight.transformers._masks import make_mask
from headlight.transformers._rules import note_rules

__all__ = ["register"]

NAME = "headlight"


def register() -> None:
    """Makes attn_implementation="headlight" known to Transformers, for every model of this process.

    Models that ask the attention interface are served by it. Those that choose among classes of their own (BERT, RoBERTa
    and others in Transformers 4) are covered as their module is used: their class for "sdpa" runs, and attention within
    it is headlight's. Where there is no such class, the one for "eager" runs as it is, and a warning says so.
    """
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, make_mask)
    cover_model_classes(NAME)
    note_rules()
