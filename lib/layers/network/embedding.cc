#include <algorithm>

#include "headlight/normalization.h"
#include "layers/embedding_table.h"
#include "layers/network/operations.h"
#include "layers/parameter_list.h"

namespace headlight::layers {

void EmbeddingOperation::forward(const GraphCall& call, const RowRange& rows) const {
  const auto first = static_cast<std::size_t>(rows.first), count = static_cast<std::size_t>(rows.count);
  std::array<Embedding, 3> tables{};
  std::size_t used = 0;
  const auto add = [&](const MatrixParameter* table, std::span<const std::int64_t> ids) {
    if (table != nullptr) tables[used++] = embedding_of(table->matrix, ids.subspan(first, count));
  };
  add(tables_.word, call.input().ids);
  add(tables_.position, call.input().positions);
  add(tables_.token_type, call.input().token_types);
  embed(call.engine(), std::span(tables).first(used), call.at(output(), rows));
}

void EmbeddingOperation::backward(const GraphCall& call, const RowRange& rows) {
  std::array<EmbeddingGradient, 3> tables{};
  std::size_t used = 0;
  const auto first = static_cast<std::size_t>(rows.first), count = static_cast<std::size_t>(rows.count);
  const auto add = [&](MatrixParameter* table, std::span<const std::int64_t> ids) {
    if (table != nullptr) tables[used++] = {table->matrix.gradient(), ids.subspan(first, count)};
  };
  add(tables_.word, call.input().ids);
  add(tables_.position, call.input().positions);
  add(tables_.token_type, call.input().token_types);
  embed_backward(call.engine(), call.gradient(output(), rows), std::span(tables).first(used));
}

ParameterGradients EmbeddingOperation::gradients() noexcept {
  const auto of = [](MatrixParameter* table) {
    return table == nullptr ? std::span<float>() : values_of(table->matrix.gradient());
  };
  return {{of(tables_.word), of(tables_.position), of(tables_.token_type)}};
}

// In another form than float32, in memory that was lent.
bool EmbeddingOperation::has_stored_tables() const noexcept {
  const auto is_stored = [](const MatrixParameter* table) {
    return table != nullptr && is_stored_table(table->matrix);
  };
  return is_stored(tables_.word) || is_stored(tables_.position) || is_stored(tables_.token_type);
}

Operation::Blocks EmbeddingOperation::workspace(const Engine& engine, const BatchShape&) const {
  return {has_stored_tables() ? rows_workspace_bytes(engine, output().columns) : 0};
}

}  // namespace headlight::layers
