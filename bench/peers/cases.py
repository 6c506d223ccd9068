"""The cases: shapes alone, standard library only, so that they can be listed where nothing is installed.

Suites and names are those of the programs beside this folder: the report of tools/bench puts the rows together by them.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Gemm:
    """a [m, k] · weights [k, n]; the weights are constant, so a peer may pack them ahead. `type`: what is multiplied."""

    m: int
    n: int
    k: int
    quick: bool = False
    type: str = "float32"
    suite = "gemm"

    @property
    def name(self):
        kind = "packed" if self.type == "float32" else f"packed_{self.type}"
        return f"{kind}/{self.m}x{self.n}x{self.k}"

    @property
    def operations(self):
        return 2 * self.m * self.n * self.k


@dataclass(frozen=True)
class Attention:
    """query [B, Lq, Hq, D], key and value [B, Lk, Hkv, D]. `contiguous`: key and value lie in memory as [B, Hkv, Lk, D]."""

    name: str
    query_length: int
    key_length: int
    heads: int = 12
    head_dim: int = 64
    batch: int = 1
    key_value_heads: int = 0  # 0: as many as heads
    causal: bool = False
    window: int = -1  # keys seen on each side; -1: all
    key_lengths: tuple = ()  # [B]: keys at or past it are padding
    sequences: tuple = ()  # packed: lengths that add up to Lq = Lk
    boolean: bool = False  # a mask that hides every eighth entry, here and there
    slopes: bool = False  # ALiBi: 0.01 · (head + 1) · |row - key| less; who has no slopes adds a bias
    contiguous: bool = False
    suite: str = "attention"
    quick: bool = False
    type: str = "float32"  # of query, key, value and output

    @property
    def kv_heads(self):
        return self.key_value_heads or self.heads

    def visible(self, sample, row):
        """The keys [begin, end) that a query row sees."""
        begin, end = 0, self.key_length
        if self.sequences:
            for length in self.sequences:
                end = begin + length
                if row < end:
                    break
                begin = end
        if self.causal:
            end = min(end, row + 1)
        if self.window >= 0:
            begin, end = max(begin, row - self.window), min(end, row + self.window + 1)
        if self.key_lengths:
            end = min(end, self.key_lengths[sample])
        return begin, end

    @property
    def operations(self):
        """Of the two products, over visible pairs."""
        rows = ((sample, row) for sample in range(self.batch) for row in range(self.query_length))
        pairs = sum(end - begin for begin, end in (self.visible(*row) for row in rows))
        return 4 * self.head_dim * self.heads * (pairs * 7 // 8 if self.boolean else pairs)


@dataclass(frozen=True)
class Encoder:
    """The hidden states of all-MiniLM-L6-v2, or of seeded weights of its shape. `type`: in which its products are computed."""

    batch: int
    tokens: int
    quick: bool = False
    type: str = "float32"
    suite = "minilm"

    @property
    def name(self):
        shape = f"{self.batch}x{self.tokens}"
        return shape if self.type == "float32" else f"{self.type}/{shape}"

    @property
    def operations(self):
        width, inner, layers = 384, 1536, 6
        per_token = 2 * width * (4 * width + 2 * inner) + 4 * width * self.tokens
        return layers * self.batch * self.tokens * per_token


@dataclass(frozen=True)
class Family:
    """A published encoder's shape. `reach`: the keys that a row of a windowed layer sees on each side; `full_layers` see all."""

    name: str
    width: int
    inner: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    gated: bool = True
    causal: bool = False
    reach: int = -1
    full_layers: int = 0
    whole: bool = True

    def cut(self, layers):
        """The first so many of its layers, of which as large a share sees everything."""
        return replace(self, layers=layers, full_layers=round(self.full_layers * layers / self.layers), whole=False)

    def windowed(self, tokens):
        """Whether a window hides anything in that many tokens."""
        return 0 <= self.reach < tokens - 1

    def pairs(self, tokens):
        """Visible pairs of a row and a key, over all layers."""
        if self.causal:
            return self.layers * tokens * (tokens + 1) // 2
        full = self.layers * tokens * tokens
        hidden = tokens - 1 - self.reach if self.windowed(tokens) else 0
        return full - (self.layers - self.full_layers) * hidden * (hidden + 1)


FAMILIES = (
    Family("ModernBERT-base", 768, 1152, 22, 12, 12, 64, reach=64, full_layers=8),
    Family("XLM-R-base", 768, 3072, 12, 12, 12, 64, gated=False),
    Family("EmbeddingGemma-300M", 768, 1152, 24, 3, 1, 256, reach=256, full_layers=4),
    Family("Qwen3-Embedding-0.6B", 1024, 3072, 28, 16, 8, 128, causal=True),
)


@dataclass(frozen=True)
class FamilyEncoder:
    """The hidden states of an encoder of that shape with seeded weights. `type`: in which its products are computed."""

    family: Family
    batch: int
    tokens: int
    type: str = "float32"
    quick: bool = False
    suite = "families"

    @property
    def name(self):
        kind = "" if self.type == "float32" else f"{self.type}/"
        depth = "" if self.family.whole else f"/layers{self.family.layers}"
        return f"{self.family.name}/{kind}{self.batch}x{self.tokens}{depth}"

    @property
    def operations(self):
        shape = self.family
        projections = 2 * shape.heads + 2 * shape.key_value_heads  # query and output; key and value
        weights = shape.width * (projections * shape.head_dim + (3 if shape.gated else 2) * shape.inner)
        products = 2 * shape.layers * self.tokens * weights
        return self.batch * (products + 4 * shape.heads * shape.head_dim * shape.pairs(self.tokens))


@dataclass(frozen=True)
class AttentionTraining:
    """Attention of [1, L, H, D] forward and backward: gradients of query, key and value. `type`: of them and of their gradients."""

    length: int
    heads: int = 12
    head_dim: int = 64
    causal: bool = False
    dropout: float = 0.0
    quick: bool = False
    type: str = "float32"
    suite = "attention_backward"

    @property
    def name(self):
        first = "full" if self.type == "float32" else self.type
        kind = ("causal" if self.type == "float32" else f"{first}_causal") if self.causal else first
        kind += "_dropout" if self.dropout else ""
        return f"{kind}_with_forward/H{self.heads}/L{self.length}/D{self.head_dim}"

    @property
    def operations(self):
        """Of two products forward and five backward, over visible pairs."""
        pairs = self.length * (self.length + 1) // 2 if self.causal else self.length**2
        return 14 * self.head_dim * self.heads * pairs


@dataclass(frozen=True)
class LayerTraining:
    """A transformer encoder layer on [B, L, width] forward and backward: gradients of its input and all its parameters."""

    kind: str
    batch: int
    length: int
    width: int = 768
    heads: int = 12
    quick: bool = False
    suite = "training"

    @property
    def inner(self):
        return 4 * self.width

    @property
    def name(self):
        return f"{self.kind}/B{self.batch}/L{self.length}"

    @property
    def operations(self):
        per_token = 6 * self.width * (4 * self.width + 2 * self.inner) + 14 * self.length * self.width
        return self.batch * self.length * per_token


def self_attention(name, length, **options):
    return Attention(name, length, length, **options)


def packed(count, shortest, longest):
    """Lengths evenly from `shortest` to `longest`."""
    sequences = tuple(shortest + n * (longest - shortest) // (count - 1) for n in range(count))
    return self_attention(f"packed_sequences{count}/H12/D64", sum(sequences), sequences=sequences, suite="masks")


def decode(name, **options):
    return Attention(name, 1, 8192, heads=32, head_dim=128, suite="decode", **options)


def all_cases(layers=0):
    """`layers`: of each family, its first so many; 0: all."""
    yield Gemm(256, 256, 256, quick=True)
    for size in (512, 1024, 2048):
        yield Gemm(size, size, size)
    yield Gemm(128, 768, 768, quick=True)
    yield Gemm(128, 3072, 768)
    yield Gemm(128, 768, 3072)
    yield Gemm(16, 768, 768, quick=True)
    yield Gemm(1, 768, 768, quick=True)

    for type in ("bfloat16", "int8"):
        for size in (512, 1024, 2048):
            yield Gemm(size, size, size, type=type)
        yield Gemm(128, 3072, 768, type=type)
        yield Gemm(128, 768, 3072, type=type)
        yield Gemm(16, 768, 768, quick=True, type=type)
        yield Gemm(1, 4096, 4096, type=type)

    yield self_attention("full/H12/L128/D64", 128, quick=True)
    yield self_attention("full/H12/L512/D64", 512, quick=True)
    yield self_attention("full/H12/L1024/D64", 1024)
    yield self_attention("full/H12/L4096/D64", 4096)
    yield self_attention("full/H12/L128/D32", 128, head_dim=32)
    yield self_attention("full/H8/L2048/D128", 2048, heads=8, head_dim=128)
    yield self_attention("causal/H12/L512/D64", 512, causal=True, quick=True)
    yield self_attention("causal/H12/L1024/D64", 1024, causal=True)
    yield self_attention("causal/H12/L4096/D64", 4096, causal=True)
    for keys in (64, 256, 1024):
        yield self_attention(f"window{keys}/H12/L4096/D64", 4096, window=keys, suite="masks")
    yield self_attention("boolean/H12/L512/D64", 512, boolean=True, suite="masks")
    for length in (128, 512, 1024, 4096):
        yield self_attention(f"bfloat16/H12/L{length}/D64", length, type="bfloat16")
    yield self_attention("bfloat16/H8/L2048/D128", 2048, heads=8, head_dim=128, type="bfloat16")
    for length in (1024, 4096):
        yield self_attention(f"bfloat16_causal/H12/L{length}/D64", length, causal=True, type="bfloat16")
    for length in (512, 2048):
        yield self_attention(f"slopes/H12/L{length}/D64", length, slopes=True, suite="masks")
    yield packed(64, 20, 500)
    yield self_attention("key_lengths_half/B4/H12/L1024/D64", 1024, batch=4, key_lengths=(512,) * 4, suite="masks")

    yield decode("by_head/1x8192/H32/D128", contiguous=True)
    yield decode("strided/1x8192/H32/D128")
    yield decode("by_head/1x8192/H32/D128/bfloat16", contiguous=True, type="bfloat16")
    yield decode("by_head/1x8192/H32_8/D128", key_value_heads=8, contiguous=True, quick=True)
    yield decode("by_head/1x8192/H32_8/D128/bfloat16", key_value_heads=8, contiguous=True, type="bfloat16")

    yield self_attention("full/H2/L5/D4", 5, heads=2, head_dim=4, quick=True)
    yield self_attention("full/H12/L16/D64", 16, quick=True)

    for tokens in (8, 16, 32, 128, 512):
        yield Encoder(1, tokens, quick=tokens in (16, 128))
    yield Encoder(32, 128)
    for type in ("bfloat16", "int8"):
        for batch, tokens in ((1, 8), (1, 16), (1, 128), (1, 512), (32, 128)):
            yield Encoder(batch, tokens, type=type)

    for family in (family.cut(layers) if layers else family for family in FAMILIES):
        for batch, tokens in ((1, 16), (1, 128), (1, 2048), (32, 128)):
            for type in ("float32", "bfloat16", "int8"):
                yield FamilyEncoder(family, batch, tokens, type)

    yield AttentionTraining(1024, quick=True)
    yield AttentionTraining(4096)
    yield AttentionTraining(1024, causal=True)
    yield AttentionTraining(4096, causal=True)
    yield AttentionTraining(1024, dropout=0.1)
    for length in (512, 1024, 4096):
        yield AttentionTraining(length, type="bfloat16")
    yield AttentionTraining(2048, heads=8, head_dim=128, type="bfloat16")
    yield AttentionTraining(1024, causal=True, type="bfloat16")
    yield AttentionTraining(4096, causal=True, type="bfloat16")
    yield LayerTraining("width512", 32, 100, width=512, heads=8)
    yield LayerTraining("bert_base", 8, 128)
    yield LayerTraining("bert_base", 1, 2048)
