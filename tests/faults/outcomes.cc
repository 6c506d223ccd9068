#include "faults/outcomes.h"

#include <algorithm>
#include <cstdio>

namespace headlight::faults {

void Outcomes::add(const char* plan, Outcome outcome, const std::string& defect) {
  const std::lock_guard lock(mutex_);
  const auto [row, is_new] = rows_.try_emplace(plan);
  if (is_new) order_.emplace_back(plan);
  ++row->second[static_cast<std::size_t>(outcome)];
  if (outcome == Outcome::defect) defects_.push_back(std::string(plan) + ": " + defect);
}

bool Outcomes::report(const char* subject) const {
  std::printf("| %s | faults | went on | refused | stopped | defects |\n|---|---|---|---|---|---|\n", subject);
  std::array<std::int64_t, kOutcomes> sums{};
  const auto print = [](const std::string& name, const std::array<std::int64_t, kOutcomes>& row) {
    const auto count = [&row](Outcome outcome) {
      return static_cast<long long>(row[static_cast<std::size_t>(outcome)]);
    };
    const long long went_on = count(Outcome::went_on), refused = count(Outcome::refused),
                    stopped = count(Outcome::stopped), defects = count(Outcome::defect);
    std::printf("| %s | %lld | %lld | %lld | %lld | %lld |\n", name.c_str(), went_on + refused + stopped + defects,
                went_on, refused, stopped, defects);
  };
  for (const std::string& name : order_) {
    const auto& row = rows_.at(name);
    for (std::size_t outcome = 0; outcome < row.size(); ++outcome) sums[outcome] += row[outcome];
    print(name, row);
  }
  print("together", sums);
  std::fflush(stdout);

  constexpr std::size_t kMostTold = 60;
  for (std::size_t n = 0; n < std::min(defects_.size(), kMostTold); ++n)
    std::fprintf(stderr, "%s\n", defects_[n].c_str());
  if (defects_.size() > kMostTold) std::fprintf(stderr, "… and %zu more\n", defects_.size() - kMostTold);
  return defects_.empty();
}

}  // namespace headlight::faults
