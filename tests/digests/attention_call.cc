#include "digests/attention_call.h"

#include <algorithm>
#include <ostream>

namespace headlight::test {

std::vector<std::int64_t> draw_offsets(Random& random, std::int64_t n, std::int64_t total) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(n) + 1);
  for (std::int64_t& offset : offsets) offset = random.integer(0, total);
  offsets.front() = 0;
  offsets.back() = total;
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

namespace attention_call {

constexpr std::int64_t kDims[] = {1, 3, 8, 16, 16, 20, 32, 32, 33, 40, 48, 64, 64, 64, 72, 80, 96, 100, 128, 160, 256};

void draw_lengths(Random& random, AttentionSize& size) {
  const auto same_or = [&](std::int64_t least, std::int64_t most) {
    return random.once_in(2) ? size.query_length : random.integer(least, most);
  };
  switch (random.integer(0, 11)) {
    case 0:
    case 1:
    case 2:  // a few dozen rows and keys
      size.query_length = random.integer(1, 64);
      size.key_length = same_or(1, 64);
      break;
    case 3:  // next to nothing
      size.query_length = random.integer(0, 5);
      size.key_length = random.integer(0, 5);
      break;
    case 4:  // one row on many keys
      size.query_length = 1;
      size.key_length = random.integer(1, 2000);
      break;
    case 5:
    case 6:  // a few rows on many keys
      size.query_length = random.integer(2, 24);
      size.key_length = random.integer(100, 2000);
      break;
    case 7:  // many rows on several blocks of keys
      size.query_length = random.integer(200, 700);
      size.key_length = same_or(200, 1200);
      break;
    case 8:  // many rows on few keys
      size.query_length = random.integer(65, 400);
      size.key_length = random.integer(1, 40);
      break;
    default:
      size.query_length = random.integer(17, 220);
      size.key_length = same_or(17, 600);
  }
}

View<float, 4>::Shape draw_broadcast(Random& random, const AttentionSize& size) {
  View<float, 4>::Shape shape = {size.batch, size.query_heads, size.query_length, size.key_length};
  for (std::int64_t& extent : shape) extent = random.once_in(2) ? 1 : extent;
  return shape;
}

}  // namespace attention_call

AttentionSize draw_attention_size(Random& random, double work) {
  AttentionSize size;
  attention_call::draw_lengths(random, size);
  size.batch = random.once_in(2) ? 1 : random.integer(2, 4);
  size.key_value_heads = random.once_in(2) ? 1 : random.integer(2, 4);
  size.query_heads = size.key_value_heads * (random.once_in(3) ? random.integer(2, 4) : 1);
  size.head_dim = one_of(random, attention_call::kDims);
  size.value_dim = random.once_in(3) ? one_of(random, attention_call::kDims) : size.head_dim;

  const auto too_much = [&] {
    return static_cast<double>(size.batch * size.query_heads * size.query_length) *
               static_cast<double>(size.key_length * (size.head_dim + size.value_dim)) >
           work;
  };
  if (too_much()) size.batch = 1;
  if (too_much()) size.query_heads = size.key_value_heads;
  if (too_much()) size.query_heads = size.key_value_heads = 1;
  if (too_much()) size.head_dim = std::min<std::int64_t>(size.head_dim, 64);
  if (too_much()) size.value_dim = std::min<std::int64_t>(size.value_dim, 48);
  if (too_much()) size.head_dim = size.value_dim = 16;
  while (too_much()) size.key_length = size.key_length * 3 / 4;
  return size;
}

std::ostream& operator<<(std::ostream& words, const AttentionSize& size) {
  return words << " B=" << size.batch << " Lq=" << size.query_length << " Lk=" << size.key_length
               << " Hq=" << size.query_heads << " Hkv=" << size.key_value_heads << " D=" << size.head_dim
               << " Dv=" << size.value_dim;
}

AttentionChoice::AttentionChoice(Random& random, AttentionSize& size, Kind kind, std::ostream& words) {
  if (kind == Kind::all) draw_sequences(random, size, words);
  draw_intervals(random, size, kind, words);
  if (kind == Kind::all) draw_mask_and_bias(random, size, words);
  if (random.once_in(4)) {
    options.scale = random.uniform();
    words << " scale=" << *options.scale;
  }
  if (random.once_in(4)) {
    options.dropout.probability = 0.5f + 0.4375f * random.uniform();
    options.dropout.seed = random.next();
    options.dropout.stream = static_cast<std::uint32_t>(random.next());
    words << " dropout=" << options.dropout.probability;
  }
}

void AttentionChoice::draw_intervals(Random& random, const AttentionSize& size, Kind kind, std::ostream& words) {
  const std::int64_t reach = std::max<std::int64_t>(1, std::max(size.query_length, size.key_length));
  if (random.once_in(3)) {
    options.causal = kind == Kind::all && random.once_in(2) ? Causal::bottom_right : Causal::top_left;
    words << " causal=" << static_cast<int>(options.causal);
  }
  if (random.once_in(3)) {
    options.align = kind == Kind::all && random.once_in(2) ? Align::bottom_right : Align::top_left;
    words << " align=" << static_cast<int>(*options.align);
  }
  if (random.once_in(4)) {
    options.window.left = random.integer(-1, reach);
    options.window.right = random.integer(-1, reach / 2);
    words << " window=" << options.window.left << "," << options.window.right;
  }
  if (random.once_in(5)) {
    options.chunk = random.integer(1, reach);
    words << " chunk=" << options.chunk;
  }
}

void AttentionChoice::draw_sequences(Random& random, AttentionSize& size, std::ostream& words) {
  if (random.once_in(6)) {
    size.batch = 1;
    const std::int64_t sequences = random.integer(1, 6);
    query_offsets_ = draw_offsets(random, sequences, size.query_length);
    if (size.query_length != size.key_length || random.once_in(2)) {
      key_offsets_ = draw_offsets(random, sequences, size.key_length);
    }
    words << " sequences=" << sequences << (key_offsets_.empty() ? "" : " key_offsets");
  } else {
    if (random.once_in(4)) query_lengths_.assign(static_cast<std::size_t>(size.batch), 0);
    for (std::int64_t& length : query_lengths_) length = random.integer(0, size.query_length);
    if (random.once_in(4)) key_lengths_.assign(static_cast<std::size_t>(size.batch), 0);
    for (std::int64_t& length : key_lengths_) length = random.integer(0, size.key_length);
    words << (query_lengths_.empty() ? "" : " query_lengths") << (key_lengths_.empty() ? "" : " key_lengths");
  }
  options.query_offsets = query_offsets_;
  options.key_offsets = key_offsets_;
  options.query_lengths = query_lengths_;
  options.key_lengths = key_lengths_;
}

void AttentionChoice::draw_mask_and_bias(Random& random, const AttentionSize& size, std::ostream& words) {
  if (random.once_in(5)) {
    const auto shape = attention_call::draw_broadcast(random, size);
    mask_.resize(static_cast<std::size_t>(std::max<std::int64_t>(1, shape[0] * shape[1] * shape[2] * shape[3])));
    const std::int64_t odds = random.integer(2, 5);
    for (std::uint8_t& entry : mask_) entry = random.once_in(odds) ? 0 : static_cast<std::uint8_t>(odds);
    const MaskMeans means = random.once_in(2) ? MaskMeans::attend : MaskMeans::ignore;
    options.mask.emplace(View<const std::uint8_t, 4>(mask_.data(), shape), means);
    words << " mask=" << static_cast<int>(means) << ":" << shape[0] << "," << shape[1] << "," << shape[2] << ","
          << shape[3];
  }
  if (random.once_in(4)) {
    const auto shape = attention_call::draw_broadcast(random, size);
    const std::int64_t count = shape[0] * shape[1] * shape[2] * shape[3];
    const View<float, 1> bias(memory_.floats(count), {count});
    fill(random, bias, random.once_in(4) ? 20.0f : 1.0f);
    const bool infinities = random.once_in(3);
    for (std::int64_t n = 0; infinities && n < count; ++n) {
      if (random.once_in(6)) bias(n) = random.once_in(8) ? -3e38f : -kDigestInfinity;
    }
    options.bias = {bias.data, shape};
    words << " bias=" << shape[0] << "," << shape[1] << "," << shape[2] << "," << shape[3]
          << (infinities ? " with infinities" : "");
  }
}

void AttentionChoice::ask_for_probabilities(Random& random, const AttentionSize& size, std::ostream& words) {
  Probabilities& asked = options.probabilities;
  if (size.query_length > 0 && random.once_in(2)) {
    rows_.resize(static_cast<std::size_t>(random.integer(1, std::min<std::int64_t>(size.query_length, 9))));
    for (std::int64_t& row : rows_) row = random.integer(0, size.query_length - 1);
    asked.rows = rows_;
  }
  const std::int64_t rows = rows_.empty() ? size.query_length : static_cast<std::int64_t>(rows_.size());
  std::int64_t keys = size.key_length;
  if (!query_offsets_.empty() && random.once_in(2)) {
    asked.own_keys = true;
    const std::vector<std::int64_t>& offsets = key_offsets_.empty() ? query_offsets_ : key_offsets_;
    keys = 0;
    for (std::size_t s = 1; s < offsets.size(); ++s) keys = std::max(keys, offsets[s] - offsets[s - 1]);
  }
  const std::int64_t which = random.integer(1, 3);
  if ((which & 1) != 0) {
    asked.per_head = {memory_.floats(size.batch * size.query_heads * rows * keys),
                      {size.batch, size.query_heads, rows, keys}};
  }
  if ((which & 2) != 0) asked.averaged = {memory_.floats(size.batch * rows * keys), {size.batch, rows, keys}};
  words << " probabilities=" << which << " rows=" << rows << (asked.own_keys ? " own_keys" : "");
}

AttentionOperands::AttentionOperands(Random& random, const AttentionSize& size, std::ostream& words) {
  query = memory.heads(random, {size.batch, size.query_length, size.query_heads, size.head_dim});
  key = memory.heads(random, {size.batch, size.key_length, size.key_value_heads, size.head_dim});
  value = memory.heads(random, {size.batch, size.key_length, size.key_value_heads, size.value_dim});
  const std::int64_t numbers = random.integer(0, 19);
  fill(random, query, numbers == 0 ? 40.0f : numbers == 1 ? 1e-20f : 1.0f);
  fill(random, key, numbers == 2 ? 1e18f : 1.0f);
  fill(random, value, numbers == 3 ? 1e30f : 1.0f);
  if (numbers == 4) put_specials(random, query);
  if (numbers == 4 || numbers == 5) put_specials(random, key);
  if (numbers == 5 || numbers == 6) put_specials(random, value);
  if (numbers <= 6) words << " numbers=" << numbers;
}

}  // namespace headlight::test
