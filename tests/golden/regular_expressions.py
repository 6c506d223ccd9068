"""Where the regular expressions of tokenizer.json split texts, by Hugging Face tokenizers 0.23.3, and what it knows of characters.

regular_expressions.jsonl: a line {"pattern": …, "pieces": [[piece, …], …]} for each pattern, whose pieces make up a text; a line
{"categories": {name: [how many characters, their sum modulo 2^32]}}; a line {"words": …} with the same of [\\w].

With a number as argument, so many texts of each pattern go to standard output instead.
"""

import json
import os
import random
import sys

from splitting import BLOOM, CONTRACTIONS, DEEPSEEK_MARKS, DEEPSEEK_V3, GPT2, GPT4O, HAN_AND_KANA, LAST_SPACES, LLAMA3, MARK, QWEN2
from splitting import SPACES, TEKKEN, THREE_DIGITS, text
from tokenizers import Regex, pre_tokenizers

here = os.path.dirname(os.path.abspath(__file__))
PATTERNS = [
    # Of published files: GPT-2, Llama 3, Qwen 2 and 3.5, cl100k in two spellings, GPT-4o, Mistral, CLIP, BLOOM, Falcon, DeepSeek, T5.
    GPT2,
    LLAMA3,
    QWEN2,
    f"(?i:{CONTRACTIONS})|{MARK}[\\p{{L}}\\p{{M}}]+|\\p{{N}}| ?[^\\s\\p{{L}}\\p{{M}}\\p{{N}}]+[\\r\\n]*{SPACES}",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    GPT4O,
    TEKKEN,
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    BLOOM,
    THREE_DIGITS,
    HAN_AND_KANA,
    DEEPSEEK_V3,
    DEEPSEEK_MARKS,
    LAST_SPACES,
    r" {2,}",
    # Each part of the syntax.
    r"\w+|[^\w\s]+",
    r"\W+|\d\D",
    r"[^\w\s]+|\w[\W\d]|[\w]{2}",
    r"[\P{L}a]+x?",
    r"a+?b??c|[ab]+?(?!\w)",
    r"a*+b|a?+\d|\s++\w",
    r"[^\p{Lu}\S]+|\p{^L}\p{L}",
    r"\w{2}+|\s{,2}x|\p{P}{3,}",
    r"(?:ab|a)(?:c|bcd)?(?=\d)|(b|bc)+",
    r".+?e|\S\z",
    r"(?i:k[e-g]|S|h{2})+",
    r"(?:[^ ]| (?! ))+",
    r"\d{1,2}(?!\d)|\x41|\u0042\t|\x{1F600}|[\]\-a^-]\n",
]


def pieces(pattern, draw, count):
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    return [[piece for piece, _ in split.pre_tokenize_str(text(draw))] for _ in range(count)]


def characters_of(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    points = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    found = {c for begin in range(0, len(points), 20000) for piece, _ in split.pre_tokenize_str("".join(points[begin : begin + 20000])) for c in piece}
    return [len(found), sum(map(ord, found)) % 2**32]


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    file = sys.stdout if len(sys.argv) > 1 else open(os.path.join(here, "regular_expressions.jsonl"), "w")
    draw = random.Random(9)
    for pattern in PATTERNS:
        print(json.dumps({"pattern": pattern, "pieces": pieces(pattern, draw, count)}, separators=(",", ":")), file=file)
    if len(sys.argv) > 1:
        return
    names = "Cc Cf Cn Co Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split()
    print(json.dumps({"categories": {name: characters_of(r"\p{%s}+" % name) for name in names}}), file=file)
    print(json.dumps({"words": characters_of(r"[\w]+")}), file=file)


main()
