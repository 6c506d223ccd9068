// opened_and_closed LIBRARY OTHER: opens a shared library that holds the engine or is built on it, uses it and closes
// it, a hundred times. After each the process has one thread and nothing of headlight mapped, and after the hundredth
// as much memory as after the fiftieth: or so much more as OTHER leaves, which is C++ and nothing else. (Where it is
// linked into each, libstdc++ 13 leaves the 72 KiB that it keeps for exceptions.)
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

static void use(const char* path, int round, float first[kValues]) {
  float again[kValues];
  const struct library library = open_library(path);
  headlight_engine* const engine = make_engine(&library, 3);
  attend(&library, engine, round == 1 ? first : again);
  if (round > 1) REQUIRE(memcmp(first, again, sizeof again) == 0);
  REQUIRE(lines_with("/proc/self/status", "Threads:\t3") == 1 && lines_with("/proc/self/maps", "libheadlight") > 0);
  library.destroy(engine);
  REQUIRE(dlclose(library.handle) == 0);
  // A joined thread may still be counted for a moment.
  for (int wait = 0; wait < 1000 && lines_with("/proc/self/status", "Threads:\t1") == 0; ++wait) continue;
  REQUIRE(lines_with("/proc/self/status", "Threads:\t1\n") == 1);
  REQUIRE(lines_with("/proc/self/maps", "libheadlight") == 0);
}

static void use_other(const char* path) {
  void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(handle != NULL);
  int (*throws_and_catches)(void) = NULL;
  find_function(handle, "throws_and_catches", &throws_and_catches);
  REQUIRE(throws_and_catches() == 1);
  REQUIRE(dlclose(handle) == 0);
}

struct memory {
  size_t live;
  int mappings;
};

static struct memory memory(void) { return (struct memory){mallinfo2().uordblks, lines_with("/proc/self/maps", "\n")}; }

int main(int count, char** arguments) {
  REQUIRE(count == 3);
  float first[kValues];
  struct memory at_first = {0}, others = {0};
  for (int round = 1; round <= 100; ++round) {
    use(arguments[1], round, first);
    if (round == 50) at_first = memory();
  }
  const struct memory at_last = memory();
  printf("%zu bytes and %d mappings after 50 rounds, %zu and %d after 100\n", at_first.live, at_first.mappings,
         at_last.live, at_last.mappings);
  REQUIRE(at_last.mappings <= at_first.mappings);
  for (int round = 1; round <= 100; ++round) {
    use_other(arguments[2]);
    if (round == 50) others = memory();
  }
  const size_t of_the_language = memory().live - others.live;
  printf("%zu bytes more after 50 rounds of C++ alone\n", of_the_language);
  REQUIRE(at_last.live <= at_first.live + of_the_language);
  return EXIT_SUCCESS;
}
