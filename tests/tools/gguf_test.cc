// A GGUF file in the place of a model's folder.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

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

TEST(Gguf, ShowsItsHeads) {
  const std::string path = HEADLIGHT_SOURCE "/tests/golden/gguf_qwen3.gguf";
  const ScratchFolder folder;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"heads", "--model", path, "--text", "a city"},
        {"beams", "--model", path, "--text", "a city", "-o", folder / "beams.html"},
        {"study", "precision", "--model", path, "--quick"}}) {
    const Finished shown = run_program(command);
    EXPECT_EQ(shown.code, 0) << command[0] << ": " << shown.error;
  }
}

TEST(Gguf, BecomesAFolder) {
  const std::string path = HEADLIGHT_SOURCE "/tests/golden/gguf_qwen3.gguf";
  const ScratchFolder folder;
  const Finished converted = run_program({"convert", "--model", path, "--type", "float32", "-o", folder / "model"});
  EXPECT_EQ(converted.code, 0) << converted.error;
  const auto embedded = [](const std::string& model) {
    return run_program({"embed", "--model", model, "--text", "a city", "--json"}).out;
  };
  EXPECT_EQ(embedded(folder / "model"), embedded(path));
  EXPECT_NE(embedded(path), "");
}

}  // namespace headlight::test::gguf_test
