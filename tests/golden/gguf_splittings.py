"""Pieces of texts by the pre-tokenizers of published models, by Hugging Face tokenizers 0.23.3.

gguf_splittings.jsonl: a line {"name": what tokenizer.ggml.pre calls it, "cases": [[text, [piece, …]], …]} for each, bytes of pieces
as characters.
"""

import json
import os
import random

from splitting import BLOOM, CONTRACTIONS, DEEPSEEK_MARKS, DEEPSEEK_V3, GPT4O, HAN_AND_KANA, LAST_SPACES, LLAMA3, MARK, QWEN2
from splitting import SPACES, TEKKEN, THREE_DIGITS, text
from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, Punctuation, Sequence, Split

here = os.path.dirname(os.path.abspath(__file__))
# Letters of two cases: a character, or the first and last of a range, as hexadecimal numbers.
CASED = """
B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F 386 388-38A 38C 38E-3A1 3A3-3F5 3F7-481 48A-52F 531-556
10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A 1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57
1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107
210A-2113 2115 2119-211D 2124 2126 2128 212A-212D 212F-2134 2139 213C-213F 2145-2149 214E 2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE
2CF2 2CF3 A640-A66D A680-A69B A722-A76F A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F
104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF 1E900-1E943
"""
DEEPSEEK_LETTERS = r"\s?[A-Za-z" + "".join("-".join(chr(int(c, 16)) for c in one.split("-")) for one in CASED.split()) + "]+"
SEED_CODER = f"(?i:{CONTRACTIONS})|{MARK}\\p{{L}}+|\\p{{N}}{{1}}| ?[^\\s\\p{{L}}\\p{{N}}\\r\\n]+{SPACES}"
SYLLABLES = "[一-龥\u0800-一가-\ud7ff]+"
TEXTS = [
    "a1\u00b2 м½3456 1234567",
    "x" + 300 * " " + "1 一",
    "  한국어 日本語  漢字 ",
    "a\u3000。「x」 \u0800\u4e00\u9fa6\u3042",
    " !b :c 123,456.78  \n\n",
    "(v|w) [x] a،b।c",
    "\u212a\u212b\u1fbe\ua78b\U00010400 \u0294",
    "\n  a \r\n \n",
]


def split(*patterns):
    return [Split(Regex(pattern), "isolated") for pattern in patterns]


words = [ByteLevel(add_prefix_space=False)]
characters = [ByteLevel(add_prefix_space=False, use_regex=False)]
digits = [Digits(individual_digits=True)]
STEPS = {
    "gpt-2": words,
    "smollm": digits + words,
    "llama-bpe": split(LLAMA3) + characters,
    "qwen2": split(QWEN2) + characters,
    "tekken": split(TEKKEN) + characters,
    "gpt-4o": split(GPT4O) + characters,
    "seed-coder": split(SEED_CODER) + characters,
    "falcon": [Punctuation("contiguous"), *words, Digits(individual_digits=False), *split(THREE_DIGITS)],
    "bloom": split(BLOOM) + characters,
    "deepseek-llm": split("[\r\n]", DEEPSEEK_LETTERS, DEEPSEEK_MARKS, LAST_SPACES, SYLLABLES) + digits + characters,
    "deepseek-coder": split("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", SYLLABLES) + digits + characters,
    "deepseek-v3": split(r"\p{N}{1,3}", HAN_AND_KANA, DEEPSEEK_V3) + characters,
}
draw = random.Random(12)
with open(os.path.join(here, "gguf_splittings.jsonl"), "w") as file:
    for name, steps in STEPS.items():
        texts = TEXTS + [text(draw) for _ in range(16)]
        cases = [[one, [piece for piece, _ in Sequence(steps).pre_tokenize_str(one)]] for one in texts]
        print(json.dumps({"name": name, "cases": cases}, separators=(",", ":")), file=file)
