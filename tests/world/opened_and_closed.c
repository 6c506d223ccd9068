// opened_and_closed LIBRARY: opens a shared library that holds the engine or is built on it, uses it and closes it, a
// hundred times. After each the process has one thread and nothing of headlight mapped, and after the hundredth as much
// memory as after the tenth.
#define _DEFAULT_SOURCE
#include <malloc.h>

#include "opened_library.h"

// The lines of a file of /proc/self that hold `part`.
static int lines_with(const char* file, const char* part) {
  char line[4096];
  int count = 0;
  FILE* const lines = fopen(file, "r");
  REQUIRE(lines != NULL);
  while (fgets(line, sizeof line, lines) != NULL) count += strstr(line, part) != NULL;
  fclose(lines);
  return count;
}

int main(int count, char** arguments) {
  REQUIRE(count == 2);
  float first[kValues], again[kValues];
  size_t live = 0;
  int mappings = 0;
  for (int round = 1; round <= 100; ++round) {
    const struct library library = open_library(arguments[1]);
    headlight_engine* const engine = make_engine(&library, 3);
    attend(&library, engine, round == 1 ? first : again);
    if (round > 1) REQUIRE(memcmp(first, again, sizeof first) == 0);
    REQUIRE(lines_with("/proc/self/status", "Threads:\t3") == 1 && lines_with("/proc/self/maps", "libheadlight") > 0);
    library.destroy(engine);
    REQUIRE(dlclose(library.handle) == 0);
    // A joined thread may still be counted for a moment.
    for (int wait = 0; wait < 1000 && lines_with("/proc/self/status", "Threads:\t1") == 0; ++wait) continue;
    REQUIRE(lines_with("/proc/self/status", "Threads:\t1\n") == 1);
    REQUIRE(lines_with("/proc/self/maps", "libheadlight") == 0);
    if (round == 50) {
      live = mallinfo2().uordblks;
      mappings = lines_with("/proc/self/maps", "\n");
    }
  }
  const size_t live_at_last = mallinfo2().uordblks;
  const int mappings_at_last = lines_with("/proc/self/maps", "\n");
  printf("%zu bytes and %d mappings after 50 rounds, %zu and %d after 100\n", live, mappings, live_at_last,
         mappings_at_last);
  REQUIRE(live_at_last <= live && mappings_at_last <= mappings);
  return EXIT_SUCCESS;
}
