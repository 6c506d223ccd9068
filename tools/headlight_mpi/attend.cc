// headlight-mpi attend: as headlight attend, over the ranks that mpirun has started. Each reads the arrays, takes its
// shares and computes them; rank 0 writes.
#include <chrono>
#include <cmath>
#include <optional>

#include "tools/headlight/support/validators.h"
#include "tools/headlight_mpi/ranks.h"

namespace headlight::program {
namespace {

class CallsOverRanks : public AttentionCalls {
 public:
  void add_to(Command& command) override { arguments_.add_to(command); }

  void begin(const std::string& problem) override {
    group_.emplace(MPI_COMM_WORLD, arguments_.group());
    mpi::agree(*group_, problem);
  }

  void attention(Engine& engine, const View<const float, 4>& query, const View<const float, 4>& key,
                 const View<const float, 4>& value, const View<float, 4>& out,
                 const AttentionOptions& options) override {
    const Shares shares = take(query, key, value, options);
    Tensor<float, 4> own = rows(out);
    Tensor<float, 3> own_sums({query.extent(0), query.extent(2), shares.plan.query_rows});
    AttentionOptions of_share = options;
    if (options.log_sum_exp) of_share.log_sum_exp = own_sums;
    mpi::attention(*group_, engine, shares.whole, shares.query, shares.key, shares.value, own, of_share,
                   arguments_.spread());
    mpi::collect(*group_, 0, shares.plan.queries, own, out);
    if (options.log_sum_exp) {
      mpi::collect(*group_, 0, shares.plan.queries, as_rows<const float>(own_sums.view()),
                   as_rows<float>(options.log_sum_exp));
    }
    // Gradients are computed from the shares.
    out_ = std::move(own);
    log_sum_exp_ = std::move(own_sums);
  }

  void attention_backward(Engine& engine, const View<const float, 4>& query, const View<const float, 4>& key,
                          const View<const float, 4>& value, const View<const float, 4>&, const View<const float, 3>&,
                          const View<const float, 4>& out_gradient, const AttentionGradients& gradients,
                          const AttentionOptions& options) override {
    const Shares shares = take(query, key, value, options);
    Tensor<float, 4> own_gradient = rows(out_gradient);
    mpi::take_share(plan_.queries, out_gradient, own_gradient);
    Tensor<float, 4> of_query, of_key, of_value;
    mpi::Gradients own;
    if (gradients.query) own.query = of_query = rows(gradients.query);
    if (gradients.key) own.key = of_key = keys(gradients.key);
    if (gradients.value) own.value = of_value = keys(gradients.value);
    own.sinks = gradients.sinks;
    mpi::attention_backward(*group_, engine, shares.whole, shares.query, shares.key, shares.value, out_, log_sum_exp_,
                            own_gradient, own, options, arguments_.spread());
    if (gradients.query) mpi::collect(*group_, 0, plan_.queries, of_query, gradients.query);
    if (gradients.key) mpi::collect(*group_, 0, plan_.keys, of_key, gradients.key);
    if (gradients.value) mpi::collect(*group_, 0, plan_.keys, of_value, gradients.value);
  }

  [[nodiscard]] bool writes() const override { return group_->rank() == 0; }

 private:
  struct Shares {
    AttentionShape whole;
    mpi::Plan plan;
    Tensor<float, 4> query, key, value;
  };

  Shares take(const View<const float, 4>& query, const View<const float, 4>& key, const View<const float, 4>& value,
              const AttentionOptions& options) {
    Shares shares{.whole = {query.extent(0), query.extent(1), key.extent(1), query.extent(2), key.extent(2),
                            query.extent(3), value.extent(3)},
                  .plan = {},
                  .query = {},
                  .key = {},
                  .value = {}};
    // What is wrong with the options is wrong on all ranks alike.
    shares.plan = plan_ = mpi::plan(shares.whole, options, group_->rank(), group_->size(), arguments_.spread());
    shares.query = rows(query);
    shares.key = keys(key);
    shares.value = keys(value);
    mpi::take_share(plan_.queries, query, shares.query);
    mpi::take_share(plan_.keys, key, shares.key);
    mpi::take_share(plan_.keys, value, shares.value);
    return shares;
  }

  template <class T>
  [[nodiscard]] static View<T, 4> as_rows(const View<T, 3>& sums) {
    return {sums.data,
            {sums.extent(0), sums.extent(2), sums.extent(1), 1},
            {sums.stride(0), sums.stride(2), sums.stride(1), 1}};
  }
  // Of this rank, like a whole one.
  template <class T>
  [[nodiscard]] Tensor<float, 4> rows(const View<T, 4>& whole) const {
    return Tensor<float, 4>({whole.extent(0), plan_.query_rows, whole.extent(2), whole.extent(3)});
  }
  template <class T>
  [[nodiscard]] Tensor<float, 4> keys(const View<T, 4>& whole) const {
    return Tensor<float, 4>({whole.extent(0), plan_.key_rows, whole.extent(2), whole.extent(3)});
  }

  RankArguments arguments_;
  std::optional<mpi::Group> group_;
  mpi::Plan plan_;
  Tensor<float, 4> out_;
  Tensor<float, 3> log_sum_exp_;
};

}  // namespace

void RankArguments::add_to(Command& command) {
  command
      .add_option("--head-ranks", head_ranks,
                  "Ranks that share out the heads; the others share the sequence (default: what is foretold fastest)")
      .type_name("N")
      .check(between(1, 1 << 20));
  command.add_option("--block", block, "Rows that lie together on a rank, a multiple of 64 (default: by length)")
      .type_name("ROWS")
      .check(at_least(64));
  timeout.add_to(command);
}

void TimeoutArgument::add_to(Command& command) {
  command.add_option("--timeout", seconds, "Seconds for which a rank may give no sign of life (default: 60)")
      .type_name("S");
}

mpi::GroupOptions TimeoutArgument::group() const {
  // Less than a millisecond is refused by the group.
  return {.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds, 1e9) * 1000))};
}

std::shared_ptr<AttentionCalls> calls_over_ranks() { return std::make_shared<CallsOverRanks>(); }

}  // namespace headlight::program
