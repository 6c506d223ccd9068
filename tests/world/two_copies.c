// two_copies FIRST SECOND: two files that hold the same library in one process, as two programs' plug-ins bring them.
// Each is used, by turns and at once, and each outlives the other. Which file a name of either was bound to,
// two_copies.cmake reads from the loader.
#define _GNU_SOURCE  // dladdr
#include "opened_library.h"

static int lies_in(void* handle, const char* path) {
  Dl_info info;
  return dladdr(dlsym(handle, "headlight_attention"), &info) != 0 && strcmp(info.dli_fname, path) == 0;
}

int main(int count, char** paths) {
  REQUIRE(count == 3);
  float first_out[kValues], second_out[kValues];
  const struct library first = open_library(paths[1]), second = open_library(paths[2]);
  REQUIRE(first.handle != second.handle && lies_in(first.handle, paths[1]) && lies_in(second.handle, paths[2]));
  headlight_engine* const first_engine = make_engine(&first, 2);
  headlight_engine* second_engine = make_engine(&second, 2);
  for (int round = 0; round < 3; ++round) {
    attend(&first, first_engine, first_out);
    attend(&second, second_engine, second_out);
    REQUIRE(memcmp(first_out, second_out, sizeof first_out) == 0);
  }
  first.destroy(first_engine);
  REQUIRE(dlclose(first.handle) == 0);
  attend(&second, second_engine, second_out);
  second.destroy(second_engine);
  second_engine = make_engine(&second, 3);
  attend(&second, second_engine, second_out);
  second.destroy(second_engine);
  REQUIRE(memcmp(first_out, second_out, sizeof first_out) == 0);
  return EXIT_SUCCESS;
}
