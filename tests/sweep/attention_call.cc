#include "sweep/attention_call.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "ops/attention/plan.h"

namespace headlight::sweep {
namespace {

using test::AttentionCase;

constexpr const char* kLayouts[] = {"contiguous", "by_head", "interleaved", "gapped"};

// Lanes and tiles, rows of a short call, rows of a block.
constexpr std::int64_t kRowEdges[] = {4, 8, 12, 16, 24, 32, 48, 96};
constexpr std::int64_t kKeyEdges[] = {4, 8, 16, 32, 48, 64};
constexpr std::int64_t kDimEdges[] = {4, 8, 16, 32, 64, 128};

void draw_sizes(AttentionCase& c, test::Random& random) {
  c.batch = random.once_in(2) ? 1 : random.integer(1, 4);
  c.key_value_heads = random.once_in(2) ? 1 : random.integer(1, 3);
  c.query_heads = c.key_value_heads * (random.once_in(2) ? 1 : random.integer(1, 4));
  c.head_dim = draw_size(random, random.once_in(4) ? 140 : 40, kDimEdges);
  c.value_dim = random.once_in(2) ? c.head_dim : draw_size(random, random.once_in(4) ? 140 : 40, kDimEdges);
  c.query_length = draw_size(random, 50, kRowEdges);
  c.key_length = random.once_in(3) ? c.query_length : draw_size(random, 100, kKeyEdges);
  if (random.once_in(40)) c.query_length = 0;
  if (random.once_in(40)) c.key_length = 0;
}

// One or a few rows on many keys, as in decoding: past a block of keys, or several.
void draw_decoding(AttentionCase& c, test::Random& random) {
  c.head_dim = draw_size(random, random.once_in(2) ? 140 : 32, kDimEdges);
  c.value_dim = random.once_in(2) ? c.head_dim : draw_size(random, 64, kDimEdges);
  c.query_length = random.integer(1, random.once_in(2) ? 1 : 9);
  const std::int64_t block = ops::attention_key_block({1, 1, 1, 1, 1, 1, c.head_dim, c.value_dim});
  c.key_length = std::max<std::int64_t>(1, block * random.integer(1, 3) + random.integer(-2, 2));
  c.batch = random.integer(1, 2);
  c.key_value_heads = random.integer(1, 3);
  c.query_heads = c.key_value_heads * random.integer(1, 4);
}

// So much that a call wakes every worker.
void draw_large(AttentionCase& c, test::Random& random, bool is_backward) {
  c.batch = random.integer(1, 2);
  c.key_value_heads = random.integer(1, 2);
  c.query_heads = c.key_value_heads * random.integer(1, 2);
  c.head_dim = c.value_dim = draw_size(random, 32, kDimEdges);
  c.query_length = random.integer(90, is_backward ? 160 : 300);
  c.key_length = random.once_in(2) ? c.query_length : random.integer(90, is_backward ? 160 : 300);
}

// One of the options stays, with what belongs to it, or none.
void keep_one_option(AttentionCase& c, test::Random& random) {
  constexpr std::string_view kSizes[] = {"B", "Lq", "Lk", "Hq", "Hkv", "D", "Dv"};
  constexpr std::pair<std::string_view, std::string_view> kTogether[] = {{"mask", "mask_means"},
                                                                         {"bias", "bias_has_infinities"},
                                                                         {"query_offsets", "key_offsets"},
                                                                         {"window", "align"},
                                                                         {"alibi", "query_start"}};
  Words words;
  Fields(words).others([](const auto&...) { return false; }, c.line());
  const Word kept = words[static_cast<std::size_t>(random.integer(0, std::ssize(words) - 1))];
  c = AttentionCase();
  for (const Word& word : words) {
    bool stays = word == kept || std::ranges::find(kSizes, word.name) != std::end(kSizes);
    for (const auto& [option, other] : kTogether) stays = stays || (kept.name == option && word.name == other);
    if (stays) (void)c.set(word.name, word.value);
  }
}

}  // namespace

void AttentionCall::visit(Fields& fields) {
  // The seed is that of every case.
  fields.others([&](const auto& name, const auto& value) { return name != "seed" && call.set(name, value); },
                call.line().substr(call.line().find(' ') + 1));
  fields.choice("layout", layout, kLayouts);
}

void draw_attention(AttentionCall& made, test::Random& random, bool is_backward) {
  AttentionCase& c = made.call;
  const std::int64_t kind = random.integer(1, 20);
  if (kind == 1) {
    draw_large(c, random, is_backward);
  } else if (kind <= 4) {
    draw_decoding(c, random);
  } else {
    draw_sizes(c, random);
  }
  test::draw_attention_options(random, c);
  if (random.once_in(4)) keep_one_option(c, random);
  made.layout = static_cast<test::Layout>(random.integer(0, std::ssize(kLayouts) - 1));
}

}  // namespace headlight::sweep
