// What encode, embed and heads share: the model, and the texts or token ids that go in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/models/npy.h"
#include "headlight/models/text_encoder.h"
#include "tools/headlight/support/command.h"
#include "tools/headlight/support/engine_arguments.h"
#include "tools/headlight/support/text_source.h"

namespace headlight::program {

// What may go into a model. `texts`: without --model it is the demonstration model.
enum class Inputs : std::uint8_t { texts, texts_or_ids, texts_of_model };

// What help says of the example's model.
inline constexpr const char* kPublishedModels =
    "Any published model of a family that docs/model-folders.md lists will do, and what `headlight train` makes; "
    "that of the example is fetched by tools/run of headlight's source.";

struct ModelArguments {
  EngineArguments engine;
  std::string model;
  std::vector<std::string> texts;
  std::string input;
  std::string ids;
  std::string attention_mask;
  std::string precision = "float32";
  std::string pooling;  // of embed alone: names with commas between, in place of what the folder says
  std::string memory;   // what a run over texts may hold; empty: as much as is fast
  Inputs inputs = Inputs::texts_or_ids;

  void add_to(Command& command, Inputs accepted = Inputs::texts_or_ids);
  // --memory, with what goes on beside it.
  void add_memory_to(Command& command, const std::string& more = "");
  // Throws UsageError unless there is exactly one of --text, --input and (where accepted) --ids.
  void check() const;
  // What --memory says, where the model reads texts of at most so many tokens, and the results of one take `result`
  // bytes until they are written. Throws std::runtime_error where it says too little.
  [[nodiscard]] TextMemory memory_of(Engine& running, const models::TextEncoder& loaded, std::int64_t tokens,
                                     std::int64_t result) const;
  // What --model, --precision and --pooling say. Prints a warning for keys of its files that are not known here.
  [[nodiscard]] models::TextEncoder load() const;
};

// What a picture calls the model of a folder: the last part of its path.
[[nodiscard]] std::string name_of_model(std::string folder);

// What --pooling should have been; "" where it is.
[[nodiscard]] std::string expected_poolings(const std::string& names);

// --precision of a command that computes with a model: its value is one that parse_number_type() reads.
void add_precision(Command& command, std::string& precision);

// Token ids [B, L]; the mask has no axes where none was given.
struct TokenIds {
  models::Array<std::int64_t> ids;
  models::Array<std::int64_t> mask;

  [[nodiscard]] View<const std::int64_t, 2> mask_view() const;
};

// The texts of --text, or the lines of --input, one after another. Throws models::FileError for a file
// that cannot be read, holds no line, or a line that is not UTF-8, and std::invalid_argument for such a --text.
[[nodiscard]] TextSource open_texts(const ModelArguments& arguments, const TextMemory& memory = {});
// For commands that write a model: throws models::FileError where the folder holds one.
void check_no_model(const std::string& folder);
[[nodiscard]] TokenIds read_ids(const ModelArguments& arguments);

}  // namespace headlight::program
