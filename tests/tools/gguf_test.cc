// A GGUF file in the place of a model's folder.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tools/program.h"

namespace headlight::test::gguf_test {

TEST(Gguf, IsAModelOfTheProgram) {
  const std::string path = HEADLIGHT_SOURCE "/tests/golden/gguf_qwen3.gguf";
  const Finished one = run_program({"embed", "--model", path, "--text", "a city", "--json"});
  EXPECT_EQ(one.code, 0) << one.error;
  EXPECT_EQ(one.out.rfind("[{\"text\": \"a city\", \"embedding\": [", 0), 0u) << one.out;
  const ScratchFolder folder;
  std::ofstream(folder / "broken.gguf") << "GGUF";
  expect_error(run_program({"embed", "--model", folder / "broken.gguf", "--text", "a"}),
               {"broken.gguf: the version has 4 bytes"});
}

}  // namespace headlight::test::gguf_test
