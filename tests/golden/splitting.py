"""Published regular expressions that split texts, and texts to split."""

CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
LARGE = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
MARK = r"[^\r\n\p{L}\p{N}]?"


def by_case(suffix, numbers):
    """Of GPT-4o and Mistral: words are cut where small letters end."""
    return f"{MARK}{LARGE}*{SMALL}+{suffix}|{MARK}{LARGE}+{SMALL}*{suffix}|{numbers}| ?[^\\s\\p{{L}}\\p{{N}}]+[\\r\\n/]*{SPACES}"


GPT2 = CONTRACTIONS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = f"(?i:{CONTRACTIONS})|{MARK}\\p{{L}}+|\\p{{N}}{{1,3}}| ?[^\\s\\p{{L}}\\p{{N}}]+[\\r\\n]*{SPACES}"
QWEN2 = f"(?i:{CONTRACTIONS})|{MARK}\\p{{L}}+|\\p{{N}}| ?[^\\s\\p{{L}}\\p{{N}}]+[\\r\\n]*{SPACES}"
GPT4O = by_case(f"(?i:{CONTRACTIONS})?", r"\p{N}{1,3}")
TEKKEN = by_case("", r"\p{N}")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
THREE_DIGITS = r"[0-9][0-9][0-9]"
HAN_AND_KANA = r"[一-龥぀-ゟ゠-ヿ]+"
DEEPSEEK_V3 = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*""" + SPACES
DEEPSEEK_MARKS = r"\s?[!-/:-~！-／：-～‘-‟　-。]+"
LAST_SPACES = r"\s+$"

WORDS = (
    "I'm they'LL we've It'ſ x'D don't Hello WORLD camelCase iPhone éàü ÉCOLE 你好世界 日本語テスト かな 한국어 مرحبا שלום हिन्दी ﬁx ß ſ K 123 4567 "
    "١٢٣ Ⅷ ½² ¹'³ 1.000,50 a_b c-d ... !!! :-) <|startoftext|> \u0301 e\u0301 \u200d \u00ad \u0378 😀 👨\u200d👩 \U00010D50\U00010D70 \U00011380 "
    "\u1C89\u1C8A µm Ωℂ 𐐀𐑏 ///\n ' '' 's abcd abc2 bcbc hhHH kE aaa b ab A ^\n \x00 \x01"
).split(" ")
GAPS = ["", " ", "  ", "   ", "\n", "\n\n", " \n", "\r\n", "\t", "\t\t", "\x0b", "\x1c", "\u00a0", "\u3000", ".", ", ", "'", "\u2028", "\u0085"]


def text(draw):
    if draw.random() < 0.2:
        ranges = ((32, 127), (1, 0x300), (0x300, 0xD800), (0xE000, 0x20000), (9, 14), (32, 33), (10, 11))
        return "".join(chr(draw.randrange(*draw.choice(ranges))) for _ in range(draw.randrange(1, 20)))
    return "".join(draw.choice(WORDS) + draw.choice(GAPS) for _ in range(draw.randrange(1, 10)))
