// Nothing in the libraries waits for a constructor: they work before main(), in it and after it, with the same bits.
#include "world/around_main.h"

#include <cstdio>
#include <cstdlib>

int main() {
  if (headlight::world::results() == headlight::world::results_before_main()) return EXIT_SUCCESS;
  std::fprintf(stderr, "before main() a program computed something else than in it\n");
  return EXIT_FAILURE;
}
