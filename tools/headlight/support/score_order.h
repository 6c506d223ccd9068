// Any number of scores in order, of which only some are in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

namespace headlight::program {

// Some megabytes of scores are sorted at a time; beyond that they wait, sorted, in a temporary file that has no name,
// and are merged.
class ScoreOrder {
 public:
  // `most`: scores in memory.
  explicit ScoreOrder(std::size_t most = kMost) : most_(most) {}

  // The next one, and where what it belongs to lies. Throws std::runtime_error where a file cannot be made or written.
  void add(float score, std::int64_t place);
  // Calls take(score, number, place) for each: the highest score first, NaN last, equal ones as they came. Once.
  using Take = std::function<void(float, std::int64_t, std::int64_t)>;
  void for_each(const Take& take);

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 16;
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  struct Scored {
    std::int64_t number, place;
    float score;
  };
  // Scored ones in order, in the file from `at` to `end`, of which the first are in memory.
  struct Run {
    std::size_t at, end;
    std::vector<Scored> read;  // turned round: the next one is the last
  };
  [[nodiscard]] static bool comes_before(const Scored& a, const Scored& b) noexcept;
  void sort();
  void put_aside();
  // False where the run has ended.
  [[nodiscard]] bool fill(Run& run);

  std::size_t most_;
  std::vector<Scored> scored_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<Run> runs_;
  std::int64_t count_ = 0;
};

}  // namespace headlight::program
