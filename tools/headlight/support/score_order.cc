#include "tools/headlight/support/score_order.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>

namespace headlight::program {
namespace {

// Of a run, that are in memory while it is merged.
constexpr std::size_t kReadAtATime = 64;

[[noreturn]] void fail(const char* action) {
  throw std::runtime_error(std::string("cannot ") + action +
                           " a temporary file for scores: " + std::generic_category().message(errno));
}

}  // namespace

bool ScoreOrder::comes_before(const Scored& a, const Scored& b) noexcept {
  const auto rank = [](const Scored& one) {
    return std::isnan(one.score) ? -std::numeric_limits<float>::infinity() : one.score;
  };
  return rank(a) != rank(b) ? rank(a) > rank(b) : a.number < b.number;
}

void ScoreOrder::sort() { std::sort(scored_.begin(), scored_.end(), comes_before); }

void ScoreOrder::add(float score, std::int64_t place) {
  if (scored_.size() == most_) put_aside();
  scored_.push_back({count_++, place, score});
}

void ScoreOrder::put_aside() {
  sort();
  if (!file_) file_.reset(std::tmpfile());
  if (!file_) fail("make");
  if (std::fwrite(scored_.data(), sizeof(Scored), scored_.size(), file_.get()) != scored_.size()) fail("write");
  const std::size_t begin = runs_.empty() ? 0 : runs_.back().end;
  runs_.push_back({begin, begin + scored_.size(), {}});
  scored_.clear();
}

bool ScoreOrder::fill(Run& run) {
  if (!run.read.empty()) return true;
  if (run.at == run.end) return false;
  run.read.resize(std::min(kReadAtATime, run.end - run.at));
  if (std::fseek(file_.get(), static_cast<long>(run.at * sizeof(Scored)), SEEK_SET) != 0) fail("read");
  if (std::fread(run.read.data(), sizeof(Scored), run.read.size(), file_.get()) != run.read.size()) fail("read");
  run.at += run.read.size();
  std::reverse(run.read.begin(), run.read.end());
  return true;
}

void ScoreOrder::for_each(const Take& take) {
  sort();
  if (!runs_.empty()) {
    put_aside();
    if (std::fflush(file_.get()) != 0) fail("write");
  }
  for (const Scored& one : scored_) take(one.score, one.number, one.place);
  // A heap of runs, the one on top whose next score comes first.
  const auto comes_after = [](const Run& a, const Run& b) { return comes_before(b.read.back(), a.read.back()); };
  for (Run& run : runs_) static_cast<void>(fill(run));
  std::make_heap(runs_.begin(), runs_.end(), comes_after);
  while (!runs_.empty()) {
    std::pop_heap(runs_.begin(), runs_.end(), comes_after);
    Run& run = runs_.back();
    const Scored one = run.read.back();
    take(one.score, one.number, one.place);
    run.read.pop_back();
    if (fill(run)) {
      std::push_heap(runs_.begin(), runs_.end(), comes_after);
    } else {
      runs_.pop_back();
    }
  }
}

}  // namespace headlight::program
