#include "progress.h"

#include <optional>

#include "errors.h"
#include "values.h"

namespace headlight::python {

Progress::Progress(const char* operation, nb::handle progress, std::size_t total) : report_(nb::none()), total_(total) {
  const std::optional<bool> wanted = boolean(progress);
  if (wanted == false) return;
  if (progress.is_none() || wanted) {
    report_ = bar_ = nb::module_::import_("headlight._progress").attr("Bar")(wanted.has_value());
  } else if (PyCallable_Check(progress.ptr()) != 0) {
    report_ = nb::borrow(progress);
  } else {
    refuse_type(operation, "progress is " + kind_of(progress) + ", expected None, True, False or a function");
  }
}

// Also where the call ended in an exception: the line of the bar ends.
Progress::~Progress() {
  if (!bar_.is_valid()) return;
  const nb::error_scope kept;
  try {
    bar_.attr("close")();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("headlight._progress.Bar.close");
  }
}

void Progress::operator()(std::size_t done) const {
  if (!report_.is_none()) report_(done, total_);
}

}  // namespace headlight::python
