#include "faults/plan.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace headlight::faults {
namespace {

constexpr Plan kFailures[] = {
    {"an allocation fails", Kind::allocation, Effect::fail, ENOMEM, false},
    {"no memory from then on", Kind::allocation, Effect::fail, ENOMEM, true},
    {"a thread does not start", Kind::thread, Effect::fail, EAGAIN, false},
    {"opening: too many files", Kind::open, Effect::fail, EMFILE, false},
    {"opening: not permitted", Kind::open, Effect::fail, EACCES, false},
    {"a read fails", Kind::read, Effect::fail, EIO, false},
    {"a read is interrupted", Kind::read, Effect::fail, EINTR, false},
    {"reads of one byte from then on", Kind::read, Effect::shorten, 0, true},
    {"a file ends before its time", Kind::read, Effect::end, 0, true},
    {"a write fails", Kind::write, Effect::fail, EIO, false},
    {"a write is interrupted", Kind::write, Effect::fail, EINTR, false},
    {"writes of one byte from then on", Kind::write, Effect::shorten, 0, true},
    {"a full disk from then on", Kind::write, Effect::fail, ENOSPC, true},
    {"a sync fails", Kind::sync, Effect::fail, EIO, false},
    {"a rename or link fails", Kind::rename, Effect::fail, EACCES, false},
    {"a mapping fails", Kind::map, Effect::fail, ENOMEM, false},
    {"a status cannot be had", Kind::status, Effect::fail, EIO, false},
    {"a close fails", Kind::close, Effect::fail, EIO, false},
    {"a folder cannot be made", Kind::folder, Effect::fail, ENOSPC, false},
};

constexpr Plan kSignals[] = {
    {"SIGINT before any call", Kind::any, Effect::signal, SIGINT, false},
    {"SIGTERM before any call", Kind::any, Effect::signal, SIGTERM, false},
    {"SIGUSR1 before any call", Kind::any, Effect::signal, SIGUSR1, false},
    {"SIGKILL before a write", Kind::write, Effect::signal, SIGKILL, false},
    {"SIGKILL before a sync", Kind::sync, Effect::signal, SIGKILL, false},
    {"SIGKILL before a rename or link", Kind::rename, Effect::signal, SIGKILL, false},
    {"SIGKILL before a close", Kind::close, Effect::signal, SIGKILL, false},
};

}  // namespace

std::span<const Plan> failures() noexcept { return kFailures; }
std::span<const Plan> signals() noexcept { return kSignals; }

void arm(Board& board, const Plan& plan, std::int64_t n) noexcept {
  board.kind = plan.kind;
  board.number = plan.number;
  board.lasts = plan.lasts;
  board.left = n;
  board.met = 0;
  board.effect = plan.effect;
}

std::int64_t disarm(Board& board) noexcept {
  board.effect = Effect::none;
  return board.met;
}

std::int64_t seen(const Board& board, const Plan& plan) noexcept {
  if (plan.kind != Kind::any) return board.seen[static_cast<int>(plan.kind)];
  std::int64_t sum = 0;
  for (const auto& count : board.seen) sum += count;
  return sum;
}

void forget_seen(Board& board) noexcept {
  for (auto& count : board.seen) count = 0;
}

std::vector<std::int64_t> spread(std::int64_t count, std::int64_t most) {
  std::vector<std::int64_t> chosen;
  const std::int64_t taken = std::min(count, most);
  for (std::int64_t n = 0; n < taken; ++n) chosen.push_back(taken == 1 ? 0 : n * (count - 1) / (taken - 1));
  return chosen;
}

}  // namespace headlight::faults
