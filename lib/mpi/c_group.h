// A group of the C interface, and calls of it.
#pragma once

#include <exception>

#include "c/handles.h"
#include "headlight/c/mpi.h"
#include "headlight/mpi.h"

struct headlight_mpi_group {
  headlight::mpi::Group group;
};

namespace headlight::c {

// What has failed on a rank fails on all. prepare() reads the arguments and returns what is to be called with them.
// Where it cannot, the other ranks, which wait for this one's word on the call, get its words instead; a rank without a
// group has nobody to tell.
template <class Prepare>
headlight_status call_of_group(const char* operation, headlight_mpi_group* group, headlight_error* error,
                               const Prepare& prepare) noexcept {
  return call(error, [&] {
    mpi::Group& of_all = required(operation, "group", group).group;
    try {
      const auto prepared = [&] {
        try {
          return prepare();
        } catch (const std::exception& problem) {
          mpi::agree(of_all, problem.what());
          throw;
        }
      }();
      prepared(of_all);
    } catch (const mpi::Error& failure) {
      throw Failure(HEADLIGHT_SYSTEM_ERROR, failure.what());
    }
  });
}

}  // namespace headlight::c
