#include "harness/attention_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "baseline/attention_unfused.h"
#include "harness/clock.h"
#include "harness/inputs.h"
#include "harness/spans.h"
#include "reference/attention.h"

namespace headlight::bench {
namespace {

// Everything that a case computes on.
struct Operands {
  explicit Operands(const AttentionCase& shape_)
      : shape(shape_),
        query_memory(filled<1>({shape.batch * shape.query_length * shape.query_heads * shape.head_dim}, 1)),
        key_memory(filled<1>({shape.batch * shape.key_length * shape.key_value_heads * shape.head_dim}, 2)),
        value_memory(filled<1>({key_memory.size()}, 3)),
        out_memory({query_memory.size()}),
        query(view(query_memory.data(), shape.query_length, shape.query_heads)),
        key(view(key_memory.data(), shape.key_length, shape.key_value_heads)),
        value(view(value_memory.data(), shape.key_length, shape.key_value_heads)),
        out(view(out_memory.data(), shape.query_length, shape.query_heads)) {
    options.causal = shape.causal;
    options.window = shape.window;
    options.key_lengths = shape.key_lengths;
    options.query_offsets = shape.offsets;
    if (shape.boolean_mask) {
      mask = Tensor<std::uint8_t, 4>({1, 1, shape.query_length, shape.key_length});
      std::uint32_t seed = 5;
      for (std::uint8_t& entry : mask) entry = ((seed = seed * 1664525u + 1013904223u) >> 29) != 0;
      options.mask = BooleanMask{mask, MaskMeans::attend};
    }
    if (shape.bias || shape.slopes) {
      for (std::int64_t h = 0; h < shape.query_heads; ++h) slopes.push_back(0.01f * static_cast<float>(h + 1));
      bias = Tensor<float, 4>({1, shape.query_heads, shape.query_length, shape.key_length});
      for (std::int64_t h = 0; h < shape.query_heads; ++h) {
        for (std::int64_t i = 0; i < shape.query_length; ++i) {
          for (std::int64_t j = 0; j < shape.key_length; ++j)
            bias(0, h, i, j) = -slopes[static_cast<std::size_t>(h)] * static_cast<float>(std::abs(i - j));
        }
      }
      if (shape.bias) options.bias = bias;
      if (shape.slopes) options.alibi = slopes;
    }
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  [[nodiscard]] View<float, 4> view(float* data, std::int64_t length, std::int64_t heads) const {
    const std::int64_t dim = shape.head_dim;
    const bool by_head = shape.memory == AttentionCase::Memory::by_head;
    return {data,
            {shape.batch, length, heads, dim},
            {length * heads * dim, by_head ? dim : heads * dim, by_head ? length * dim : dim, 1}};
  }

  AttentionCase shape;
  Tensor<float, 1> query_memory, key_memory, value_memory, out_memory;
  View<float, 4> query, key, value, out;
  Tensor<std::uint8_t, 4> mask;
  Tensor<float, 4> bias;
  std::vector<float> slopes;
  AttentionOptions options;
};

double visible_pairs(const Operands& operands, const std::vector<Interval>& rows) {
  double pairs = 0;
  if (operands.shape.boolean_mask) {
    for (const std::uint8_t entry : operands.mask) pairs += entry;
  } else {
    for (const Interval& row : rows) pairs += static_cast<double>(row.end - row.begin);
  }
  return pairs * static_cast<double>(operands.shape.query_heads);
}

// Queries, the keys and values that somebody sees, and the bias. Only by_position has key_lengths here.
Reads attention_reads(const Operands& operands) {
  const AttentionCase& shape = operands.shape;
  if (shape.key_lengths.empty()) {
    return shape.bias ? reads_of(operands.query_memory, operands.key_memory, operands.value_memory, operands.bias)
                      : reads_of(operands.query_memory, operands.key_memory, operands.value_memory);
  }
  Reads reads = reads_of(operands.query_memory);
  const auto position = static_cast<std::size_t>(shape.key_value_heads * shape.head_dim);
  for (const Tensor<float, 1>* memory : {&operands.key_memory, &operands.value_memory}) {
    const float* sample = memory->data();
    for (const std::int64_t length : shape.key_lengths) {
      reads.emplace_back(sample, static_cast<std::size_t>(length) * position);
      sample += static_cast<std::size_t>(shape.key_length) * position;
    }
  }
  return reads;
}

// One row of one head in float64, against ours; also that it sees as many keys as the case counts.
bool row_is_right(const Operands& operands, const Interval& row, std::int64_t b, std::int64_t h, std::int64_t i) {
  const AttentionCase& shape = operands.shape;
  const std::int64_t from = h / (shape.query_heads / shape.key_value_heads);
  const double scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  std::vector<double> weights(static_cast<std::size_t>(shape.key_length));
  double sum = 0;
  for (std::int64_t j = 0; j < shape.key_length; ++j) {
    if (!reference::visible(operands.options, shape.query_length, shape.key_length, b, h, i, j)) {
      if (!shape.boolean_mask && j >= row.begin && j < row.end) return false;
      continue;
    }
    if (j < row.begin || j >= row.end) return false;
    double score = 0;
    for (std::int64_t d = 0; d < shape.head_dim; ++d)
      score += static_cast<double>(operands.query(b, i, h, d)) * operands.key(b, j, from, d);
    score *= scale;
    if (shape.bias || shape.slopes) score += operands.bias(0, h, i, j);
    sum += weights[static_cast<std::size_t>(j)] = std::exp(score);
  }
  for (std::int64_t d = 0; d < shape.head_dim; ++d) {
    double expected = 0;
    for (std::int64_t j = 0; j < shape.key_length; ++j)
      expected += weights[static_cast<std::size_t>(j)] / sum * operands.value(b, j, from, d);
    // Values are below 1, so this is far above the rounding of any length here and far below a wrong weight.
    if (!(std::abs(expected - operands.out(b, i, h, d)) < 1e-5)) return false;
  }
  return true;
}

bool some_rows_are_right(const Operands& operands, const std::vector<Interval>& rows) {
  const AttentionCase& shape = operands.shape;
  for (std::int64_t probe = 0; probe < 8; ++probe) {
    const std::int64_t b = probe % shape.batch;
    const std::int64_t h = probe * 7919 % shape.query_heads;
    const std::int64_t i = (probe * 104729 + shape.query_length - 1) % shape.query_length;
    if (!row_is_right(operands, rows[static_cast<std::size_t>(b * shape.query_length + i)], b, h, i)) return false;
  }
  return true;
}

// Packed sequences one after another, as one would by hand; else the whole at once.
std::function<void()> unfused_on(SgemmPeer& blas, const std::shared_ptr<Operands>& operands,
                                 const std::vector<Interval>& rows, Engine& engine) {
  const AttentionCase& shape = operands->shape;
  auto parts = std::make_shared<std::vector<UnfusedAttention>>();
  if (shape.offsets.empty()) {
    const bool sees_all = std::all_of(
        rows.begin(), rows.end(), [&](const Interval& row) { return row.begin == 0 && row.end == shape.key_length; });
    ScoreChanges changes;
    if (shape.boolean_mask) changes.mask = operands->mask;
    if (shape.bias || shape.slopes) changes.bias = operands->bias;
    parts->emplace_back(engine, blas, operands->query, operands->key, operands->value, operands->out,
                        sees_all ? std::vector<Interval>() : rows, changes);
  }
  for (std::size_t s = 0; s + 1 < shape.offsets.size(); ++s) {
    const auto sequence = [&](auto view) {
      view.data += shape.offsets[s] * view.stride(1);
      view.shape[1] = shape.offsets[s + 1] - shape.offsets[s];
      return view;
    };
    parts->emplace_back(engine, blas, sequence(operands->query), sequence(operands->key), sequence(operands->value),
                        sequence(operands->out), std::vector<Interval>());
  }
  return [parts, operands] {
    for (UnfusedAttention& part : *parts) part();
  };
}

// Unfused attention on the BLAS with which this very case is fastest, of those whose result is right: after a first
// run, which counts where time is short, each in turn, for a twentieth of a second and else once at least.
std::optional<Peer> best_unfused(const std::shared_ptr<Operands>& operands, const std::vector<Interval>& rows,
                                 const CaseContext& context) {
  constexpr int kMostRounds = 100;
  constexpr double kSecondsOfEach = 0.05;
  struct Candidate {
    Peer peer;
    double best_seconds = std::numeric_limits<double>::infinity();
  };
  std::vector<Candidate> candidates;
  double seconds = 0;
  for (const auto& blas : sgemm_peers()) {
    Candidate first{{"unfused on " + blas->name(), blas->version(), unfused_on(*blas, operands, rows, context.engine)}};
    std::fill(operands->out_memory.begin(), operands->out_memory.end(), std::numeric_limits<float>::quiet_NaN());
    const auto start = Clock::now();
    first.peer.run();
    if (context.options.quick) seconds += first.best_seconds = seconds_since(start);
    if (some_rows_are_right(*operands, rows)) candidates.push_back(std::move(first));
  }
  for (int round = 0; round < kMostRounds && seconds < kSecondsOfEach * static_cast<double>(candidates.size());
       ++round) {
    for (Candidate& candidate : candidates) {
      const auto start = Clock::now();
      candidate.peer.run();
      const double took = seconds_since(start);
      seconds += took;
      candidate.best_seconds = std::min(candidate.best_seconds, took);
    }
  }
  const auto best = std::min_element(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.best_seconds < b.best_seconds;
  });
  if (best == candidates.end()) return std::nullopt;
  return std::move(best->peer);
}

std::vector<Peer> peers_of(const std::shared_ptr<Operands>& operands, const std::vector<Interval>& rows,
                           const CaseContext& context) {
  std::vector<Peer> peers;
  const AttentionCase& shape = operands->shape;
  Engine* engine = &context.engine;
  if (std::optional<Peer> unfused = best_unfused(operands, rows, context)) peers.push_back(*std::move(unfused));
  // Our own unfused route writes out the scores of a whole sample, so not for many packed sequences.
  if (!context.options.quick && shape.offsets.empty()) {
    peers.push_back({"headlight unfused", "", [operands, engine] {
                       baseline::attention_unfused(*engine, operands->query, operands->key, operands->value,
                                                   operands->out, operands->options);
                     }});
  }
  return peers;
}

}  // namespace

std::vector<Interval> intervals_of(const AttentionCase& shape) {
  std::vector<Interval> rows;
  std::size_t sequence = 0;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t i = 0; i < shape.query_length; ++i) {
      Interval row{0, shape.key_length};
      const std::int64_t position =
          shape.causal == Causal::bottom_right ? i + shape.key_length - shape.query_length : i;
      if (shape.causal != Causal::none) row.end = std::min(row.end, position + 1);
      if (shape.window.left >= 0) row.begin = std::max(row.begin, position - shape.window.left);
      if (shape.window.right >= 0) row.end = std::min(row.end, position + shape.window.right + 1);
      if (!shape.key_lengths.empty()) row.end = std::min(row.end, shape.key_lengths[static_cast<std::size_t>(b)]);
      if (!shape.offsets.empty()) {
        while (shape.offsets[sequence + 1] <= i) ++sequence;
        row = {shape.offsets[sequence], shape.offsets[sequence + 1]};
      }
      rows.push_back(row);
    }
  }
  return rows;
}

Work attention_work(const AttentionCase& shape, const CaseContext& context) {
  const auto operands = std::make_shared<Operands>(shape);
  const std::vector<Interval> rows = intervals_of(shape);
  Engine* engine = &context.engine;
  Work work;
  work.run = [operands, engine] {
    attention(*engine, operands->query, operands->key, operands->value, operands->out, operands->options);
  };
  work.is_right = [operands, rows] { return some_rows_are_right(*operands, rows); };
  work.operations = 4 * visible_pairs(*operands, rows) * static_cast<double>(shape.head_dim);
  work.reads = attention_reads(*operands);
  work.bound_by_reading = shape.bound_by_reading;
  work.writes = writes_of(operands->out_memory);
  work.other_bytes = static_cast<double>(operands->mask.size());
  if (context.options.peers) work.peers = peers_of(operands, rows, context);
  return work;
}

}  // namespace headlight::bench
