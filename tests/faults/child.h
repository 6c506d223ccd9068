// A program that runs under the preloaded object, as a child whose board the parent holds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "faults/board.h"

namespace headlight::faults {

struct Finished {
  int code = -1;    // of exit(); −1 when a signal ended it
  int signal = 0;   // that ended it; SIGALRM after kPatience seconds
  std::string out;  // standard output
  std::string error;
};
inline constexpr unsigned kPatience = 600;

struct Child {
  std::string injector;                // path of the object
  std::vector<std::string> command{};  // the program and its arguments
  std::string folder{};                // where it runs
};

// A board in memory that children share. One child at a time.
class SharedBoard {
 public:
  SharedBoard();
  ~SharedBoard();
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;

  [[nodiscard]] Board& operator*() noexcept { return *board_; }
  // Runs the child to its end, counting from zero.
  [[nodiscard]] Finished run(const Child& child);

 private:
  int descriptor_ = -1;
  Board* board_ = nullptr;
};

}  // namespace headlight::faults
