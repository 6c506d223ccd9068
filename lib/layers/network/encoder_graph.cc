#include "layers/network/encoder_graph.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <new>
#include <span>
#include <string_view>

#include "headlight/out_of_memory.h"

namespace headlight::layers {

namespace {

BlockSpec block_of(const EncoderOptions& options, const NormSpec& norm) {
  BlockSpec block;
  block.attention = {.heads = options.heads,
                     .key_value_heads = options.heads,
                     .head_dim = options.width / options.heads,
                     .input_bias = true,
                     .output_bias = true,
                     .merge = options.merge,
                     .orthogonal = options.orthogonal};
  block.feed_forward = {.hidden_width = options.feed_forward_width,
                        .activation = options.activation,
                        .input_bias = true,
                        .output_bias = true};
  for (ResidualSpec* residual : {&block.attention_residual, &block.feed_forward_residual}) {
    (options.norm == Norm::post ? residual->sum : residual->before) = norm;
  }
  return block;
}

// Without a string, for which there may be no memory either.
[[noreturn]] void refuse_layers(std::int64_t count, std::size_t bytes) {
  std::array<char, 64> words{};
  const int length = std::snprintf(words.data(), words.size(), "Encoder of %lld layers", static_cast<long long>(count));
  throw OutOfMemory({words.data(), static_cast<std::size_t>(length)}, bytes);
}

struct Renaming {
  std::string_view network;
  std::string_view encoder;
};

constexpr Renaming kOfAll[] = {
    {"embeddings.word.weight", "word_embeddings.weight"},
    {"embeddings.position.weight", "position_embeddings.weight"},
    {"embeddings.token_type.weight", "token_type_embeddings.weight"},
    {"embeddings.norm.weight", "norm.weight"},
    {"embeddings.norm.bias", "norm.bias"},
    {"norm.weight", "norm.weight"},
    {"norm.bias", "norm.bias"},
};

// Query, key and value are one parameter, which begins with the query's part.
constexpr Renaming kOfBlock[] = {
    {"attention.query.weight", "self_attn.in_proj_weight"},
    {"attention.query.bias", "self_attn.in_proj_bias"},
    {"attention.output.weight", "self_attn.out_proj.weight"},
    {"attention.output.bias", "self_attn.out_proj.bias"},
    {"attention.merge_logits", "self_attn.merge_logits"},
    {"attention.merge.weight", "self_attn.merge_proj.weight"},
    {"attention.gate.weight", "self_attn.gate_proj.weight"},
    {"feed_forward.up.weight", "linear1.weight"},
    {"feed_forward.up.bias", "linear1.bias"},
    {"feed_forward.down.weight", "linear2.weight"},
    {"feed_forward.down.bias", "linear2.bias"},
    {"attention.before.weight", "norm1.weight"},
    {"attention.before.bias", "norm1.bias"},
    {"attention.sum.weight", "norm1.weight"},
    {"attention.sum.bias", "norm1.bias"},
    {"feed_forward.before.weight", "norm2.weight"},
    {"feed_forward.before.bias", "norm2.bias"},
    {"feed_forward.sum.weight", "norm2.weight"},
    {"feed_forward.sum.bias", "norm2.bias"},
};

std::size_t place_in(std::span<const Renaming> table, std::string_view network) noexcept {
  std::size_t place = 0;
  while (table[place].network != network) ++place;
  return place;
}

}  // namespace

NetworkSpec specification_of(const EncoderOptions& options) {
  const NormSpec norm = {NormKind::layer, options.layer_norm_epsilon, true};
  const bool post = options.norm == Norm::post;
  NetworkSpec spec;
  spec.width = options.width;
  spec.embedding = {.vocabulary = options.vocabulary,
                    .positions = options.max_positions,
                    .token_types = options.token_types,
                    .norm = post ? norm : NormSpec()};
  spec.last_norm = post ? NormSpec() : norm;
  spec.dropout = options.dropout;
  if (options.layers == 0) return spec;
  const auto count = static_cast<std::size_t>(options.layers);
  if (count > spec.blocks.max_size()) refuse_layers(options.layers, SIZE_MAX);
  try {
    spec.blocks.assign(count, block_of(options, norm));
  } catch (const std::bad_alloc&) {
    refuse_layers(options.layers, count * sizeof(BlockSpec));
  }
  return spec;
}

std::vector<RenamedParameter> renamed(const Parameters& parameters) {
  constexpr std::string_view kBlocks = "blocks.";
  std::vector<RenamedParameter> all;
  all.reserve(parameters.all().size());
  // Those of a prefix by their places in a table.
  std::array<const Parameters::Parameter*, std::max(std::size(kOfAll), std::size(kOfBlock))> found{};
  const auto append = [&](std::span<const Renaming> table, std::string_view of_block) {
    for (std::size_t place = 0; place < table.size(); ++place) {
      if (found[place] == nullptr) continue;
      all.push_back({"", found[place]->matrix, found[place]->vector});
      RenamedParameter& made = all.back();
      if (!of_block.empty()) made.name.append("layers.").append(of_block.substr(kBlocks.size()));
      made.name.append(table[place].encoder);
    }
    found.fill(nullptr);
  };
  for (const Parameters::Parameter& parameter : parameters.all()) {
    const std::string_view name = parameter.parts().front().name;
    if (!name.starts_with(kBlocks)) found[place_in(kOfAll, name)] = &parameter;
  }
  append(kOfAll, "");
  std::string_view of_block;
  for (const Parameters::Parameter& parameter : parameters.all()) {
    const std::string_view name = parameter.parts().front().name;
    if (!name.starts_with(kBlocks)) continue;
    const std::string_view prefix = name.substr(0, name.find('.', kBlocks.size()) + 1);
    if (prefix != of_block) append(kOfBlock, of_block);
    of_block = prefix;
    found[place_in(kOfBlock, name.substr(prefix.size()))] = &parameter;
  }
  append(kOfBlock, of_block);
  return all;
}

}  // namespace headlight::layers
