// headlight-mpi attend: as headlight attend, over the ranks that mpirun has started. Each reads the rows that it holds,
// computes and writes them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>

#include "mpi/records.h"
#include "tools/headlight/support/arrays.h"
#include "tools/headlight/support/validators.h"
#include "tools/headlight_mpi/ranks.h"
#include "tools/headlight_mpi/row_file.h"

namespace headlight::program {
namespace {

class CallsOverRanks : public AttentionCalls {
 public:
  void add_to(Command& command) override { arguments_.add_to(command); }
  void begin() override { group_.emplace(MPI_COMM_WORLD, arguments_.group()); }
  void agree(const std::string& problem) override { mpi::agree(*group_, problem); }

  AttentionRows plan(const AttentionShape& whole, const AttentionOptions& options) override {
    whole_ = whole;
    for (int rank = 0; rank < group_->size(); ++rank) {
      const mpi::Plan plan = mpi::plan(whole, options, rank, group_->size(), arguments_.spread());
      queries_.push_back(plan.queries);
      keys_.push_back(plan.keys);
    }
    const auto rank = static_cast<std::size_t>(group_->rank());
    return {queries_[rank], keys_[rank]};
  }

  void attention(Engine& engine, const View<const float, 4>& query, const View<const float, 4>& key,
                 const View<const float, 4>& value, const View<float, 4>& out,
                 const AttentionOptions& options) override {
    mpi::attention(*group_, engine, whole_, query, key, value, out, options, arguments_.spread());
  }

  void attention_backward(Engine& engine, const View<const float, 4>& query, const View<const float, 4>& key,
                          const View<const float, 4>& value, const View<const float, 4>& out,
                          const View<const float, 3>& log_sum_exp, const View<const float, 4>& out_gradient,
                          const AttentionGradients& gradients, const AttentionOptions& options) override {
    mpi::attention_backward(*group_, engine, whole_, query, key, value, out, log_sum_exp, out_gradient,
                            {gradients.query, gradients.key, gradients.value, gradients.sinks}, options,
                            arguments_.spread());
  }

  [[nodiscard]] double largest(double here) override {
    Tensor<float, 4> own({1, 1, 1, 1}), all({1, group_->size(), 1, 1});
    own(0, 0, 0, 0) = static_cast<float>(here);
    const std::array<RowRun, 1> place = {{{group_->rank(), 1}}};
    mpi::collect(*group_, 0, place, own, all);
    return *std::max_element(all.begin(), all.end());
  }

  void write(const std::string& path, const View<const float, 4>& rows, RowsOf of) override {
    const bool is_queries = of == RowsOf::queries;
    write_rows(*group_, path, is_queries ? whole_.query_length : whole_.key_length, is_queries ? queries_ : keys_,
               rows);
  }

  // One number for a row: rank 0 has room for all of them.
  void write(const std::string& path, const View<const float, 3>& sums) override {
    Tensor<float, 3> all;
    if (tells()) all = Tensor<float, 3>({sums.extent(0), sums.extent(1), whole_.query_length});
    mpi::collect(*group_, 0, queries_[static_cast<std::size_t>(group_->rank())], mpi::as_rows(sums),
                 mpi::as_rows(all.view()));
    std::string problem;
    try {
      if (tells()) models::write_npy(path, all.shape(), {all.begin(), all.end()});
    } catch (const std::exception& error) {
      problem = error.what();
    }
    mpi::agree(*group_, problem);
  }

  [[nodiscard]] bool tells() const override { return group_->rank() == 0; }

 private:
  RankArguments arguments_;
  std::optional<mpi::Group> group_;
  AttentionShape whole_;
  std::vector<std::vector<RowRun>> queries_, keys_;  // of each rank
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
