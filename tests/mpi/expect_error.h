// What a call over ranks ends with, on all of them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "headlight/mpi.h"
#include "mpi/ranks.h"

namespace headlight::test {

template <class Function>
void expect_error(Function f, int rank, const std::string& words) {
  try {
    f();
    FAIL() << "no error, expected one of rank " << rank << ": " << words;
  } catch (const mpi::Error& error) {
    EXPECT_EQ(error.rank(), rank) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

// The rank that is to blame.
[[nodiscard]] inline int last_rank() { return world_size() - 1; }

}  // namespace headlight::test
