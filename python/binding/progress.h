// How far a long call is: a function of the caller's, or the bar of headlight._progress.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace nb = nanobind;

namespace headlight::python {

class Progress {
 public:
  // `progress` as Encoder.embed() takes it.
  Progress(const char* operation, nb::handle progress, std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // With the GIL. What the caller's function raises passes.
  void operator()(std::size_t done) const;

 private:
  nb::object report_;  // None: nobody asks
  nb::object bar_;
  std::size_t total_;
};

}  // namespace headlight::python
