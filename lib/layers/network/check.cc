// What a specification may say.
#include "ops/check.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "layers/layer_names.h"
#include "layers/network/parts.h"
#include "layers/sizes.h"
#include "ops/rows/rotary_check.h"

namespace headlight::layers {

namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& message) {
  ops::fail(kNetworkName, field + " " + message);
}

void check_least(std::int64_t least, const std::string& field, std::int64_t value) {
  static_cast<void>(at_least(least, kNetworkName, field, value));
}

// A finite number ≥ 0.
void check_finite(const std::string& field, float value) {
  if (value >= 0 && std::isfinite(value)) return;
  refuse(field, "is " + ops::text_of(value) + ", expected a finite number of 0 or more");
}

// Widths of values and sizes of parameters are sums and products of these: far below 2⁶³, with other sizes beside them.
constexpr std::int64_t kWidest = std::int64_t{1} << 40;

// A value of a · b columns.
void check_width(const std::string& field, std::int64_t a, std::int64_t b) {
  std::int64_t width = 0;
  if (__builtin_mul_overflow(a, b, &width) || width > kWidest) {
    refuse(field, "is " + std::to_string(a) + " x " + std::to_string(b) + " numbers wide, expected at most 2^40");
  }
}

template <class Enum>
void check_enum(const std::string& field, Enum value, Enum last) {
  if (value > last) {
    refuse(field, "is " + std::to_string(static_cast<int>(value)) + ", expected one of the enum");
  }
}

void check_norm(const std::string& field, const NormSpec& norm) {
  check_enum(field + ".kind", norm.kind, NormKind::rms);
  if (norm.bias && norm.kind != NormKind::layer) refuse(field + ".bias", "is true, expected NormKind::layer with it");
  if (norm.one_plus_weight && norm.kind != NormKind::rms) {
    refuse(field + ".one_plus_weight", "is true, expected NormKind::rms with it");
  }
  check_finite(field + ".epsilon", norm.epsilon);
}

void check_relative_bias(const std::string& of_attention, const AttentionSpec& spec) {
  const RelativeBiasSpec& bias = spec.relative_bias;
  if (!bias) return;
  const std::string field = of_attention + ".relative_bias";
  if (bias.buckets < 4 || bias.buckets % 2 != 0) {
    refuse(field + ".buckets", "is " + std::to_string(bias.buckets) + ", expected 0 or an even number of 4 or more");
  }
  check_width(field, bias.buckets, spec.heads);
  if (bias.max_distance <= bias.buckets / 4) {
    refuse(field + ".max_distance", "is " + std::to_string(bias.max_distance) + ", expected more than buckets / 4");
  }
}

// Blocks that have one read one table.
void check_shared(const std::vector<BlockSpec>& blocks) {
  const AttentionSpec* first = nullptr;
  for (std::size_t number = 0; number < blocks.size(); ++number) {
    const AttentionSpec& spec = blocks[number].attention;
    if (!spec.relative_bias) continue;
    if (first == nullptr) first = &spec;
    if (spec.relative_bias == first->relative_bias && spec.heads == first->heads) continue;
    refuse("blocks[" + std::to_string(number) + "].attention.relative_bias",
           "or the heads beside it are not those of an earlier block, expected one table for all blocks");
  }
}

AttentionSpec checked_attention(const std::string& field, AttentionSpec spec, std::int64_t width) {
  check_least(1, field + ".heads", spec.heads);
  check_least(0, field + ".key_value_heads", spec.key_value_heads);
  check_least(0, field + ".head_dim", spec.head_dim);
  spec.key_value_heads = given_or(spec.key_value_heads, spec.heads);
  if (spec.heads % spec.key_value_heads != 0) {
    refuse(field + ".key_value_heads", "is " + std::to_string(spec.key_value_heads) + ", expected a divisor of heads " +
                                           std::to_string(spec.heads));
  }
  if (spec.head_dim == 0 && width % spec.heads != 0) {
    refuse(field + ".heads", "is " + std::to_string(spec.heads) + ", expected a divisor of width " +
                                 std::to_string(width) + ", or head_dim given");
  }
  spec.head_dim = given_or(spec.head_dim, width / spec.heads);
  check_width(field, spec.heads, spec.head_dim);  // key_value_heads are no more
  check_norm(field + ".query_norm", spec.query_norm);
  check_norm(field + ".key_norm", spec.key_norm);
  check_least(-1, field + ".window_before", spec.window_before);
  check_least(-1, field + ".window_after", spec.window_after);
  check_finite(field + ".scale", spec.scale);
  check_finite(field + ".softcap", spec.softcap);
  if (spec.softcap != 0 && !std::isnormal(spec.softcap)) {
    refuse(field + ".softcap", "is " + ops::text_of(spec.softcap) + ", expected 0 or a normal number");
  }
  check_relative_bias(field, spec);
  check_enum(field + ".merge", spec.merge, Merge::gated_by_element);
  if (spec.rotary.dims != 0) {
    ops::check_rotary_spec(std::string(kNetworkName) + ": " + field + ".rotary", spec.rotary, spec.head_dim);
  }
  return spec;
}

void check_residual(const std::string& field, const ResidualSpec& residual) {
  check_norm(field + ".before", residual.before);
  check_norm(field + ".after", residual.after);
  check_norm(field + ".sum", residual.sum);
  if (!std::isfinite(residual.factor)) {
    refuse(field + ".factor", "is " + ops::text_of(residual.factor) + ", expected a finite number");
  }
}

void check_feed_forward(const std::string& field, const FeedForwardSpec& spec) {
  check_least(1, field + ".hidden_width", spec.hidden_width);
  check_width(field, spec.hidden_width, spec.gated ? 2 : 1);
  check_enum(field + ".activation", spec.activation, kLastActivation);
}

void check_logits(const LogitsSpec& spec) {
  check_enum("logits.weight", spec.weight, LogitsSpec::Weight::own);
  if (!std::isfinite(spec.factor)) {
    refuse("logits.factor", "is " + ops::text_of(spec.factor) + ", expected a finite number");
  }
  if (spec.cap != 0 && !(spec.cap > 0 && std::isnormal(spec.cap))) {
    refuse("logits.cap", "is " + ops::text_of(spec.cap) + ", expected 0 or a positive normal number");
  }
}

}  // namespace

NetworkSpec checked(const NetworkSpec& given) {
  NetworkSpec spec = given;
  check_least(1, "width", spec.width);
  check_width("width", spec.width, 1);
  check_least(1, "embedding.vocabulary", spec.embedding.vocabulary);
  check_least(0, "embedding.positions", spec.embedding.positions);
  check_least(0, "embedding.token_types", spec.embedding.token_types);
  check_norm("embedding.norm", spec.embedding.norm);
  if (!std::isfinite(spec.embedding.scale)) {
    refuse("embedding.scale", "is " + ops::text_of(spec.embedding.scale) + ", expected a finite number");
  }
  check_norm("last_norm", spec.last_norm);
  check_logits(spec.logits);
  static_cast<void>(probability(kNetworkName, "dropout", spec.dropout));
  for (std::size_t number = 0; number < spec.blocks.size(); ++number) {
    const std::string field = "blocks[" + std::to_string(number) + "]";
    BlockSpec& block = spec.blocks[number];
    block.attention = checked_attention(field + ".attention", block.attention, spec.width);
    check_residual(field + ".attention_residual", block.attention_residual);
    check_feed_forward(field + ".feed_forward", block.feed_forward);
    check_residual(field + ".feed_forward_residual", block.feed_forward_residual);
    if (block.parallel && (block.attention_residual.sum || block.feed_forward_residual.sum)) {
      refuse(field + ".parallel", "is true, expected no norm of a sum with it");
    }
  }
  check_shared(spec.blocks);
  return spec;
}

}  // namespace headlight::layers
