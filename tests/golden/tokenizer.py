"""Token ids of the published BERT tokenizer, by Hugging Face tokenizers.

tokenizer_cases.jsonl: one case a line, [text, ids] or [text, ids, max_length, lower_case, strip_accents, split_ideographs].
tokenizer_codepoints.txt: what every code point does between two letters, as ranges.

With the path of a published folder as argument, the tokenizer.json in it must give the same ids.
"""

import json
import os
import random
import sys

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

here = os.path.dirname(os.path.abspath(__file__))
vocabulary_file = os.path.join(here, "../data/bert_uncased_vocab.txt")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def published(vocabulary, lower_case=True, strip_accents=None, split_ideographs=True):
    """What the tokenizer.json of all-MiniLM-L6-v2 spells out, part by part."""
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.add_special_tokens([token for token in SPECIAL if token in vocabulary])
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=split_ideographs, strip_accents=strip_accents, lowercase=lower_case)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(t, vocabulary[t]) for t in ("[CLS]", "[SEP]")])
    return tokenizer


SENTENCES = """
The animal didn't cross the street because it was too tired.
It's 3:45 p.m. -- "quick," she said; 'brown' foxes (and dogs) don't jump!
Unbelievably, antidisestablishmentarianism outlives floccinaucinihilipilification.
He paid $1,234.56 (about £987.65 or €1.100,00) for 2½ kg @ 10% off, i.e. ~5^2 < 26 & 3*4 = 12.
Visit https://example.org/a_b/c?d=e&f=g#h or mail me+tag@example.co.uk; C:\\path\\to\\file.txt
Crème brûlée, naïve façade, coöperate, smörgåsbord, jalapeño, Ærøskøbing, Łódź, Đà Nẵng
Der Mörder faßte Straße, Größe, ẞ und Füße; ein schönes Öl über Äpfel.
Il était une fois, à l'œuvre: où êtes-vous, garçon? « Là-bas », dit-il…
¿Dónde está el niño? ¡Mañana, señor Núñez!
İstanbul'da ışık IĞDIR iğne I ı İ i; çağ, şöför, Dağcı
Zażółć gęślą jaźń. Příliš žluťoučký kůň úpěl ďábelské ódy.
Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка, йод, Їжак, ґрунт
Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. ΟΔΥΣΣΕΥΣ ὈΔΥΣΣΕΎΣ σς Σ ᾳ ᾼ ΐ
敏捷的棕色狐狸跳过了懒狗。機器人拿起紅色的方塊，然後放下。
素早い茶色の狐がのろまな犬を飛び越える。カタカナ ﾊﾝｶｸ ひらがな がぎぐ パピプ
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. السَّلَامُ عَلَيْكُمْ ٠١٢٣
דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם עֲלֵיכֶם
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले विष्णु। क़ ख़ ड़ १२३
আমি বাংলায় গান গাই। தமிழ் மொழி இனிது. తెలుగు ಕನ್ನಡ മലയാളം ਪੰਜਾਬੀ ગુજરાતી සිංහල
ཨོཾ་མ་ཎི་པདྨེ་ཧཱུྃ། မြန်မာဘာသာ ភាសាខ្មែរ ລາວ አማርኛ ქართული ᲥᲐᲠᲗᲣᲚᲘ Հայերեն ᏣᎳᎩ ᐃᓄᒃᑎᑐᑦ
Tiếng Việt có dấu: ằ ắ ẳ ẵ ặ ề ế ể ễ ệ ữ ự; Yorùbá ẹ́ ọ̀ ṣ; Hawaiʻi Kū
👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 thumbs, 🇩🇪🇯🇵 flags, 1️⃣ keycap, ❤️ ☎ ☺︎ 🤖🦾
𝕳𝖊𝖑𝖑𝖔 𝓦𝓸𝓻𝓵𝓭 𝟘𝟙𝟚 ℌ ℝ ℵ ∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, ∑∫∂√∞ ≠≤≥ ±×÷ αβγ² ∴ ¬∃
ﬁne ﬂow eﬀort ŉ ǆ ǅ Ǆ ĳ Ĳ ſ ﬅ ㎏ ㏒ ① Ⅳ ⅷ ½ ª º µ Å K Ω
Ｆｕｌｌｗｉｄｔｈ ＡＢＣ１２３！？（）「」、。　ideographic　space
a\u0301 e\u0301\u0323 o\u0323\u0302 n\u0303 c\u0327\u0301 a\u035c\u0361b x\u20dd \u0301alone q\u0307\u0323 s\u0323\u0307
zero\u200bwidth\u200cjoin\u200der\ufeffbom\u2060word soft\u00adhyphen \u202ertl override\u202c \u2066iso\u2069
tab\there\nnew\r\nline\u000bvt\u000cff\u0085nel\u2028ls\u2029ps\u00a0nbsp\u1680ogham\u2003em\u202fnn\u205fmm\u3000id\u180emvs
nul\u0000in\u0001side\u0007bell\u001besc[31m\u007fdel\u0080c1\u009f \ufffdreplacement \ue000private\uf8ff \U000f0000plane \uffff\ufffenon
[CLS] in text [SEP] and [MASK] too, [UNK], [PAD]; [cls] [Mask] [ MASK ] [[MASK]] a[MASK]b [MASK][MASK] [CLS [SEP]] ##ing ## #
!!!??? ...---___ ''""`` <<>> {}[]() @@##$$%% ^^&&**++==||\\\\// ~~;;::,,
don’t “quote” ‘single’ ‚low‘ „low“ «guillemets» ‹single› – — ― … ‰ ′ ″ ‽ § ¶ † ‡ • ‣ ⁂
x86_64-linux-gnu libstdc++.so.6 v1.2.3-rc.4+build.5 0x1F 1e-12 127.0.0.1:8080 50°C 3′ C# F♯ AT&T R&D rock'n'roll
ALLCAPS camelCase snake_case kebab-case MiXeD UPPERlower 4ever 2nd 21st 1980s Mr. Ph.D. U.S.A. e.g.
""".strip("\n")

# One pool a kind of trouble; random cases mix them.
POOLS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " \t\n\r\u00a0\u2002\u3000\u2028",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "".join(map(chr, range(0xC0, 0x250))), "".join(map(chr, range(0x300, 0x370))),
    "".join(map(chr, range(0x386, 0x3F0))), "".join(map(chr, range(0x400, 0x530))), "".join(map(chr, range(0x5B0, 0x5F0))),
    "".join(map(chr, range(0x610, 0x6E0))), "".join(map(chr, range(0x901, 0x970))), "".join(map(chr, range(0xE01, 0xE4F))),
    "".join(map(chr, range(0x1E00, 0x2000))), "".join(map(chr, range(0x2010, 0x2070))), "".join(map(chr, range(0x2070, 0x2150))),
    "".join(map(chr, range(0x2190, 0x2400))), "".join(map(chr, range(0x3001, 0x3100))), "".join(map(chr, range(0x4E00, 0x4E80))),
    "".join(map(chr, range(0xAC00, 0xD7A4, 29))), "".join(map(chr, range(0xF900, 0xFA00))), "".join(map(chr, range(0xFF01, 0xFFEE))),
    "".join(map(chr, range(0x1D400, 0x1D800, 7))), "".join(map(chr, range(0x1F300, 0x1F700, 5))), "\u200d\ufe0f\u200b\u00ad\ufeff\u2060\u202e",
    "\u0000\u0001\u000b\u000c\u001b\u007f\u0085\ue000\ufffd\U0010fffd", "".join(map(chr, range(0x20000, 0x20020))) + "\U0002b820\U0002b91f\U0002ceb0\U0002f800",
    "".join(map(chr, range(0x1100, 0x1200, 3))), "".join(map(chr, range(0x980, 0xE00, 5))), "".join(map(chr, range(0xF00, 0x1100, 3))),
]


def in_some_class_where_unicode_moved(character):
    """Lower-case forms that came after Unicode 15.0 depend on who was built when."""
    code = ord(character)
    return code == 0x1C89 or 0xA7CB <= code <= 0xA7DC or 0x10D50 <= code <= 0x10D65 or 0x16EA0 <= code <= 0x16EB8


def texts(vocabulary, full):
    rng = random.Random(20240607)
    plain = [token for token in vocabulary if token.isalpha() and len(token) > 2]
    lines = ["", " ", "\u200b", "a", "[MASK]", "\u0301", "[UNK]" * 5, "\U0010ffff", "x" * 100, "x" * 101, "é" * 100, "e\u0301" * 100,
             "\u0130" * 60, "한" * 60, "a" * 99 + "!", "word " * 40, "\u0301" * 300, "." * 150, "中" * 120]
    lines += SENTENCES.split("\n")
    # Every character of the vocabulary, and every character that becomes one.
    singles = [t for t in vocabulary if len(t) == 1 or (len(t) == 3 and t.startswith("##"))]
    lines += [" ".join(t[-1] for t in singles[i:i + 40]) for i in range(0, len(singles), 40)]
    folding = []
    for code in [*range(0x80, 0xAC00), *range(0xAC00, 0xD7A4, 41), *range(0xE000, 0x20000), *range(0x2F800, 0x2FA20, 7)]:
        character = chr(code)
        if in_some_class_where_unicode_moved(character): continue
        folded = full.normalizer.normalize_str(character)
        if folded.strip() and folded != character and folded.strip() != character: folding.append(character)
    lines += ["".join(c + rng.choice(["", "a", "s ", " "]) for c in folding[i:i + 32]) for i in range(0, len(folding), 32)]
    # Words of the vocabulary, joined, cut, capitalised, accented.
    for _ in range(700):
        words = []
        for _ in range(rng.randint(2, 7)):
            word = rng.choice(plain)
            kind = rng.randrange(8)
            if kind == 0: word = word.capitalize()
            if kind == 1: word = word.upper()
            if kind == 2: word += rng.choice(plain)
            if kind == 3: word = word[:rng.randint(1, len(word))] + rng.choice("'’-_./") + word[1:]
            if kind == 4: word = "".join(c + rng.choice(["", "", "\u0301", "\u0308", "\u0327"]) for c in word)
            if kind == 5: word += rng.choice([",", ".", "!", "…", ";", "。", "?!"])
            words.append(word)
        lines.append(rng.choice([" ", " ", " ", "  ", "\t", "\u00a0", "-"]).join(words))
    # Anything after anything.
    for _ in range(1100):
        pools = [rng.choice(POOLS) for _ in range(rng.randint(1, 4))] + [POOLS[0]]
        line = ""
        while len(line) < 28 and rng.random() < 0.95:
            line += "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, 6)))
            if rng.random() < 0.04: line += rng.choice(SPECIAL)
        lines.append(line)
    return lines


def case(text, tokenizer, max_length=None):
    if max_length is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_length)
    return tokenizer.encode(text).ids


def write_cases(vocabulary, folder):
    full = published(vocabulary)
    lines = texts(vocabulary, full)
    cases = [[text, case(text, full, 512)] for text in lines]
    rng = random.Random(7)
    for max_length in (2, 3, 4, 5, 8, 16, 128, 512):
        for text in rng.sample(lines, 12) + ["[MASK] " * 20, "unaffable embeddings " * 3]:
            cases.append([text, case(text, full, max_length), max_length, True, None, True])
    cases.append(["hello world, " * 300, case("hello world, " * 300, full, 512), 512, True, None, True])
    for options in ((False, None, True), (True, False, True), (False, True, True), (True, None, False), (False, False, False)):
        other = published(vocabulary, *options)
        for text in SENTENCES.split("\n") + rng.sample(lines, 30):
            cases.append([text, case(text, other, 512), 512, *options])
    if folder:
        theirs = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        theirs.no_padding()
        for text, ids, *options in cases:
            if not options or options[1:] == [True, None, True]:
                assert case(text, theirs, options[0] if options else 512) == ids, text
    with open(os.path.join(here, "tokenizer_cases.jsonl"), "w", newline="\n") as out:
        for one in cases:
            out.write(json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(len(cases), "cases")


def write_codepoints():
    """j: joined (removed, or a mark that is stripped); s: a space; a: stands alone; u: one word with its neighbours."""
    tiny = published({t: i for i, t in enumerate(SPECIAL + ["a", "b", "ab"])})
    kinds = {(7,): "j", (5, 6): "s", (5, 1, 6): "a", (1,): "u"}
    runs = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000: continue
        kind = kinds[tuple(case("a" + chr(code) + "b", tiny)[1:-1])]
        if runs and runs[-1][1] == kind:
            continue
        runs.append((code, kind))
    with open(os.path.join(here, "tokenizer_codepoints.txt"), "w", newline="\n") as out:
        out.write("# From this code point on, until the next: j joined, s space, a alone, u within a word.\n")
        line = ""
        for code, kind in runs:
            entry = f"{code:X}{kind} "
            if len(line) + len(entry) > 118:
                out.write(line.rstrip() + "\n")
                line = ""
            line += entry
        out.write(line.rstrip() + "\n")
    print(len(runs), "runs of code points")


if __name__ == "__main__":
    with open(vocabulary_file, encoding="utf-8", newline="\n") as file:
        pieces = {line.rstrip("\n"): number for number, line in enumerate(file)}
    write_cases(pieces, sys.argv[1] if len(sys.argv) > 1 else None)
    write_codepoints()
