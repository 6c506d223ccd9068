"""Token ids, and the texts that they become again, of tokenizers of every kind, by Hugging Face tokenizers 0.23.3.

tokenizers/KIND.jsonl: a line {"tokenizer": …, the content of a tokenizer.json} and behind it a line for each case,
[text, pair or null, ids, decoded, decoded without special tokens].

With a folder and a number as arguments, so many cases of each tokenizer go there instead (HEADLIGHT_TOKENIZER_CASES
names the folder to the test). With further arguments, tokenizer.json files, these are the tokenizers.
"""

import json
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

here = os.path.dirname(os.path.abspath(__file__))
SENTENCES = open(os.path.join(here, "tokenizer.py")).read().split('SENTENCES = """')[1].split('"""')[0].strip().split("\n")
PARTS = (
    "'s|'S|'ll|'LL|'re|'Ve|'d|'m|'t|'ſ| |  |   |\t|\n|\r\n|\r|\u00a0|\u3000|\u2028|\u200b|\u200d|\ufeff|\u0301|\u0308\u0323|e\u0301|"
    "a\u0300\u0301|1|12|1234567|٣٤|½|Ⅷ|²|中|の|한|각|İ|ı|ß|ﬁ|ﷺ|™|Å|é|👩‍👩‍👧|🇩🇪🇯|1️⃣|\x00|\x01|\x1f|\x7f|\ufffd|\u0600a|क्षि|ក្ក|"
    "▁|▁▁| ▁|Ġ|<s>|</s>|<unk>|[CLS]|[MASK]|<pad>|<mask>| <mask> |<0x41>|``|''|!?|...|…|(a)|$1|_x_|-|—|เก|ｱ|Ａ\u0300|Ａ|ｶﾞ|"
    "e\u200d|a\ufe0f|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx|abababababababab|𝒜|ǆ|Σς|ΐ|\u1e9b\u0323|\u0958|\u2126|豈|①|"
    "㍿|\u00ad|\u061c|\u3164|\u034f|abc|the|The| the|hello|world|Hello| don't|n't"
).split("|")


def character(draw):
    k = draw.random()
    most = next(most for share, most in ((0.3, 0x80), (0.5, 0x800), (0.65, 0x3000), (0.85, 0x10000), (1, 0x20000)) if k < share)
    while True:
        point = draw.randrange(most)
        # Lower-case forms of later versions of Unicode are those that lib/text leaves out.
        if not 0xD800 <= point < 0xE000 and chr(point).isprintable() or point < 0xA0:
            return chr(point)


def text(draw):
    k = draw.random()
    if k < 0.35:
        return "".join(draw.choice(PARTS) for _ in range(draw.randrange(1, 12)))
    if k < 0.5:
        return "".join(character(draw) for _ in range(draw.randrange(1, 30)))
    if k < 0.7:
        sentence = draw.choice(SENTENCES)
        begin = draw.randrange(len(sentence))
        return sentence[begin : draw.randrange(begin, len(sentence) + 1)] + draw.choice(PARTS) + draw.choice(SENTENCES)[: draw.randrange(30)]
    if k < 0.85:
        return "".join(draw.choice([" ", "  ", "\n", "a", "B", "1", ".", "'", "é", "中", "\t"]) for _ in range(draw.randrange(1, 40)))
    return " ".join(draw.choice(PARTS + SENTENCES[0].split()) for _ in range(draw.randrange(1, 10)))


def byte_level(pattern=None, prefix=False, size=420):
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=pattern is None)
    split = pattern and pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level]) if pattern else level
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")


def byte_level_kinds():
    gpt2 = byte_level()
    gpt2.add_special_tokens(["<|endoftext|>"])
    gpt2.post_processor = processors.ByteLevel(trim_offsets=False)
    yield gpt2
    roberta = byte_level(prefix=True)
    mask = AddedToken("<mask>", lstrip=True, special=True, normalized=False)
    roberta.add_special_tokens(["<s>", "</s>", mask])
    pair = [(token, roberta.token_to_id(token)) for token in ("</s>", "<s>")]
    roberta.post_processor = processors.RobertaProcessing(*pair)
    yield roberta
    llama3 = byte_level(LLAMA3)
    kept = json.loads(llama3.to_str())
    kept["model"]["ignore_merges"] = True
    kept["model"]["merges"] = kept["model"]["merges"][::2]  # so that tokens are found that no merges make
    vocabulary = set(kept["model"]["vocab"])
    kept["model"]["merges"] = [pair for pair in kept["model"]["merges"] if "".join(pair) in vocabulary]
    llama3 = Tokenizer.from_str(json.dumps(kept))
    llama3.add_special_tokens(["<|begin|>"])
    begin = [("<|begin|>", llama3.token_to_id("<|begin|>"))]
    around = processors.TemplateProcessing(single="<|begin|> $A", pair="<|begin|> $A <|begin|>:1 $B:1", special_tokens=begin)
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), around])
    yield llama3
    qwen2 = byte_level(QWEN2)
    qwen2.normalizer = normalizers.NFC()
    yield qwen2


def llama(scheme=None, fallback=True, fuse=True):
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)]
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=520, special_tokens=tokens, limit_alphabet=70, show_progress=False)
    trained.train_from_iterator(SENTENCES, trainer)
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = Tokenizer(models.BPE(model["vocab"], merges, unk_token="<unk>", byte_fallback=fallback, fuse_unk=fuse))
    if scheme:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.add_special_tokens(tokens[:3])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(parts)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return tokenizer


def byte_fallback_kinds():
    yield llama()
    yield llama("first")
    yield llama("always", fallback=False, fuse=False)


def suffix_kinds():
    clip = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    clip.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    parts = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation(), pre_tokenizers.Digits(individual_digits=True)]
    clip.pre_tokenizer = pre_tokenizers.Sequence(parts)
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=80, show_progress=False)
    clip.train_from_iterator(SENTENCES, trainer)
    clip.decoder = decoders.BPEDecoder("</w>")
    yield clip
    prefix = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    prefix.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], continuing_subword_prefix="##", limit_alphabet=80, show_progress=False)
    prefix.train_from_iterator(SENTENCES, trainer)
    prefix.decoder = decoders.WordPiece("##", True)
    yield prefix


def charsmap(rules):
    """SentencePiece's table of these replacements: a double array of Darts, placed by trying, then the results."""
    root = {}
    results = b""
    for key, result in rules.items():
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[None] = len(results)
        results += result.encode() + b"\0"
    units = {0: 0}

    def place(node, at):
        labels = [0 if label is None else label for label in node]
        offset = next(o for o in range(1, 1 << 20) if all((at ^ o ^ label) not in units for label in labels))
        units[at] |= offset << 10 | (1 << 8 if None in node else 0)
        for label in labels:
            units[at ^ offset ^ label] = label
        for label, child in node.items():
            if label is None:
                units[at ^ offset] = 1 << 31 | child
            else:
                place(child, at ^ offset ^ label)

    place(root, 0)
    array = b"".join(units.get(n, 0).to_bytes(4, "little") for n in range(max(units) + 1))
    return len(array).to_bytes(4, "little") + array + results


RULES = {"\t": " ", "\n": " ", "\r": " ", "\x01": "", "\u200b": "", "\u3000": " ", "\u00a0": " ", "Ａ": "A", "ﬁ": "fi", "½": "1⁄2", "²": "2",
         "™": "TM", "e\u0301": "é", "a\u0300": "à", "ｶﾞ": "ガ", "ｱ": "ア", "①": "1", "\u2126": "Ω", "𝒜": "A", "\u00ad": "", "İ": "i\u0307"}


def unigram(before, splitter, decoder, fallback=False):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(before)
    tokenizer.pre_tokenizer = splitter
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] + (["<0x%02X>" % byte for byte in range(256)] if fallback else [])
    trainer = trainers.UnigramTrainer(vocab_size=700 + 256 * fallback, special_tokens=tokens, unk_token="<unk>", max_piece_length=10, show_progress=False)
    tokenizer.train_from_iterator([line for line in SENTENCES if line.isascii()] + SENTENCES[5:20], trainer)
    file = json.loads(tokenizer.to_str())
    file["model"]["vocab"] = [[token, round(score, 4)] for token, score in file["model"]["vocab"]]
    file["model"]["byte_fallback"] = fallback
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.decoder = decoder
    both = "<s> $A </s> </s> $B </s>"
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair=both, special_tokens=[("<s>", 0), ("</s>", 2)])
    return tokenizer


def unigram_kinds():
    spaces = Regex(" {2,}")
    precompiled = normalizers.Precompiled(charsmap(RULES))
    splitter = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    yield unigram([precompiled, normalizers.Replace(spaces, " ")], splitter, decoders.Metaspace())
    nmt = [normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(False, True), normalizers.Replace(spaces, "▁")]
    first = pre_tokenizers.Metaspace(prepend_scheme="first")
    decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    yield unigram(nmt, first, decoder, fallback=True)


def word_piece_kinds():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bert.normalizer = normalizers.BertNormalizer()
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=450, special_tokens=special, limit_alphabet=110, show_progress=False)
    bert.train_from_iterator(SENTENCES, trainer)
    bert.decoder = decoders.WordPiece("##", True)
    both = "[CLS] $A [SEP] $B:1 [SEP]:1"
    bert.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair=both, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    yield bert
    cased = Tokenizer.from_str(bert.to_str())
    cased.normalizer = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    cased.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    cased.add_tokens([AddedToken("Hello", normalized=True), AddedToken("don", single_word=True), AddedToken(" the", rstrip=True, lstrip=True)])
    yield cased


def splitter_kinds():
    """Each way to split, over a model whose tokens show where a piece begins."""
    alphabet = "ab1.,-' \n\téAB中2_"
    vocabulary = {"[UNK]": 0}
    for letter in alphabet:
        for token in (letter, "##" + letter):
            vocabulary[token] = len(vocabulary)
    behaviors = ("isolated", "removed", "contiguous", "merged_with_previous", "merged_with_next")
    splitters = [pre_tokenizers.Punctuation(behavior) for behavior in behaviors]
    splitters += [pre_tokenizers.Split(text, behavior, invert) for text in ("a", "..") for behavior in behaviors for invert in (False, True)]
    splitters += [pre_tokenizers.Split(Regex(pattern), behavior, invert) for pattern in (LLAMA3, QWEN2)
                  for behavior, invert in (("removed", True), ("contiguous", False), ("merged_with_next", True))]
    splitters += [pre_tokenizers.Digits(False), pre_tokenizers.Digits(True), pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit()]
    for splitter in splitters:
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=30))
        tokenizer.pre_tokenizer = splitter
        yield tokenizer


def write(path, tokenizers, cases, seed, make):
    with open(path, "w") as file:
        for tokenizer in tokenizers:
            tokenizer.no_truncation()
            tokenizer.no_padding()
            file.write(json.dumps({"tokenizer": json.loads(tokenizer.to_str())}, ensure_ascii=False, separators=(",", ":")) + "\n")
            draw = random.Random(seed)
            for number in range(cases):
                case = [make(draw), make(draw) if number % 10 == 3 else None]
                try:
                    ids = tokenizer.encode(*(part for part in case if part is not None)).ids
                    case += [ids]
                    case += [tokenizer.decode(ids, skip_special_tokens=False)]
                    case += [tokenizer.decode(ids)]
                except BaseException as error:  # some normalizers and decoders panic
                    if "Panic" not in type(error).__name__:
                        raise
                if len(case) > 2:
                    file.write(json.dumps(case, separators=(",", ":")) + "\n")


def few_letters(draw):
    return "".join(draw.choice("aabb1.,-'  \n\téA中2_") for _ in range(draw.randrange(1, 20)))


def kept(name, make):
    """Trained again, tokens that are as frequent as others come in another order: tokenizers that are there stay."""
    path = os.path.join(here, "tokenizers", name + ".jsonl")
    if not os.path.exists(path):
        return list(make())
    lines = [json.loads(line) for line in open(path)]
    return [Tokenizer.from_str(json.dumps(line["tokenizer"])) for line in lines if isinstance(line, dict)]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "tokenizers")
    many = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    os.makedirs(folder, exist_ok=True)
    for number, path in enumerate(sys.argv[3:]):
        write(os.path.join(folder, "file_%d.jsonl" % number), [Tokenizer.from_file(path)], many, 7, text)
    if len(sys.argv) > 3:
        return
    kinds = {"byte_level": byte_level_kinds, "byte_fallback": byte_fallback_kinds, "suffix": suffix_kinds, "unigram": unigram_kinds,
             "word_piece": word_piece_kinds}
    for name, make in kinds.items():
        write(os.path.join(folder, name + ".jsonl"), kept(name, make), many or 60, 7, text)
    write(os.path.join(folder, "splitters.jsonl"), kept("splitters", splitter_kinds), many or 12, 8, few_letters)


main()
