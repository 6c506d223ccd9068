#include "tools/headlight/studies/chunk.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "headlight/analysis/attention_cost.h"
#include "headlight/attention_backward.h"
#include "tools/headlight/studies/deviation.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/repeated_times.h"

namespace headlight::program {
namespace {

constexpr std::int64_t kLeastChunk = 16;
// Rows whose weights are written out at a time.
constexpr std::int64_t kRowsAtOnce = 64;

std::vector<std::int64_t> chunks_of(std::int64_t length) {
  std::vector<std::int64_t> chunks;
  for (std::int64_t chunk = kLeastChunk; chunk < length; chunk *= 2) chunks.push_back(chunk);
  chunks.push_back(length);
  return chunks;
}

// Adds the time of the fastest run; `busy` becomes true where they disagree.
void add_seconds(int runs, const auto& work, double& seconds, bool& busy) {
  RepeatedTimes times;
  for (int run = 0; run < runs; ++run) times.run(work);
  seconds += times.best();
  busy = busy || times.disagree();
}

// Adds to each row of the study the mean mass outside its chunks, some rows of queries at a time.
void add_outside(Engine& engine, const ChunkInputs& in, double share, std::vector<ChunkRow>& rows) {
  const std::int64_t length = in.query.shape()[1], heads = in.query.shape()[2];
  const View<const float, 4> all = in.query;
  for (std::int64_t first = 0; first < length; first += kRowsAtOnce) {
    const std::int64_t count = std::min(kRowsAtOnce, length - first);
    const View<const float, 4> some(&all(0, first, 0, 0), {1, count, heads, all.extent(3)});
    Tensor<float, 4> out(some.shape), weights({1, heads, count, length});
    attention(engine, some, in.key, in.value, out, {.probabilities = {.per_head = weights}});
    for (ChunkRow& row : rows) {
      if (row.chunk >= length) continue;  // nothing is outside
      for (std::int64_t n = 0; n < weights.size() / length; ++n) {
        const std::int64_t query = first + n % count;
        const std::int64_t begin = query / row.chunk * row.chunk, end = std::min(begin + row.chunk, length);
        const float* const of_query = weights.data() + n * length;
        const double inside = std::accumulate(of_query + begin, of_query + end, 0.0);
        row.outside += share * std::max(0.0, 1 - inside) / static_cast<double>(heads * length);
      }
    }
  }
}

void measure_layer(Engine& engine, const ChunkInputs& in, double share, int runs, std::vector<ChunkRow>& rows,
                   Progress& progress) {
  Tensor<float, 4> full(in.query.shape()), out(in.query.shape());
  Tensor<float, 4> query_gradient(in.query.shape()), key_gradient(in.query.shape()), value_gradient(in.query.shape());
  Tensor<float, 3> log_sum_exp({1, in.query.shape()[2], in.query.shape()[1]});
  attention(engine, in.query, in.key, in.value, full);
  for (ChunkRow& row : rows) {
    const bool all = row.chunk >= in.query.shape()[1];
    AttentionOptions options{.chunk = all ? 0 : row.chunk, .log_sum_exp = log_sum_exp};
    add_seconds(
        runs, [&] { attention(engine, in.query, in.key, in.value, out, options); }, row.forward, row.busy);
    row.error += share * relative_deviation(out, full);
    options.log_sum_exp = {};
    // Of the sum of squares of the output: its gradient is the output.
    const auto backward = [&] {
      attention_backward(engine, in.query, in.key, in.value, out, log_sum_exp, out,
                         {query_gradient, key_gradient, value_gradient}, options);
    };
    add_seconds(runs, backward, row.backward, row.busy);
    progress.advance(1);
  }
}

// The ledger's bytes of a layer. Chunks see nothing of each other: written out, they are samples of one batch, and the
// shorter last one another sample.
void tell_bytes(const Engine& engine, const View<const float, 4>& query, ChunkRow& row) {
  const std::int64_t length = query.extent(1);
  analysis::AttentionStep step = {.length = length, .heads = query.extent(2), .head_dim = query.extent(3)};
  row.recomputing_bytes = static_cast<double>(attention_step_bytes(engine, step).all());
  step.method = analysis::AttentionMethod::unfused;
  step.batch = length / row.chunk;
  step.length = row.chunk;
  const analysis::AttentionStepBytes whole = attention_step_bytes(engine, step);
  step.batch = 1;
  step.length = length % row.chunk;
  const analysis::AttentionStepBytes rest = attention_step_bytes(engine, step);
  row.unfused_bytes = static_cast<double>(whole.all() + rest.all() - std::min(whole.scratch, rest.scratch));
}

}  // namespace

std::vector<ChunkRow> measure_chunks(Engine& engine, const ChunkSource& source, int runs) {
  const auto& shape = source.layers.front().query.shape();
  const auto length = static_cast<double>(shape[1]);
  std::vector<ChunkRow> rows;
  for (const std::int64_t chunk : chunks_of(shape[1])) {
    const auto whole = static_cast<double>(shape[1] / chunk), rest = static_cast<double>(shape[1] % chunk);
    const double pairs = whole * static_cast<double>(chunk) * static_cast<double>(chunk) + rest * rest;
    rows.push_back({.chunk = chunk, .pairs = pairs / (length * length)});
    tell_bytes(engine, source.layers.front().query, rows.back());
  }
  const double share = 1 / static_cast<double>(source.layers.size());
  Progress progress(source.layers.size() * (1 + rows.size()));
  for (const ChunkInputs& layer : source.layers) {
    add_outside(engine, layer, share, rows);
    progress.advance(1);
    measure_layer(engine, layer, share, runs, rows, progress);
  }
  return rows;
}

}  // namespace headlight::program
