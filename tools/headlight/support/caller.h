// What a program that runs this one, as the Python package does, asks of it in two variables of the environment:
//   HEADLIGHT_PARENT=PID    to end when that process, its parent, does, whatever ends it;
//   HEADLIGHT_PROGRESS=FD   to write "DONE TOTAL\n" to that descriptor as work advances.
#pragma once

#include <cstddef>

namespace headlight::program {

// Reads both, and takes them out of the environment: processes that this one starts have another parent. Ends this
// process where that parent has ended already. Throws UsageError for what is no such number.
void listen_to_caller();

// To whoever asked for it.
void tell_progress(std::size_t done, std::size_t total) noexcept;

}  // namespace headlight::program
