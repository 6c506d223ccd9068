#include "support/attention_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "reference/attention.h"

namespace headlight::test {
namespace {

std::vector<std::int64_t> integers(const std::string& text) {
  std::vector<std::int64_t> numbers;
  std::stringstream stream(text);
  for (std::string one; std::getline(stream, one, ',');) numbers.push_back(std::stoll(one));
  return numbers;
}

Shape4 shape(const std::string& text) {
  const auto numbers = integers(text);
  if (numbers.size() != 4) throw std::invalid_argument("expected four extents, found '" + text + "'");
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

template <class Numbers>
std::string joined(const Numbers& numbers) {
  std::string text;
  for (const std::int64_t n : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(n);
  }
  return text;
}

NumberType number_type(const std::string& text) {
  const std::optional<NumberType> type = parse_number_type(text);
  if (type && *type <= NumberType::int8) return *type;
  throw std::invalid_argument("expected a type, found '" + text + "'");
}

std::array<NumberType, 4> four_types(const std::string& text) {
  std::array<NumberType, 4> types{};
  std::stringstream stream(text);
  std::string one;
  for (NumberType& type : types) {
    std::getline(stream, one, ',');
    type = number_type(one);
  }
  return types;
}

using Number = std::int64_t AttentionCase::*;
using ListOf = std::vector<std::int64_t> AttentionCase::*;

constexpr std::pair<const char*, Number> kNumbers[] = {
    {"B", &AttentionCase::batch},        {"Lq", &AttentionCase::query_length},     {"Lk", &AttentionCase::key_length},
    {"Hq", &AttentionCase::query_heads}, {"Hkv", &AttentionCase::key_value_heads}, {"D", &AttentionCase::head_dim},
    {"Dv", &AttentionCase::value_dim}};

constexpr std::pair<const char*, ListOf> kLists[] = {
    {"query_lengths", &AttentionCase::query_lengths}, {"key_lengths", &AttentionCase::key_lengths},
    {"query_offsets", &AttentionCase::query_offsets}, {"key_offsets", &AttentionCase::key_offsets},
    {"key_start", &AttentionCase::key_start},         {"query_start", &AttentionCase::query_start}};

// n numbers that add up to `total`, some of them 0, as the offsets at which they start and end.
std::vector<std::int64_t> random_offsets(Random& random, std::int64_t n, std::int64_t total) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(n) + 1);
  for (std::int64_t& offset : offsets) offset = random.integer(0, total);
  offsets.front() = 0;
  offsets.back() = total;
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

std::int64_t random_length(Random& random, std::int64_t longest) {
  switch (random.integer(0, 5)) {
    case 0:
      return random.integer(0, 3);
    case 1:
    case 2:
      return random.integer(1, std::min<std::int64_t>(longest, 40));
    default:
      return random.integer(1, longest);
  }
}

// Every option but the shape.
void draw_options(Random& random, AttentionCase& c) {
  const std::int64_t reach = std::max<std::int64_t>(1, std::max(c.query_length, c.key_length));
  if (random.once_in(3)) c.causal = random.once_in(2) ? Causal::top_left : Causal::bottom_right;
  if (random.once_in(3)) c.align = random.once_in(2) ? Align::top_left : Align::bottom_right;
  if (random.once_in(3)) c.window = {random.integer(-1, reach), random.integer(-1, reach / 2)};
  if (random.once_in(4)) c.chunk = random.integer(1, reach);
  if (random.once_in(5)) {
    c.batch = 1;
    const std::int64_t sequences = random.integer(1, 6);
    c.query_offsets = random_offsets(random, sequences, c.query_length);
    if (c.query_length != c.key_length || random.once_in(2)) {
      c.key_offsets = random_offsets(random, sequences, c.key_length);
    }
  } else {
    if (random.once_in(4)) c.query_lengths.assign(static_cast<std::size_t>(c.batch), 0);
    for (std::int64_t& length : c.query_lengths) length = random.integer(0, c.query_length);
    if (random.once_in(3)) c.key_lengths.assign(static_cast<std::size_t>(c.batch), 0);
    for (std::int64_t& length : c.key_lengths) length = random.integer(0, c.key_length);
  }
  const auto broadcast = [&] {
    Shape4 extents{c.batch, c.query_heads, c.query_length, c.key_length};
    for (std::int64_t& extent : extents) extent = random.once_in(2) ? 1 : extent;
    return extents;
  };
  if (random.once_in(4)) {
    c.mask = broadcast();
    c.mask_means = random.once_in(2) ? MaskMeans::attend : MaskMeans::ignore;
  }
  if (random.once_in(4)) {
    c.bias = broadcast();
    c.bias_has_infinities = random.once_in(3);
  }
  if (random.once_in(4)) c.scale = 0.5f * random.uniform();
  if (random.once_in(4)) c.dropout = 0.5f + 0.4375f * random.uniform();
}

// Score modifiers and positions, which came later: from numbers of their own, so that cases before stay as
// they were.
void draw_modifiers(std::uint64_t seed, AttentionCase& c) {
  Random random(seed + 0x57E95);
  // Where a cap begins to bend, and where it is all there is.
  if (random.once_in(4)) c.softcap = random.once_in(2) ? 0.75f + 0.5f * random.uniform() : 20.0f;
  if (random.once_in(4)) c.alibi = true;
  if (random.once_in(4)) c.sinks = true;
  const std::int64_t sequences =
      c.query_offsets.empty() ? c.batch : static_cast<std::int64_t>(c.query_offsets.size()) - 1;
  const auto draw_start = [&](std::int64_t least, std::int64_t most) {
    std::vector<std::int64_t> starts(static_cast<std::size_t>(random.once_in(2) ? 1 : sequences));
    for (std::int64_t& start : starts) start = random.integer(std::max<std::int64_t>(least, 0), most);
    return starts;
  };
  std::int64_t first = 0;
  if (random.once_in(4)) {
    c.key_start = draw_start(0, 2 * c.key_length);
    first = c.key_start[0];
  }
  if (random.once_in(4)) c.query_start = draw_start(first - c.query_length / 2, first + c.key_length);
}

// Types, which came later still: one for all four in most cases, else each by itself.
void draw_types(std::uint64_t seed, AttentionCase& c) {
  Random random(seed + 0x7F9E5);
  const auto draw = [&] { return static_cast<NumberType>(random.integer(0, 2)); };
  c.types.fill(static_cast<NumberType>(random.integer(1, 2)));
  if (random.once_in(3)) return;
  for (NumberType& type : c.types) {
    if (random.once_in(2)) type = draw();
  }
}

}  // namespace

bool AttentionCase::set(const std::string& name, const std::string& value) {
  for (const auto& [number_name, number] : kNumbers) {
    if (name == number_name) return this->*number = std::stoll(value), true;
  }
  for (const auto& [list_name, list] : kLists) {
    if (name == list_name) return this->*list = integers(value), true;
  }
  if (name == "seed") return seed = std::stoull(value), true;
  if (name == "causal") return causal = value == "top-left" ? Causal::top_left : Causal::bottom_right, true;
  if (name == "align") return align = value == "top-left" ? Align::top_left : Align::bottom_right, true;
  if (name == "window") return window = {integers(value).at(0), integers(value).at(1)}, true;
  if (name == "chunk") return chunk = std::stoll(value), true;
  if (name == "mask") return mask = shape(value), true;
  if (name == "mask_means") return mask_means = value == "attend" ? MaskMeans::attend : MaskMeans::ignore, true;
  if (name == "bias") return bias = shape(value), true;
  if (name == "bias_has_infinities") return bias_has_infinities = value == "1", true;
  if (name == "scale") return scale = std::stof(value), true;
  if (name == "softcap") return softcap = std::stof(value), true;
  if (name == "alibi") return alibi = value == "1", true;
  if (name == "sinks") return sinks = value == "1", true;
  if (name == "types") return types = four_types(value), true;
  if (name == "dropout") return dropout = std::stof(value), true;
  return false;
}

AttentionCase AttentionCase::parse(const std::string& line) {
  AttentionCase parsed;
  std::stringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::invalid_argument("cannot read '" + word + "' in '" + line + "'");
    (void)parsed.set(word.substr(0, equals), word.substr(equals + 1));
  }
  // Whatever set() did not know would be missing now.
  if (parsed.line() != line) throw std::invalid_argument("'" + line + "' was read as '" + parsed.line() + "'");
  return parsed;
}

std::string AttentionCase::line() const {
  std::ostringstream text;
  text.precision(9);
  text << "seed=" << seed;
  for (const auto& [name, number] : kNumbers) text << " " << name << "=" << this->*number;
  if (causal != Causal::none) text << " causal=" << (causal == Causal::top_left ? "top-left" : "bottom-right");
  if (align) text << " align=" << (*align == Align::top_left ? "top-left" : "bottom-right");
  if (window.left >= 0 || window.right >= 0) text << " window=" << window.left << "," << window.right;
  if (chunk > 0) text << " chunk=" << chunk;
  for (const auto& [name, list] : kLists) {
    if (!(this->*list).empty()) text << " " << name << "=" << joined(this->*list);
  }
  if (mask) {
    text << " mask=" << joined(*mask) << " mask_means=" << (mask_means == MaskMeans::attend ? "attend" : "ignore");
  }
  if (bias) text << " bias=" << joined(*bias);
  if (bias_has_infinities) text << " bias_has_infinities=1";
  if (scale) text << " scale=" << *scale;
  if (softcap != 0) text << " softcap=" << softcap;
  if (alibi) text << " alibi=1";
  if (sinks) text << " sinks=1";
  if (types != std::array<NumberType, 4>{}) {
    text << " types=" << name(types[0]);
    for (std::size_t n = 1; n < types.size(); ++n) text << "," << name(types[n]);
  }
  if (dropout != 0) text << " dropout=" << dropout;
  return text.str();
}

void draw_attention_options(Random& random, AttentionCase& c) {
  draw_options(random, c);
  draw_modifiers(random.next(), c);
  if (random.once_in(2)) draw_types(random.next(), c);
}

AttentionCase random_attention_case(std::uint64_t seed, std::int64_t longest) {
  Random random(seed);
  AttentionCase c;
  c.seed = seed;
  c.batch = random.integer(1, 3);
  c.query_length = random_length(random, longest);
  c.key_length = random.once_in(2) ? c.query_length : random_length(random, longest);
  c.key_value_heads = random.integer(1, 3);
  c.query_heads = c.key_value_heads * random.integer(1, 3);
  c.head_dim = random.once_in(4) ? random.integer(1, 130) : random.integer(1, 40);
  c.value_dim = random.once_in(2) ? c.head_dim : random.integer(1, 70);
  draw_options(random, c);
  draw_modifiers(seed, c);
  draw_types(seed, c);
  return c;
}

AttentionCase random_case_of_several_blocks(std::uint64_t seed, const KeyBlock& key_block) {
  Random random(seed);
  AttentionCase c;
  c.seed = seed;
  const bool wide = random.once_in(4);
  c.head_dim = wide ? random.integer(65, 90) : random.integer(1, 20);
  c.value_dim = random.once_in(2) ? c.head_dim : wide ? random.integer(64, 80) : random.integer(1, 20);
  const std::int64_t block = key_block(c.head_dim, c.value_dim);
  // As many rows as keys, or few: rows that stand at the top left would never see the second block otherwise.
  const bool square = random.once_in(2);
  c.key_length = random.once_in(6)
                     ? 2 * block
                     : random.integer(square ? block + 1 : 3 * block / 2, square ? 2 * block + 40 : 3 * block);
  c.query_length = square ? std::max<std::int64_t>(1, c.key_length - random.integer(-20, 20)) : random.integer(1, 60);
  c.batch = square ? 1 : random.integer(1, 2);
  c.key_value_heads = square ? 1 : random.integer(1, 2);
  c.query_heads = c.key_value_heads * random.integer(1, 2);
  draw_options(random, c);
  // Of packed sequences the last is the longest by far, or none would reach so many.
  for (std::vector<std::int64_t>* offsets : {&c.query_offsets, &c.key_offsets}) {
    for (std::size_t s = 0; s + 1 < offsets->size(); ++s) (*offsets)[s] /= 8;
  }
  draw_modifiers(seed, c);
  draw_types(seed, c);
  return c;
}

namespace {

Start start_of(const std::vector<std::int64_t>& starts) {
  if (starts.size() == 1) return starts[0];
  return starts;
}

}  // namespace

AttentionInputs::AttentionInputs(const AttentionCase& c) {
  Random random(c.seed);
  query = random.normal_tensor<4>({c.batch, c.query_length, c.query_heads, c.head_dim});
  key = random.normal_tensor<4>({c.batch, c.key_length, c.key_value_heads, c.head_dim});
  value = random.normal_tensor<4>({c.batch, c.key_length, c.key_value_heads, c.value_dim});
  options.causal = c.causal;
  options.align = c.align;
  options.window = c.window;
  options.chunk = c.chunk;
  options.query_lengths = c.query_lengths;
  options.key_lengths = c.key_lengths;
  options.query_offsets = c.query_offsets;
  options.key_offsets = c.key_offsets;
  options.scale = c.scale;
  options.softcap = c.softcap;
  options.scores_at = static_cast<ScoreStage>(c.seed % 3);
  options.key_start = start_of(c.key_start);
  options.query_start = start_of(c.query_start);
  options.dropout = {c.dropout, 0x9E3779B97F4A7C15u * (c.seed + 1), static_cast<std::uint32_t>(c.seed) + 7};
  if (c.mask) {
    mask = Tensor<std::uint8_t, 4>(*c.mask);
    // Three of four pairs are seen.
    for (std::uint8_t& entry : mask) {
      const bool seen = random.next() >> 62 != 0;
      entry = seen == (c.mask_means == MaskMeans::attend);
    }
    options.mask = BooleanMask{mask.view(), c.mask_means};
  }
  if (c.bias) {
    bias = random.normal_tensor<4>(*c.bias);
    if (c.bias_has_infinities) {
      for (float& entry : bias) {
        if (random.next() >> 61 == 0) entry = -std::numeric_limits<float>::infinity();
      }
    }
    options.bias = bias.view();
  }
  for (std::int64_t h = 1; c.alibi && h <= c.query_heads; ++h) {
    slopes.push_back(std::exp2(-8.0f * static_cast<float>(h) / static_cast<float>(c.query_heads)));
  }
  for (std::int64_t h = 0; c.sinks && h < c.query_heads; ++h) sinks.push_back(random.normal());
  options.alibi = slopes;
  options.sinks = sinks;
}

std::int64_t blocks_that_are_seen(const AttentionCase& c, const AttentionInputs& in, std::int64_t block) {
  std::int64_t seen = 0;
  for (std::int64_t b = 0; b < c.batch; ++b) {
    for (std::int64_t i = 0; i < c.query_length; ++i) {
      for (std::int64_t j = 0; j < c.key_length; ++j) {
        const auto place = reference::place_in_sequence(in.options, c.query_length, c.key_length, b, i, j);
        if (place.key < seen * block) continue;
        if (reference::visible(in.options, c.query_length, c.key_length, b, 0, i, j)) seen = 1 + place.key / block;
      }
    }
  }
  return seen;
}

std::vector<std::string> names_of_options(const AttentionCase& c) {
  std::vector<std::string> names;
  const auto add = [&](bool has, const char* name) {
    if (has) names.emplace_back(name);
  };
  add(c.causal != Causal::none, "causal");
  add(c.window.left >= 0 || c.window.right >= 0, "window");
  add(c.chunk > 0, "chunk");
  add(!c.query_lengths.empty() || !c.key_lengths.empty(), "lengths");
  add(!c.query_offsets.empty(), "packed sequences");
  add(c.mask.has_value(), "mask");
  add(c.bias.has_value(), "bias");
  add(c.bias && (*c.bias)[2] == 1 && c.query_length > 1, "bias for all rows");
  add(c.bias && (*c.bias)[3] == 1, "bias for all keys");
  add(c.mask && c.bias, "mask and bias");
  add(c.softcap != 0, "soft cap");
  add(c.alibi, "alibi");
  add(c.sinks, "sinks");
  add(c.softcap != 0 && c.alibi && c.sinks, "soft cap, slopes and sinks");
  add(!c.key_start.empty(), "key start");
  add(!c.query_start.empty(), "query start");
  add(c.dropout != 0, "dropout");
  add(c.query_heads > c.key_value_heads, "grouped heads");
  return names;
}

}  // namespace headlight::test
