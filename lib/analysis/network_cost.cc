// What a training step of a network, or of a layer alone, holds and computes: one walk over its operations, in the
// order in which the step runs them.
#include <algorithm>
#include <vector>

#include "analysis/operation_cost.h"
#include "analysis/sizes.h"
#include "analysis/training_scratch.h"
#include "headlight/analysis/training_cost.h"
#include "headlight/layers/network.h"
#include "layers/network/encoder_graph.h"
#include "layers/network/graph.h"
#include "layers/network/parts.h"
#include "layers/segments.h"
#include "layers/sizes.h"
#include "ops/check.h"

namespace headlight::analysis {

namespace {

using layers::Keeping;
using layers::Operation;
using layers::OperationRange;
using layers::Staying;
using Loan = ScratchAccount::Loan;

// As many bytes as no machine has, and far below 2⁶³.
constexpr double kMostBytes = 1e14;

// A graph, and the sequences that go through it: packed, or as many of one length as there are samples.
class TrainedGraph {
 public:
  explicit TrainedGraph(const NetworkTrainingPlan& plan)
      : sequences_{.lengths = {plan.lengths.begin(), plan.lengths.end()}, .attention = plan.attention} {
    layers::at_least(0, kNetworkCostName, "k", plan.k);
    check_lengths();
    static_cast<void>(layers::add_network(graph_, layers::checked(plan.network)));
    begin(plan.checkpoint, plan.k, plan.moments);
    std::vector<std::int64_t>& offsets = sequences_.offsets;
    offsets.push_back(0);
    for (const std::int64_t length : sequences_.lengths) offsets.push_back(offsets.back() + length);
    sequences_.shape = {1, offsets.back()};
  }
  explicit TrainedGraph(const LayerTrainingPlan& plan)
      : sequences_{.lengths = {plan.length}, .shape = {plan.batch, plan.length}, .attention = plan.attention} {
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
      all.forward += forward_flops(sequences_, operation);
      all.backward += backward_flops(sequences_, operation);
    });
    for_each_segment([&](int first, int end) {
      for (int block = first; block < end; ++block) {
        for_each(again(block, end),
                 [&](const Operation& operation) { all.again += forward_flops(sequences_, operation); });
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
  [[nodiscard]] std::int64_t tokens() const noexcept { return sequences_.tokens(); }
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
    for (const std::int64_t length : sequences_.lengths) layers::at_least(0, kNetworkCostName, "a length", length);
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
  }
  // In float64, for until here nobody knows that integers hold it.
  void check_bytes(double moments) const {
    double numbers = 0, tokens = 0, pairs = 0;
    for (const ParameterShape& parameter : graph_.parameters().shapes()) numbers += size_of<double>(parameter);
    for (const std::int64_t length : sequences_.lengths) {
      const double rows = static_cast<double>(length) * static_cast<double>(sequences_.shape.batch);
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
    if (4 * (numbers * (2 + moments) + floats * tokens + (sequences_.unfused() ? heads * pairs : 0)) > kMostBytes) {
      ops::fail(kNetworkCostName, "the step takes more than 10¹⁴ bytes");
    }
  }

  [[nodiscard]] std::size_t output_bytes() const { return plan().output().bytes(tokens()); }
  // What blocks keep.
  [[nodiscard]] std::size_t bytes_of(int first, int end) const {
    if (first == end) return 0;
    std::size_t bytes = (plan().before_block(end) - plan().before_block(first)).bytes(tokens());
    for_each({block(first).first, block(end - 1).end},
             [&](const Operation& operation) { bytes += bytes_beside_output(sequences_, operation); });
    return bytes;
  }
  [[nodiscard]] std::size_t segment_bytes(int first, int end) const {
    return bytes_of(first, end) + static_cast<std::size_t>(end - first - 1) * output_bytes();
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
  void run_forward(const Engine& engine, const OperationRange& some, ScratchAccount& account) const {
    for (int first = some.first; first < some.end;) {
      const OperationRange* const run = operations().run_of(first);
      const int end = run == nullptr ? first + 1 : std::min(run->end, some.end);
      for_each_size(run != nullptr, [&](std::int64_t rows) {
        for_each({first, end}, [&](const Operation& one) { pass_forward(engine, sequences_, one, rows, account); });
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
          pass_backward(engine, sequences_, operations()[number], rows, account);
        }
      });
      end = first;
    }
  }

  // Graph::forward() and backward().
  void walk_forward(const Engine& engine, ScratchAccount& account) const {
    const Loan buffers(account, buffer_bytes());
    std::size_t again = 0;
    for_each_segment([&](int first, int end) {
      for (int number = first; number < end; ++number) again = std::max(again, bytes_of(number, number + 1));
    });
    const Loan kept(account, again + (training_.segment > 1 ? 2 * output_bytes() : 0));
    if (training_.segment == 0) return run_forward(engine, operations().all(), account);
    int done = 0;
    for (const OperationRange& one : operations().blocks()) {
      run_forward(engine, {done, one.end}, account);
      done = one.end;
    }
    run_forward(engine, {done, operations().size()}, account);
  }
  void walk_backward(const Engine& engine, ScratchAccount& account) const {
    const Loan gradients(account, plan().gradients(Staying::throughout).bytes(tokens()));
    if (training_.segment == 0) return run_backward(engine, operations().all(), account);
    const Loan output(account, writes_output_again() ? output_bytes_of_network() : 0);
    run_backward(engine, {operations().blocks().back().end, operations().size()}, account);
    for_each_segment([&](int first, int end) {
      const Loan memory(account, segment_bytes(first, end));
      for (int number = first; number < end; ++number) {
        const Loan buffers(account, buffer_bytes());
        run_forward(engine, again(number, end), account);
      }
      run_backward(engine, {block(first).first, block(end - 1).end}, account);
    });
    run_backward(engine, {0, block(0).first}, account);
  }
  [[nodiscard]] std::size_t buffer_bytes() const {
    return graph_.buffers().places(operations(), plan(), training_.activations, tokens()).bytes;
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
  TrainedSequences sequences_;
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
