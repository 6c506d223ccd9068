#include <algorithm>
#include <span>
#include <string>

#include "mpi/call.h"
#include "mpi/distance_gradients.h"
#include "mpi/exchange.h"
#include "mpi/group.h"
#include "ops/attention/masks.h"

namespace headlight::mpi {
namespace {

using Offsets = std::span<const std::int64_t>;

// One sequence is cut the same, named or not.
bool cut_alike(Offsets a, Offsets b) noexcept {
  if (a.size() <= 2 && b.size() <= 2) return true;
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void add(Statistics& sum, const Statistics& of_call) noexcept {
  sum.seconds += of_call.seconds;
  sum.waiting_seconds += of_call.waiting_seconds;
  sum.exchange_seconds += of_call.exchange_seconds;
  sum.bytes_received += of_call.bytes_received;
  sum.bytes_late += of_call.bytes_late;
}

}  // namespace

// With a name, because State, which has linkage, is made of it.
namespace sequence_attention {

// Rows of x over keys that are rows of x, or of a memory.
class OverRanks final : public TrainingAttention {
 public:
  OverRanks(Group& group, RowShards& rows, const Spread& spread, bool of_memory)
      : group_(group),
        shards_(rows),
        rows_(rows.options()),
        spread_(spread),
        keys_(rows_.length),
        key_offsets_(rows_.offsets) {
    spread_.block = rows_.block;
    spread_.shards = rows_.shards;
    if (!of_memory) return;
    keys_ = rows_.memory_length;
    key_offsets_ = rows_.memory_offsets;
  }

  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] RowShards* shards() const noexcept override { return &shards_; }
  [[nodiscard]] std::int64_t kept_columns(std::int64_t, const AttentionOptions&) const noexcept override { return 0; }

  void forward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
               View<float, 4> out, View<float, 4>, const AttentionOptions& options) const override {
    check_offsets(options);
    add(statistics_,
        mpi::attention(group_, engine, whole_of(query, key, value), query, key, value, out, options, spread_));
  }

  void backward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                View<const float, 4> out, View<const float, 3> log_sum_exp, View<float, 4>,
                View<const float, 4> out_gradient, const AttentionGradients& gradients,
                const AttentionOptions& options) const override {
    if (gradients.bias) agree(group_, "mpi::SequenceAttention: a gradient of bias is asked for, expected none");
    add(statistics_, mpi::attention_backward(
                         group_, engine, whole_of(query, key, value), query, key, value, out, log_sum_exp, out_gradient,
                         {gradients.query, gradients.key, gradients.value, gradients.sinks}, options, spread_));
  }

  void differentiate_distances(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                               View<const float, 4> value, View<const float, 4> out, View<const float, 3> log_sum_exp,
                               View<const float, 4> out_gradient, View<float, 3> distances,
                               const AttentionOptions& options) const override {
    add(statistics_,
        mpi::differentiate_distances(group_, engine, whole_of(query, key, value),
                                     {query, key, value, out, log_sum_exp, out_gradient, options.log_sum_exp_gradient},
                                     shards_, distances, options, spread_));
  }

  void find_largest(std::span<std::int64_t> numbers) const override {
    Transport& transport = group_.state().transport;
    const Record record = {{"the call", "mpi::SequenceAttention::find_largest"},
                           {"numbers", std::to_string(numbers.size())}};
    together(
        transport, record, statistics_.exchange_seconds, [] {}, [&] { mpi::find_largest(transport, numbers); });
  }

 private:
  // Rows cut in another way would be other rows.
  void check_offsets(const AttentionOptions& options) const {
    const auto check = [&](const char* name, Offsets given, const char* expected, Offsets of_shards) {
      if (cut_alike(given, of_shards)) return;
      agree(group_, std::string("mpi::SequenceAttention: options.") + name + " are not " + expected +
                        " of the rows' shards, expected the same");
    };
    check("query_offsets", options.query_offsets, "the offsets", rows_.offsets);
    check("key_offsets", ops::packed_key_offsets(options), "those of the keys", key_offsets_);
  }

  [[nodiscard]] AttentionShape whole_of(const View<const float, 4>& query, const View<const float, 4>& key,
                                        const View<const float, 4>& value) const noexcept {
    return {.batch = rows_.batch,
            .query_length = rows_.length,
            .key_length = keys_,
            .query_heads = query.extent(2),
            .key_value_heads = key.extent(2),
            .head_dim = query.extent(3),
            .value_dim = value.extent(3)};
  }

  Group& group_;
  RowShards& shards_;
  RowShardsOptions rows_;
  Spread spread_;
  std::int64_t keys_;
  Offsets key_offsets_;
  mutable Statistics statistics_;
};

}  // namespace sequence_attention

struct SequenceAttention::State {
  sequence_attention::OverRanks of_rows;
  sequence_attention::OverRanks of_memory;
};

SequenceAttention::SequenceAttention(Group& group, RowShards& rows, const Spread& spread)
    : state_(std::make_unique<State>(State{{group, rows, spread, false}, {group, rows, spread, true}})) {}
SequenceAttention::~SequenceAttention() = default;
SequenceAttention::SequenceAttention(SequenceAttention&& other) noexcept = default;
SequenceAttention& SequenceAttention::operator=(SequenceAttention&& other) noexcept = default;

Statistics SequenceAttention::statistics() const noexcept {
  Statistics sum = state_->of_rows.statistics();
  add(sum, state_->of_memory.statistics());
  return sum;
}

std::int64_t SequenceAttention::kept_columns(std::int64_t, const AttentionOptions&) const noexcept { return 0; }

void SequenceAttention::forward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                View<const float, 4> value, View<float, 4> out, View<float, 4> kept,
                                const AttentionOptions& options) const {
  state_->of_rows.forward(engine, query, key, value, out, kept, options);
}

void SequenceAttention::backward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                 View<const float, 4> value, View<const float, 4> out, View<const float, 3> log_sum_exp,
                                 View<float, 4> kept, View<const float, 4> out_gradient,
                                 const AttentionGradients& gradients, const AttentionOptions& options) const {
  state_->of_rows.backward(engine, query, key, value, out, log_sum_exp, kept, out_gradient, gradients, options);
}

void SequenceAttention::differentiate_distances(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                                View<const float, 4> value, View<const float, 4> out,
                                                View<const float, 3> log_sum_exp, View<const float, 4> out_gradient,
                                                View<float, 3> distances, const AttentionOptions& options) const {
  state_->of_rows.differentiate_distances(engine, query, key, value, out, log_sum_exp, out_gradient, distances,
                                          options);
}

void SequenceAttention::find_largest(std::span<std::int64_t> numbers) const { state_->of_rows.find_largest(numbers); }

RowShards* SequenceAttention::shards() const noexcept { return state_->of_rows.shards(); }

const TrainingAttention& SequenceAttention::of_memory() const noexcept { return state_->of_memory; }

}  // namespace headlight::mpi
