#include "layers/row_visitor.h"

#include <string>

#include "ops/check.h"

namespace headlight::layers {
namespace {

void check_count(std::string_view name, std::string_view of, std::int64_t rows, std::int64_t expected) {
  if (rows == expected) return;
  ops::fail(name, of, " has ", rows, " rows, expected ", expected, ", those of the shards");
}

}  // namespace

void check_rows(std::string_view name, const TrainingAttention& attention, std::int64_t batch, std::int64_t rows) {
  const RowShards* const shards = attention.shards();
  if (shards == nullptr) return;
  check_count(name, "x", rows, shards->row_count());
  if (batch != shards->options().batch) {
    ops::fail(name, "x has ", batch, " samples, expected ", shards->options().batch, ", those of the shards");
  }
}

void check_rows(std::string_view name, const TrainingAttention& attention, std::int64_t batch, std::int64_t rows,
                std::int64_t memory_rows) {
  check_rows(name, attention, batch, rows);
  const RowShards* const shards = attention.shards();
  if (shards != nullptr) check_count(name, "what is attended to", memory_rows, shards->memory_row_count());
}

}  // namespace headlight::layers
