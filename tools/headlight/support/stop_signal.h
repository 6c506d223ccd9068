// SIGINT and SIGTERM as a request to come to an end.
#pragma once

namespace headlight::program {

// While one is alive, the first of these signals is noted; the second ends the program as ever.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  [[nodiscard]] bool asked() const noexcept;
};

}  // namespace headlight::program
