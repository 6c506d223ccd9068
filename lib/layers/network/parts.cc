#include "layers/network/parts.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "layers/network/relative_bias.h"

namespace headlight::layers {

namespace {

// The only dropout of the embeddings; those of blocks are of Place.
constexpr std::uint32_t kEmbeddings = 0;

// Parameters of so many rows each, side by side.
std::vector<NamedRows> side_by_side(std::vector<NamedRows> parts) {
  std::int64_t first = 0;
  for (NamedRows& part : parts) {
    part.rows.first = first;
    first += part.rows.count;
  }
  return parts;
}

}  // namespace

Parts::NormParameters Parts::norm_parameters(const std::string& name, const NormSpec& spec, std::int64_t width) {
  if (!spec) return {};
  NormParameters made;
  graph_.parameters().begin_turn(turn_ + 1);
  made.weight = &graph_.parameters().add_vector({{name + ".weight", {0, width}}}, spec.one_plus_weight ? 0.0f : 1.0f);
  if (spec.bias) made.bias = &graph_.parameters().add_vector({{name + ".bias", {0, width}}}, 0.0f);
  graph_.parameters().begin_turn(turn_);
  return made;
}

// Named as its weight, the last that was added, part by part.
VectorParameter* Parts::bias(const MatrixParameter& weight, bool wanted) {
  if (!wanted && skips_biases_) graph_.parameters().skip_first_values();
  if (!wanted) return nullptr;
  std::vector<NamedRows> parts = weight.parts;
  for (NamedRows& part : parts) part.name = part.name.substr(0, part.name.rfind('.')) + ".bias";
  return &graph_.parameters().add_vector(std::move(parts), 0.0f);
}

Slice Parts::norm(const std::string& name, const NormSpec& spec, const Slice& x, const Slice& added) {
  if (!spec) return x;
  const NormParameters parameters = norm_parameters(name, spec, x.columns);
  // Layer normalisation has its residual before it: what comes behind it is added by itself.
  const bool joins = !added || spec.kind == NormKind::rms;
  const Slice y = graph_.operations().add_value(x.columns);
  graph_.add<NormOperation>(spec, parameters.weight, parameters.bias, x, joins ? added : Slice(), y);
  if (joins) return y;
  const Slice sum = graph_.operations().add_value(x.columns);
  graph_.add<ScaleOperation>(y, added, 1.0f, sum);
  return sum;
}

Slice Parts::embedding(const std::string& name, std::int64_t width, const EmbeddingSpec& spec) {
  const auto table = [&](const char* part, std::int64_t rows) -> MatrixParameter* {
    if (rows == 0) return graph_.parameters().skip_first_values(), nullptr;
    return &graph_.parameters().add_matrix(width, {{name + "." + part + ".weight", {0, rows}}}, true);
  };
  EmbeddingOperation::Tables tables{};
  tables.word = words_ = table("word", spec.vocabulary);
  tables.position = table("position", spec.positions);
  tables.token_type = table("token_type", spec.token_types);
  Slice x = graph_.operations().add_value(width);
  graph_.add<EmbeddingOperation>(tables, x);
  if (spec.scale != 1) {
    const Slice scaled = graph_.operations().add_value(width);
    graph_.add<ScaleOperation>(x, Slice(), spec.scale, scaled);
    x = scaled;
  }
  x = norm(name + ".norm", spec.norm, x);
  if (dropout_ == 0) return x;
  const Slice y = graph_.operations().add_value(width);
  graph_.add<DropoutOperation>(dropout(kEmbeddings), x, y);
  return y;
}

Logits Parts::logits(const std::string& name, std::int64_t width, const EmbeddingSpec& embedding,
                     const LogitsSpec& spec) {
  if (!spec) return {};
  Logits made = {.weight = words_, .factor = spec.factor, .cap = spec.cap};
  const std::vector<NamedRows> rows = {{name + ".weight", {0, embedding.vocabulary}}};
  if (spec.weight == LogitsSpec::Weight::own) {
    made.weight = &graph_.parameters().add_matrix(width, rows);
  } else {
    words_->is_multiplied = true;
    words_->matrix.keep_rows();
  }
  if (spec.bias) made.bias = &graph_.parameters().add_vector({{name + ".bias", rows.front().rows}}, 0.0f);
  return made;
}

Slice Parts::angles(const RotarySpec& spec, std::int64_t head_dim) {
  for (const Angles& known : angles_) {
    if (known.spec == spec && known.head_dim == head_dim) return known.value;
  }
  const Slice made = graph_.operations().add_value(rotary_columns(spec, head_dim));
  graph_.add<AnglesOperation>(spec, head_dim, made);
  angles_.push_back({spec, head_dim, made});
  return made;
}

const Parts::RelativeBias& Parts::relative_bias(const AttentionSpec& spec) {
  RelativeBias& made = relative_bias_;
  if (made.table != nullptr) return made;
  graph_.parameters().begin_turn(0);
  made.table =
      &graph_.parameters().add_matrix(spec.heads, {{"relative_bias.weight", {0, spec.relative_bias.buckets}}}, true);
  graph_.parameters().begin_turn(turn_);
  made.value = graph_.operations().add_value(RelativeBiasOperation::columns(spec.heads));
  graph_.add<RelativeBiasOperation>(spec.relative_bias, *made.table, made.value);
  return made;
}

// [query | key | value] as attention reads them.
Slice Parts::heads(const std::string& name, const AttentionSpec& spec, MatrixParameter& projection, const Slice& x) {
  const auto of = [&](const char* part, std::int64_t count, const NormSpec& norm) {
    const std::int64_t width = spec.whole_width_norms ? count * spec.head_dim : spec.head_dim;
    const NormParameters parameters = norm_parameters(name + "." + part, norm, width);
    return HeadsOperation::Heads{count, norm, parameters.weight, parameters.bias};
  };
  const HeadsOperation::Heads query = of("query_norm", spec.heads, spec.query_norm);
  const HeadsOperation::Heads key = of("key_norm", spec.key_value_heads, spec.key_norm);
  const Slice turned_by = spec.rotary.dims > 0 ? angles(spec.rotary, spec.head_dim) : Slice();
  const Slice y = graph_.operations().add_value(
      x.columns,
      {.from = spec.head_dim % 2 == 0 ? &projection.matrix : nullptr, .to_attention = true, .in_training = true});
  graph_.add<HeadsOperation>(query, key, spec, x, turned_by, y);
  return y;
}

Parts::Projected Parts::project(const std::string& name, const AttentionSpec& spec, const Slice& x, bool of_memory) {
  const std::int64_t of_query = spec.heads * spec.head_dim, of_key = spec.key_value_heads * spec.head_dim;
  MatrixParameter& projection =
      graph_.parameters().add_matrix(x.columns, side_by_side({{name + ".query.weight", {0, of_query}, spec.orthogonal},
                                                              {name + ".key.weight", {0, of_key}, spec.orthogonal},
                                                              {name + ".value.weight", {0, of_key}}}));
  VectorParameter* const projection_bias = bias(projection, spec.input_bias);
  const bool changes = spec.query_norm || spec.key_norm || spec.rotary.dims > 0;
  assert(!of_memory || (!changes && !spec.relative_bias));
  HandedOn handed_on = {.in_training = !changes};
  // An odd number in a row is in no pair.
  if (!changes && spec.head_dim % 2 == 0) {
    handed_on.from = &projection.matrix;
    handed_on.to_attention = true;
  }
  std::optional<MemoryProjection> memory;
  if (of_memory) memory.emplace(projection, projection_bias, WeightMatrix::Rows{of_query, 2 * of_key});
  Slice projected = graph_.operations().add_value(of_memory ? of_query : of_query + 2 * of_key, handed_on);
  graph_.add<ProductOperation>(projection, projection_bias, x, ProductOperation::Epilogue(), projected);
  if (changes) projected = heads(name, spec, projection, projected);
  return {projected, &projection, memory};
}

// Its last product begins a run of rows that the block ends.
Slice Parts::attention(const std::string& name, const AttentionSpec& spec, const Projected& projected, const Slice& x,
                       const Slice& added) {
  const std::int64_t of_query = spec.heads * spec.head_dim;
  const bool of_memory = projected.memory.has_value();
  VectorParameter* const sinks =
      spec.sinks ? &graph_.parameters().add_vector({{name + ".sinks", {0, spec.heads}}}, 0.0f) : nullptr;
  const bool is_sum = spec.merge != Merge::concatenate && !MergeOperation::gates(spec.merge);
  MatrixParameter& output =
      graph_.parameters().add_matrix(is_sum ? spec.head_dim : of_query, {{name + ".output.weight", {0, x.columns}}});
  VectorParameter* const output_bias = bias(output, spec.output_bias);
  // Other merges compute with the heads.
  HandedOn handed_on;
  if (spec.merge == Merge::concatenate) {
    handed_on = {.from = &projected.by->matrix, .to = &output.matrix, .in_training = true, .gradient = true};
  }
  const RelativeBias bias = spec.relative_bias ? relative_bias(spec) : RelativeBias();
  const Slice joined = graph_.operations().add_value(of_query, handed_on);
  graph_.add<AttentionOperation>(
      graph_.name(), spec, part_, AttentionOperation::Own{sinks, bias.table, projected.memory},
      dropout(of_memory ? kMemoryAttention : kSelfAttention), projected.heads, bias.value, joined);
  const Slice merged = merge(name, spec, x, joined);
  graph_.operations().begin_rows();
  const Slice y = graph_.operations().add_value(x.columns);
  const DropoutPlace dropped = dropout(of_memory ? kMemoryOutput : kSelfOutput);
  graph_.add<ProductOperation>(output, output_bias, merged,
                               ProductOperation::Epilogue{.dropout = dropped, .residual = added}, y);
  return y;
}

Slice Parts::merge(const std::string& name, const AttentionSpec& spec, const Slice& x, const Slice& heads) {
  if (spec.merge == Merge::concatenate) return heads;
  const bool gates = MergeOperation::gates(spec.merge);
  VectorParameter* logits = nullptr;
  Slice by;
  if (spec.merge == Merge::weighted) {
    logits = &graph_.parameters().add_vector({{name + ".merge_logits", {0, spec.heads}}}, 0.0f);
  } else if (spec.merge != Merge::average) {
    const std::int64_t columns = spec.merge == Merge::gated_by_element ? heads.columns : spec.heads;
    MatrixParameter& projection =
        graph_.parameters().add_matrix(x.columns, {{name + (gates ? ".gate.weight" : ".merge.weight"), {0, columns}}});
    by = graph_.operations().add_value(columns);
    graph_.add<ProductOperation>(projection, nullptr, x, ProductOperation::Epilogue{.is_of_floats = true}, by);
  }
  const Slice merged = graph_.operations().add_value(gates ? heads.columns : spec.head_dim);
  graph_.add<MergeOperation>(spec, part_, logits, heads, by, merged);
  return merged;
}

Slice Parts::feed_forward(const std::string& name, const FeedForwardSpec& spec, const Slice& x, const Slice& added) {
  const std::int64_t hidden = spec.hidden_width;
  std::vector<NamedRows> inputs = {{name + ".up.weight", {0, hidden}}};
  if (spec.gated) inputs.insert(inputs.begin(), {name + ".gate.weight", {0, hidden}});
  MatrixParameter& input = graph_.parameters().add_matrix(x.columns, side_by_side(std::move(inputs)));
  VectorParameter* const input_bias = bias(input, spec.input_bias);
  MatrixParameter& down = graph_.parameters().add_matrix(hidden, {{name + ".down.weight", {0, x.columns}}});
  VectorParameter* const output_bias = bias(down, spec.output_bias);

  HandedOn handed_on = {.from = &input.matrix, .to = &down.matrix, .in_training = true};
  graph_.operations().begin_pieces();
  const Slice before =
      graph_.operations().add_value(spec.gated ? 2 * hidden : hidden, spec.gated ? HandedOn() : handed_on);
  graph_.add<ProductOperation>(
      input, input_bias, x, ProductOperation::Epilogue{.activation = spec.gated ? Activation::none : spec.activation},
      before);
  // What is dropped is rounded when that is done.
  handed_on.in_training = dropout_ == 0;
  const Slice active = graph_.operations().add_value(hidden, handed_on);
  if (spec.gated) {
    graph_.add<GateOperation>(spec.activation, dropout(kActivation), before.part(0, hidden),
                              before.part(hidden, hidden), active);
  } else {
    graph_.add<ActivationOperation>(spec.activation, dropout(kActivation), before, active);
  }
  const Slice y = graph_.operations().add_value(x.columns);
  graph_.add<ProductOperation>(down, output_bias, active,
                               ProductOperation::Epilogue{.dropout = dropout(kFeedForward), .residual = added}, y);
  graph_.operations().end_pieces();
  return y;
}

template <class Part>
Slice Parts::residual(const std::string& name, const ResidualSpec& spec, const Slice& x, const Slice& normalized,
                      const Part& part) {
  Slice y;
  if (spec.factor != 1) {
    const Slice scaled = norm(name + ".after", spec.after, part(normalized, Slice()));
    y = graph_.operations().add_value(x.columns);
    graph_.add<ScaleOperation>(scaled, x, spec.factor, y);
  } else if (spec.after) {
    y = norm(name + ".after", spec.after, part(normalized, Slice()), x);
  } else {
    y = part(normalized, x);
  }
  return norm(name + ".sum", spec.sum, y);
}

Slice Parts::block(const std::string& name, const BlockSpec& spec, const Slice& x, bool has_memory) {
  const std::string of_attention = name + ".attention", of_memory = name + ".memory_attention";
  const std::string of_rows = name + ".feed_forward";
  Projected heads;
  const auto attend = [&](const Slice& in, const Slice& added) {
    return attention(of_attention, spec.attention, heads, in, added);
  };
  const auto recall = [&](const Slice& in, const Slice& added) {
    return attention(of_memory, spec.attention, heads, in, added);
  };
  const auto feed = [&](const Slice& in, const Slice& added) {
    return feed_forward(of_rows, spec.feed_forward, in, added);
  };
  const ResidualSpec& first = spec.attention_residual;
  const ResidualSpec& second = spec.feed_forward_residual;
  // Of all tokens, so before the run.
  if (spec.attention.rotary.dims > 0) static_cast<void>(angles(spec.attention.rotary, spec.attention.head_dim));
  // A bias by distance is one of the longest sequence.
  const bool by_sequences = !has_memory && !spec.attention.relative_bias;
  if (by_sequences) graph_.operations().begin_sequences();
  graph_.operations().begin_rows();
  const Slice for_attention = norm(of_attention + ".before", first.before, x);
  Slice for_rows = spec.parallel ? norm(of_rows + ".before", second.before, x) : Slice();
  heads = project(of_attention, spec.attention, for_attention, false);
  graph_.operations().end_rows();
  Slice attended = residual(of_attention, first, x, for_attention, attend);
  if (has_memory) {
    const Slice for_memory = norm(of_memory + ".before", first.before, attended);
    heads = project(of_memory, spec.attention, for_memory, true);
    graph_.operations().end_rows();
    attended = residual(of_memory, first, attended, for_memory, recall);
  }
  if (!spec.parallel) for_rows = norm(of_rows + ".before", second.before, attended);
  const Slice y = residual(of_rows, second, attended, for_rows, feed);
  graph_.operations().end_rows();
  if (by_sequences) graph_.operations().end_sequences();
  return y;
}

Logits add_network(Graph& graph, const NetworkSpec& spec) {
  Parts parts(graph, spec.dropout);
  parts.begin(spec.blocks.size(), 0);  // the embeddings' numbers stand behind those of all blocks
  Slice x = parts.embedding("embeddings", spec.width, spec.embedding);
  for (std::size_t number = 0; number < spec.blocks.size(); ++number) {
    graph.operations().begin_block();
    parts.begin(number, 2 * static_cast<int>(number) + 2);
    x = parts.block("blocks." + std::to_string(number), spec.blocks[number], x);
    graph.operations().end_block();
  }
  parts.begin(spec.blocks.size(), 0);
  static_cast<void>(parts.norm("norm", spec.last_norm, x));
  graph.finish(spec.blocks.size() + 1);
  parts.begin(spec.blocks.size(), 2 * static_cast<int>(spec.blocks.size()) + 2);
  return parts.logits("logits", spec.width, spec.embedding, spec.logits);
}

void add_block(Graph& graph, std::int64_t width, const BlockSpec& spec, float dropout, bool has_memory) {
  Parts parts(graph, dropout, true);
  const Slice x = graph.operations().add_given_value(width);
  graph.operations().begin_block();
  static_cast<void>(parts.block("block", spec, x, has_memory));
  graph.operations().end_block();
  graph.finish(1);
}

}  // namespace headlight::layers
