#include "faults/program_commands.h"

namespace headlight::faults {
namespace {

// Of words that the demonstration model knows.
constexpr const char* kSentence = "The animal didn't cross the street because it was too tired.";

}  // namespace

std::span<const ProgramCommand> program_commands() {
  static const std::vector<ProgramCommand> commands = {
      {.name = "info", .arguments = {"info"}, .prints_the_same = false},
      {.name = "presets", .arguments = {"presets"}},
      {.name = "attend",
       .arguments = {"attend", "--query", "@query.npy", "--key", "@key.npy", "--value", "@value.npy", "-o", "out.npy",
                     "--probabilities", "p.npy"}},
      {.name = "embed", .arguments = {"embed", "--model", "@model", "--input", "@texts.txt", "-o", "vectors.npy"}},
      {.name = "embed in bfloat16",
       .arguments = {"embed", "--model", "@model", "--text", kSentence, "--precision", "bfloat16"}},
      {.name = "encode", .arguments = {"encode", "--model", "@model", "--text", kSentence, "-o", "hidden.npy"}},
      {.name = "convert", .arguments = {"convert", "--model", "@model", "--type", "int8", "-o", "small"}},
      {.name = "beams", .arguments = {"beams", "--text", kSentence, "-o", "beams.svg"}},
      {.name = "beams of a model",
       .arguments = {"beams", "--model", "@model", "--text", kSentence, "-o", "beams.html"}},
      {.name = "study memory",
       .arguments = {"study", "memory", "--quick", "--json", "memory.json", "--svg", "memory.svg"}},
      {.name = "heads",
       .arguments = {"heads", "--text", kSentence, "--json", "heads.json", "--html", "heads.html"},
       .slow = 2},
      {.name = "study heads",
       .arguments = {"study", "heads", "--quick", "--width", "16", "--length", "16", "--svg", "heads.svg"},
       .prints_the_same = false,
       .varying_file = "heads.svg",
       .slow = 8},
      {.name = "train",
       .arguments = {"train", "--steps", "1", "-o", "model"},
       .prints_the_same = false,
       .varying_file = "model/checkpoint.safetensors",
       .replaces_files = true,
       .slow = 8},
      {.name = "demo", .arguments = {"demo", "--model", "@model"}, .prints_the_same = false, .slow = 16},
      {.name = "study depth",
       .arguments = {"study", "depth", "--quick", "--svg", "depth.svg"},
       .prints_the_same = false,
       .varying_file = "depth.svg",
       .slow = 500},
      {.name = "speed", .arguments = {"speed"}, .prints_the_same = false, .slow = 500},
  };
  return commands;
}

}  // namespace headlight::faults
