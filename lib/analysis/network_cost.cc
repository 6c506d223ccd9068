// What a training step of a network, or of a layer alone, holds and computes: its operations, as they say what they are
// made of.
#include <algorithm>
#include <array>
#include <vector>

#include "analysis/sizes.h"
#include "analysis/training_scratch.h"
#include "baseline/unfused_plan.h"
#include "headlight/analysis/training_cost.h"
#include "headlight/layers/network.h"
#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "layers/network/encoder_graph.h"
#include "layers/network/graph.h"
#include "layers/network/parts.h"
#include "layers/network/relative_bias.h"
#include "layers/segments.h"
#include "layers/sizes.h"
#include "ops/attention/plan.h"
#include "ops/attention_backward/plan.h"
#include "ops/check.h"
#include "ops/rows/sums.h"

namespace headlight::analysis {

namespace {

using layers::Keeping;
using layers::Operation;
using layers::OperationRange;
using layers::OperationSizes;
using layers::RowSpace;
using layers::Staying;
using Loan = ScratchAccount::Loan;

constexpr std::string_view kNetworkCostName = "training_cost";
// As many bytes as no machine has, and far below 2⁶³.
constexpr double kMostBytes = 1e14;

// Pairs of a token and one that it sees, in a sequence: itself, and on each side as many as there are within a window
// of w (< 0: all), Σ_t min(w, t) = w (2 · length − 1 − w) / 2.
double visible_pairs(const AttentionSpec& spec, std::int64_t length) noexcept {
  if (length == 0) return 0;
  const auto on_a_side = [&](std::int64_t window) {
    const auto within = static_cast<double>(window < 0 ? length - 1 : std::min(window, length - 1));
    return within * (2 * static_cast<double>(length) - 1 - within) / 2;
  };
  return static_cast<double>(length) + on_a_side(spec.window_before) + on_a_side(spec.causal ? 0 : spec.window_after);
}

// A graph, and the sequences that go through it: packed, or as many of one length as there are samples.
class TrainedGraph {
 public:
  explicit TrainedGraph(const NetworkTrainingPlan& plan)
      : lengths_(plan.lengths.begin(), plan.lengths.end()), unfused_(plan.attention == AttentionMethod::unfused) {
    layers::at_least(0, kNetworkCostName, "k", plan.k);
    check_lengths();
    static_cast<void>(layers::add_network(graph_, layers::checked(plan.network)));
    begin(plan.checkpoint, plan.k, plan.moments);
    offsets_.push_back(0);
    for (const std::int64_t length : lengths_) offsets_.push_back(offsets_.back() + length);
    shape_ = {1, offsets_.back()};
  }
  explicit TrainedGraph(const LayerTrainingPlan& plan)
      : lengths_{plan.length}, shape_{plan.batch, plan.length}, unfused_(plan.attention == AttentionMethod::unfused) {
    TransformerLayerOptions layer = plan.layer;
    check_width(kNetworkCostName, layer.width, layer.heads);
    check_size(kNetworkCostName, "feed_forward_width", layer.feed_forward_width, 0, 4 * kWidest);
    layers::probability(kNetworkCostName, "dropout", layer.dropout);
    layers::at_least(0, kNetworkCostName, "batch", plan.batch);
    check_lengths();
    layer.feed_forward_width = layers::given_or(layer.feed_forward_width, 4 * layer.width);
    layers::add_block(graph_, layer.width, layers::specification_of(layer), layer.dropout, false);
    begin(plan.checkpoint, 0, plan.moments);
  }

  [[nodiscard]] std::int64_t parameters() const {
    std::int64_t numbers = 0;
    for (const ParameterShape& parameter : graph_.parameters().shapes()) numbers += size_of<std::int64_t>(parameter);
    return numbers;
  }

  [[nodiscard]] TrainingFlops flops() const {
    TrainingFlops all;
    for_each(operations().all(), [&](const Operation& operation) {
      all.forward += forward_flops(operation);
      all.backward += backward_flops(operation);
    });
    for_each_segment([&](int first, int end) {
      for (int block = first; block < end; ++block) {
        for_each(again(block, end), [&](const Operation& operation) { all.again += forward_flops(operation); });
      }
    });
    return all;
  }

  [[nodiscard]] std::size_t saved_bytes() const {
    const std::size_t kept = plan().throughout().bytes(tokens()) +
                             static_cast<std::size_t>(plan().kept_outputs(training_.segment)) * output_bytes();
    return kept + (training_.segment > 0 ? 0 : bytes_of(0, static_cast<int>(graph_.blocks())));
  }
  // Of the largest segment that is computed again.
  [[nodiscard]] std::size_t again_bytes() const {
    std::size_t most = 0;
    for_each_segment([&](int first, int end) { most = std::max(most, segment_bytes(first, end)); });
    return most;
  }
  [[nodiscard]] std::size_t scratch_bytes(const Engine& engine) const {
    if (tokens() == 0) return 0;
    ScratchAccount account;
    for (int step = 0; step < 2; ++step) {
      walk_forward(engine, account);
      walk_backward(engine, account);
    }
    return account.bytes();
  }

 private:
  [[nodiscard]] const layers::OperationList& operations() const noexcept { return graph_.operations(); }
  [[nodiscard]] const layers::TrainingPlan& plan() const noexcept { return graph_.training(training_); }
  [[nodiscard]] std::int64_t tokens() const noexcept { return shape_.rows(); }
  [[nodiscard]] const OperationRange& block(int number) const noexcept {
    return operations().blocks()[static_cast<std::size_t>(number)];
  }
  template <class Function>
  void for_each(const OperationRange& some, Function f) const {
    for (int number = some.first; number < some.end; ++number) f(operations()[number]);
  }
  // f(first block, end), from the last segment to the first.
  template <class Function>
  void for_each_segment(Function f) const {
    const int count = static_cast<int>(graph_.blocks()), segment = static_cast<int>(training_.segment);
    if (segment == 0) return;
    for (int first = (count - 1) / segment * segment; first >= 0; first -= segment) {
      f(first, std::min(first + segment, count));
    }
  }
  // What of a block runs again in a segment that ends there.
  [[nodiscard]] OperationRange again(int number, int end) const {
    return {block(number).first, number + 1 < end ? block(number).end : plan().end_of_repeat(number)};
  }

  void check_lengths() const {
    for (const std::int64_t length : lengths_) layers::at_least(0, kNetworkCostName, "a length", length);
  }
  template <class Number>
  [[nodiscard]] static Number size_of(const ParameterShape& parameter) {
    Number size = 1;
    for (const std::int64_t extent : parameter.shape) size *= static_cast<Number>(extent);
    return size;
  }
  void begin(Checkpoint checkpoint, std::int64_t k, std::int64_t moments) {
    training_.segment = layers::segment_length(checkpoint, k, static_cast<std::int64_t>(graph_.blocks()));
    check_bytes(static_cast<double>(layers::at_least(0, kNetworkCostName, "moments", moments)));
    for (const std::int64_t length : lengths_) {
      if (unfused_) kept_columns_ = std::max(kept_columns_, length);
    }
  }
  // In float64, for until here nobody knows that integers hold it.
  void check_bytes(double moments) const {
    double numbers = 0, tokens = 0, pairs = 0;
    for (const ParameterShape& parameter : graph_.parameters().shapes()) numbers += size_of<double>(parameter);
    for (const std::int64_t length : lengths_) {
      const double rows = static_cast<double>(length) * static_cast<double>(shape_.batch);
      tokens += rows;
      pairs += rows * static_cast<double>(length);
    }
    double floats = static_cast<double>(plan().before_block(static_cast<int>(graph_.blocks())).floats()) +
                    static_cast<double>(plan().throughout().floats());
    for (const Staying staying : {Staying::throughout, Staying::apart, Staying::local}) {
      floats += static_cast<double>(plan().gradients(staying).floats());
    }
    double heads = 0;
    for_each(operations().all(), [&](const Operation& operation) {
      const AttentionSpec* const attention = operation.sizes().attention;
      if (attention != nullptr) heads += static_cast<double>(attention->heads);
      floats += static_cast<double>(operation.output().columns);
    });
    if (4 * (numbers * (2 + moments) + floats * tokens + (unfused_ ? heads * pairs : 0)) > kMostBytes) {
      ops::fail(kNetworkCostName, "the step takes more than 10¹⁴ bytes");
    }
  }

  [[nodiscard]] double pair_flops(const AttentionSpec& spec) const {
    double pairs = 0;
    for (const std::int64_t length : lengths_) {
      pairs += unfused_ ? static_cast<double>(length) * static_cast<double>(length) : visible_pairs(spec, length);
    }
    return pairs * static_cast<double>(shape_.batch) * static_cast<double>(spec.heads * spec.head_dim);
  }
  [[nodiscard]] double product_flops(const OperationSizes& sizes) const {
    return 2 * static_cast<double>(sizes.in) * static_cast<double>(sizes.out) * static_cast<double>(tokens());
  }
  [[nodiscard]] double forward_flops(const Operation& operation) const {
    const OperationSizes sizes = operation.sizes();
    return product_flops(sizes) + (sizes.attention != nullptr ? 4 * pair_flops(*sizes.attention) : 0);
  }
  [[nodiscard]] double backward_flops(const Operation& operation) const {
    const OperationSizes sizes = operation.sizes();
    if (sizes.attention == nullptr) return 2 * product_flops(sizes);
    // The gradient of a relative bias works out scores and their gradients once more.
    const double of_pair = (unfused_ ? 8 : 10) + (sizes.attention->relative_bias ? 4 : 0);
    return 2 * product_flops(sizes) + of_pair * pair_flops(*sizes.attention);
  }

  [[nodiscard]] std::size_t output_bytes() const { return plan().output().bytes(tokens()); }
  // Log-sum-exp, and where the plain route is taken, P.
  [[nodiscard]] std::size_t beside_bytes(const OperationRange& some) const {
    std::size_t bytes = 0;
    for_each(some, [&](const Operation& operation) {
      const AttentionSpec* const attention = operation.sizes().attention;
      if (attention == nullptr) return;
      runtime::ScratchLayout layout;
      layout.add<float>(attention->heads, tokens());
      layout.add<float>(attention->heads, tokens(), kept_columns_);
      bytes += layout.bytes();
    });
    return bytes;
  }
  // What blocks keep.
  [[nodiscard]] std::size_t bytes_of(int first, int end) const {
    if (first == end) return 0;
    return (plan().before_block(end) - plan().before_block(first)).bytes(tokens()) +
           beside_bytes({block(first).first, block(end - 1).end});
  }
  [[nodiscard]] std::size_t segment_bytes(int first, int end) const {
    return bytes_of(first, end) + static_cast<std::size_t>(end - first - 1) * output_bytes();
  }

  [[nodiscard]] ops::AttentionSizes attention_sizes(const AttentionSpec& spec) const noexcept {
    return {.batch = shape_.batch,
            .query_length = shape_.length,
            .key_length = shape_.length,
            .query_heads = spec.heads,
            .key_value_heads = spec.key_value_heads,
            .group = spec.heads / spec.key_value_heads,
            .head_dim = spec.head_dim,
            .value_dim = spec.head_dim};
  }
  [[nodiscard]] AttentionOptions attention_options(const OperationSizes& sizes) const noexcept {
    AttentionOptions options;
    options.causal = sizes.attention->causal ? Causal::top_left : Causal::none;
    options.window = {sizes.attention->window_before, sizes.attention->window_after};
    options.softcap = sizes.attention->softcap;
    options.query_offsets = offsets_;
    static constexpr float kBias = 0;
    if (sizes.attention->relative_bias) options.bias = {&kBias, {1, 1, 1, 1}};
    static constexpr float kSink = 0;  // nobody asks but whether there are any
    if (sizes.attention->sinks) options.sinks = {&kSink, 1};
    if (!unfused_) options.dropout.probability = sizes.dropout;
    return options;
  }
  [[nodiscard]] std::size_t attention_bytes(const Engine& engine, const OperationSizes& of) const {
    const ops::AttentionSizes sizes = attention_sizes(*of.attention);
    const AttentionOptions options = attention_options(of);
    if (unfused_) return baseline::plan_unfused(engine, sizes, options, sizes.query_heads).bytes();
    // Query, key and value are columns of one buffer whose rows begin with whole lines.
    const std::int64_t lanes = kernels::gemm_kernels(engine.isa()).lanes;
    const std::int64_t before = (sizes.query_heads + sizes.key_value_heads) * sizes.head_dim;
    const bool values_aligned = before % lanes == 0 && (sizes.key_value_heads == 1 || sizes.head_dim % lanes == 0);
    return ops::attention_call_bytes(engine, sizes, options, values_aligned);
  }
  [[nodiscard]] std::size_t attention_backward_bytes(const Engine& engine, const OperationSizes& of) const {
    const ops::AttentionSizes sizes = attention_sizes(*of.attention);
    if (unfused_) {
      return baseline::plan_unfused_backward(engine, sizes, attention_options(of), true, false).bytes();
    }
    return fused_backward_bytes(engine, of);
  }
  [[nodiscard]] std::size_t fused_backward_bytes(const Engine& engine, const OperationSizes& of) const {
    const ops::AttentionSizes sizes = attention_sizes(*of.attention);
    return ops::float_backward_scratch_bytes(engine, kNetworkCostName,
                                             {.batch = sizes.batch,
                                              .query_length = sizes.query_length,
                                              .key_length = sizes.key_length,
                                              .query_heads = sizes.query_heads,
                                              .key_value_heads = sizes.key_value_heads,
                                              .head_dim = sizes.head_dim,
                                              .value_dim = sizes.value_dim});
  }

  void pass_forward(const Engine& engine, const Operation& operation, std::int64_t rows,
                    ScratchAccount& account) const {
    const OperationSizes sizes = operation.sizes();
    if (sizes.out > 0) pass_linear(engine, rows, sizes.in, sizes.out, account);
    if (sizes.attention != nullptr) account.pass(attention_bytes(engine, sizes));
    if (sizes.weights > 0) account.pass(rows_bytes(rows, sizes.weights));
  }
  void pass_backward(const Engine& engine, const Operation& operation, std::int64_t rows,
                     ScratchAccount& account) const {
    const OperationSizes sizes = operation.sizes();
    const Loan dropped(account, sizes.adds_behind_dropout ? rows_bytes(rows, sizes.out) : 0);
    if (sizes.out > 0) {
      pass_linear_backward(engine, rows, sizes.in, sizes.out, sizes.has_bias, account, operation.adds(0));
    }
    if (sizes.attention != nullptr) account.pass(attention_backward_bytes(engine, sizes));
    if (sizes.attention != nullptr && sizes.attention->sinks) {
      const Loan sinks(account, layers::sink_bytes(*sizes.attention));
      account.pass(fused_backward_bytes(engine, sizes));
    }
    if (sizes.attention != nullptr && sizes.attention->relative_bias) {
      // Of one sum: a plan has no shards, each of which would have its own.
      const Loan by_distance(account, layers::distance_bytes(*sizes.attention, tokens()));
      account.pass(fused_backward_bytes(engine, sizes));
    }
    const Loan weights(account, sizes.weights > 0 ? 2 * rows_bytes(rows, sizes.weights) : 0);
    for (const OperationSizes::Sums& sums : sizes.sums) {
      if (sums.columns == 0) continue;
      const auto bytes = static_cast<std::size_t>(sums.columns) * sizeof(float);
      const Loan weight(account, sums.one_plus_weight ? bytes : 0);
      const Loan buffers(account, sums.of_heads > 0 ? rows_workspace_bytes(engine, sums.of_heads) : 0);
      account.pass(ops::row_sums_bytes(rows, sums.columns, sums.count));
    }
  }
  // f(rows) for those that go through a stretch at a time.
  template <class Function>
  void for_each_size(bool in_pieces, Function f) const {
    if (!in_pieces) return f(tokens());
    const std::int64_t at_once = operations().rows_at_once(tokens());
    f(at_once);
    if (tokens() % at_once != 0) f(tokens() % at_once);
  }

  // Graph::run_forward() and run_backward().
  void run_forward(const Engine& engine, const layers::BufferPlaces& places, const OperationRange& some,
                   ScratchAccount& account) const {
    for (int first = some.first; first < some.end;) {
      const OperationRange* const run = operations().run_of(first);
      int end = run == nullptr ? first + 1 : std::min(run->end, some.end);
      while (run == nullptr && end < some.end && operations().run_of(end) == nullptr) ++end;
      const Loan memory(account, run != nullptr ? places.within_runs : places.outside_runs);
      for_each_size(run != nullptr, [&](std::int64_t rows) {
        for_each({first, end}, [&](const Operation& one) { pass_forward(engine, one, rows, account); });
      });
      first = end;
    }
  }
  void run_backward(const Engine& engine, const OperationRange& some, ScratchAccount& account) const {
    for (int end = some.end; end > some.first;) {
      const OperationRange* const pieces = operations().pieces_of(end - 1);
      int first = pieces == nullptr ? end - 1 : std::max(pieces->first, some.first);
      while (pieces == nullptr && first > some.first && operations().pieces_of(first - 1) == nullptr) --first;
      const Staying staying = pieces == nullptr ? Staying::apart : Staying::local;
      const std::int64_t most = pieces == nullptr ? tokens() : operations().rows_at_once(tokens());
      const Loan memory(account, plan().gradients(staying).bytes(most));
      for_each_size(pieces != nullptr, [&](std::int64_t rows) {
        for (int number = end - 1; number >= first; --number) {
          pass_backward(engine, operations()[number], rows, account);
        }
      });
      end = first;
    }
  }

  // Graph::forward() and backward().
  void walk_forward(const Engine& engine, ScratchAccount& account) const {
    const layers::BufferPlaces places = graph_.buffers().places(operations(), plan(), training_.activations, tokens());
    const Loan throughout(account, places.throughout);
    std::size_t again = 0;
    for_each_segment([&](int first, int end) {
      for (int number = first; number < end; ++number) again = std::max(again, bytes_of(number, number + 1));
    });
    const Loan kept(account, again + (training_.segment > 1 ? 2 * output_bytes() : 0));
    if (training_.segment == 0) return run_forward(engine, places, operations().all(), account);
    int done = 0;
    for (const OperationRange& one : operations().blocks()) {
      run_forward(engine, places, {done, one.end}, account);
      done = one.end;
    }
    run_forward(engine, places, {done, operations().size()}, account);
  }
  void walk_backward(const Engine& engine, ScratchAccount& account) const {
    const Loan gradients(account, plan().gradients(Staying::throughout).bytes(tokens()));
    if (training_.segment == 0) return run_backward(engine, operations().all(), account);
    const layers::BufferPlaces places = graph_.buffers().places(operations(), plan(), training_.activations, tokens());
    const Loan output(account, writes_output_again() ? output_bytes_of_network() : 0);
    const Loan throughout(account, places.throughout);
    run_backward(engine, {operations().blocks().back().end, operations().size()}, account);
    for_each_segment([&](int first, int end) {
      const Loan memory(account, segment_bytes(first, end));
      for (int number = first; number < end; ++number) run_forward(engine, places, again(number, end), account);
      run_backward(engine, {block(first).first, block(end - 1).end}, account);
    });
    run_backward(engine, {0, block(0).first}, account);
  }
  [[nodiscard]] std::size_t output_bytes_of_network() const {
    return rows_bytes(tokens(), operations().made_by(operations().size() - 1).columns);
  }
  [[nodiscard]] bool writes_output_again() const {
    for (int number = 0; number < static_cast<int>(graph_.blocks()); ++number) {
      for (int one = block(number).first; one < plan().end_of_repeat(number); ++one) {
        const int made = operations()[one].output().value;
        if (graph_.buffers().of(made).is_hidden && plan().of(made).keeping == Keeping::none) return true;
      }
    }
    return false;
  }

  layers::Graph graph_{kNetworkCostName, false};
  layers::GraphTraining training_{};
  std::vector<std::int64_t> lengths_;
  std::vector<std::int64_t> offsets_{};  // of packed ones
  layers::BatchShape shape_{};
  bool unfused_;
  std::int64_t kept_columns_ = 0;
};

template <class Plan>
TrainingBytes bytes_of(const Engine& engine, const Plan& plan) {
  const TrainedGraph graph(plan);
  TrainingBytes bytes;
  bytes.parameters = bytes.gradients = 4 * graph.parameters();
  bytes.optimizer = plan.moments * bytes.parameters;
  bytes.saved = static_cast<std::int64_t>(graph.saved_bytes());
  bytes.computed_again = static_cast<std::int64_t>(graph.again_bytes());
  bytes.scratch = static_cast<std::int64_t>(graph.scratch_bytes(engine));
  return bytes;
}

}  // namespace

TrainingBytes training_bytes(const Engine& engine, const NetworkTrainingPlan& plan) { return bytes_of(engine, plan); }

TrainingBytes training_bytes(const Engine& engine, const LayerTrainingPlan& plan) { return bytes_of(engine, plan); }

TrainingFlops training_flops(const NetworkTrainingPlan& plan) { return TrainedGraph(plan).flops(); }

TrainingFlops training_flops(const LayerTrainingPlan& plan) { return TrainedGraph(plan).flops(); }

}  // namespace headlight::analysis
