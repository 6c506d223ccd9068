// What a specification may say.
#include "ops/check.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "layers/layer_names.h"
#include "layers/network/parts.h"
#include "layers/sizes.h"

namespace headlight::layers {

namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& message) {
  ops::fail(kNetworkName, field + " " + message);
}

void check_least(std::int64_t least, const std::string& field, std::int64_t value) {
  static_cast<void>(at_least(least, kNetworkName, field, value));
}

void check_norm(const std::string& field, const NormSpec& norm) {
  if (norm.kind > NormKind::rms) {
    refuse(field + ".kind", "is " + std::to_string(static_cast<int>(norm.kind)) + ", expected one of the enum");
  }
  if (norm.bias && norm.kind != NormKind::layer) refuse(field + ".bias", "is true, expected NormKind::layer with it");
  if (norm.one_plus_weight && norm.kind != NormKind::rms) {
    refuse(field + ".one_plus_weight", "is true, expected NormKind::rms with it");
  }
  if (!(norm.epsilon >= 0)) refuse(field + ".epsilon", "is " + std::to_string(norm.epsilon) + ", expected 0 or more");
}

void check_activation(const std::string& field, Activation activation) {
  if (activation > kLastActivation) {
    refuse(field, "is " + std::to_string(static_cast<int>(activation)) + ", expected one of the enum");
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
  check_norm(field + ".query_norm", spec.query_norm);
  check_norm(field + ".key_norm", spec.key_norm);
  check_least(-1, field + ".window_before", spec.window_before);
  check_least(-1, field + ".window_after", spec.window_after);
  if (!(spec.scale >= 0)) refuse(field + ".scale", "is " + std::to_string(spec.scale) + ", expected 0 or more");
  if (!(spec.softcap >= 0)) refuse(field + ".softcap", "is " + std::to_string(spec.softcap) + ", expected 0 or more");
  const RotarySpec& rotary = spec.rotary;
  if (rotary.dims < 0 || rotary.dims > spec.head_dim || rotary.dims % 2 != 0) {
    refuse(field + ".rotary.dims", "is " + std::to_string(rotary.dims) + ", expected an even number up to head_dim " +
                                       std::to_string(spec.head_dim));
  }
  return spec;
}

void check_residual(const std::string& field, const ResidualSpec& residual) {
  check_norm(field + ".before", residual.before);
  check_norm(field + ".after", residual.after);
  check_norm(field + ".sum", residual.sum);
}

void check_feed_forward(const std::string& field, const FeedForwardSpec& spec) {
  check_least(1, field + ".hidden_width", spec.hidden_width);
  check_activation(field + ".activation", spec.activation);
}

}  // namespace

NetworkSpec checked(const NetworkSpec& given) {
  NetworkSpec spec = given;
  check_least(1, "width", spec.width);
  check_least(1, "embedding.vocabulary", spec.embedding.vocabulary);
  check_least(0, "embedding.positions", spec.embedding.positions);
  check_least(0, "embedding.token_types", spec.embedding.token_types);
  check_norm("embedding.norm", spec.embedding.norm);
  check_norm("last_norm", spec.last_norm);
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
  return spec;
}

}  // namespace headlight::layers
