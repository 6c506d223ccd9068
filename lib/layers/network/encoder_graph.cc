#include "layers/network/encoder_graph.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "headlight/out_of_memory.h"
#include "layers/layer_names.h"
#include "layers/network/parts.h"
#include "layers/parameter_list.h"

namespace headlight::layers {

namespace {

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

// Of a block: query, key and value are one parameter, which begins with the query's part.
constexpr Renaming kOfProducts[] = {
    {"query.weight", "in_proj_weight"},  {"query.bias", "in_proj_bias"},   {"output.weight", "out_proj.weight"},
    {"output.bias", "out_proj.bias"},    {"merge_logits", "merge_logits"}, {"merge.weight", "merge_proj.weight"},
    {"gate.weight", "gate_proj.weight"}, {"up.weight", "linear1.weight"},  {"up.bias", "linear1.bias"},
    {"down.weight", "linear2.weight"},   {"down.bias", "linear2.bias"},
};
constexpr Renaming kOfNorms[] = {
    {"before.weight", "weight"}, {"before.bias", "bias"}, {"sum.weight", "weight"}, {"sum.bias", "bias"}};

// What stands before those.
struct Part {
  std::string_view network;
  std::string_view products;
  std::string_view norm;
};
constexpr Part kOfEncoder[] = {{"attention.", "self_attn.", "norm1."}, {"feed_forward.", "", "norm2."}};
constexpr Part kOfDecoder[] = {{"attention.", "self_attn.", "norm1."},
                               {"memory_attention.", "multihead_attn.", "norm2."},
                               {"feed_forward.", "", "norm3."}};

}  // namespace

BlockSpec specification_of(const TransformerLayerOptions& options) {
  BlockSpec block;
  block.attention = {.heads = options.heads,
                     .key_value_heads = options.heads,
                     .head_dim = options.width / options.heads,
                     .input_bias = options.bias,
                     .output_bias = options.bias,
                     .merge = options.merge,
                     .orthogonal = options.orthogonal};
  block.feed_forward = {.hidden_width = options.feed_forward_width,
                        .activation = options.activation,
                        .input_bias = options.bias,
                        .output_bias = options.bias};
  const NormSpec norm = {NormKind::layer, options.layer_norm_epsilon, options.bias};
  for (ResidualSpec* residual : {&block.attention_residual, &block.feed_forward_residual}) {
    (options.norm == Norm::post ? residual->sum : residual->before) = norm;
  }
  return block;
}

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
    spec.blocks.assign(count, specification_of(options.layer_options()));
  } catch (const std::bad_alloc&) {
    refuse_layers(options.layers, count * sizeof(BlockSpec));
  }
  return spec;
}

namespace {

using Found = std::span<const Parameters::Parameter>;

// Those of the table that there are, each name behind the prefixes.
void append_renamed(Found all, const std::string& network, const std::string& encoder, std::span<const Renaming> table,
                    std::vector<RenamedParameter>& to) {
  for (const Renaming& renaming : table) {
    const std::string name = network + std::string(renaming.network);
    const auto found = std::ranges::find_if(
        all, [&](const Parameters::Parameter& parameter) { return parameter.parts().front().name == name; });
    if (found != all.end()) to.push_back({encoder + std::string(renaming.encoder), found->matrix, found->vector});
  }
}

// Of one block: those of its products before those of its norms.
void append_block(Found all, std::span<const Part> parts, const std::string& network, const std::string& encoder,
                  std::vector<RenamedParameter>& to) {
  for (const Part& part : parts) {
    append_renamed(all, network + std::string(part.network), encoder + std::string(part.products), kOfProducts, to);
  }
  for (const Part& part : parts) {
    append_renamed(all, network + std::string(part.network), encoder + std::string(part.norm), kOfNorms, to);
  }
}

}  // namespace

EncoderGraph::EncoderGraph(const EncoderOptions& options) : graph(kEncoderName) {
  static_cast<void>(add_network(graph, specification_of(options)));
  Found rest = graph.parameters().all();
  parameters_.reserve(rest.size());
  append_renamed(rest, "", "", kOfAll, parameters_);
  for (std::int64_t block = 0; block < options.layers; ++block) {
    const std::string name = std::to_string(block) + ".", network = "blocks." + name;
    const auto is_its_own = [&](const Parameters::Parameter& parameter) {
      return parameter.parts().front().name.starts_with(network);
    };
    const auto first = std::ranges::find_if(rest, is_its_own), end = std::find_if_not(first, rest.end(), is_its_own);
    append_block({first, end}, kOfEncoder, network, "layers." + name, parameters_);
    rest = {end, rest.end()};
  }
}

EncoderGraph::EncoderGraph(const TransformerLayerOptions& options, bool has_memory)
    : graph(has_memory ? kDecoderLayerName : kEncoderLayerName) {
  add_block(graph, options.width, specification_of(options), options.dropout, has_memory);
  const std::span<const Part> parts = has_memory ? std::span<const Part>(kOfDecoder) : kOfEncoder;
  append_block(graph.parameters().all(), parts, "block.", "", parameters_);
}

namespace {

// What MultiHeadAttention::append_parameters() does with those names: there is one parameter of query, key and value,
// or one of each.
void append_projection(const std::string& prefix, WeightMatrix& matrix, std::vector<ParameterPlace>& list,
                       const Weights* named) {
  for (const char* extra : {"bias_k", "bias_v"}) {
    if (named != nullptr && named->contains(prefix + extra)) {
      ops::fail(kMultiHeadAttentionName, "weight ", prefix, extra,
                " is given, expected none: an extra learned key is not supported");
    }
  }
  if (named == nullptr || !named->contains(prefix + "q_proj_weight")) {
    return append(list, prefix + "in_proj_weight", matrix, matrix.all());
  }
  const std::int64_t rows = matrix.rows() / 3;
  std::int64_t first = 0;
  for (const char* part : {"q_proj_weight", "k_proj_weight", "v_proj_weight"}) {
    append(list, prefix + part, matrix, {first, rows});
    first += rows;
  }
}

}  // namespace

void EncoderGraph::append_parameters(const std::string& prefix, std::vector<ParameterPlace>& list,
                                     const Weights* named) {
  constexpr std::string_view kProjection = "in_proj_weight";
  for (const RenamedParameter& parameter : parameters_) {
    const std::string name = prefix + parameter.name;
    if (name.ends_with(kProjection)) {
      append_projection(name.substr(0, name.size() - kProjection.size()), parameter.matrix->matrix, list, named);
    } else if (parameter.matrix != nullptr) {
      append(list, name, parameter.matrix->matrix, parameter.matrix->matrix.all());
    } else {
      append(list, name, parameter.vector->values, parameter.vector->gradient);
    }
  }
}

}  // namespace headlight::layers
