// headlight encode: the last hidden states of a published model.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headlight/models/npy.h"
#include "headlight/models/text_encoder.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/arrays.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/output.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/unknown_words.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace encode_command {
namespace {

struct Arguments {
  ModelArguments model;
  std::string out;
};

// The texts are read twice, for L is that of the longest: memory beyond a block of them grows with nothing.
void encode_texts(const Arguments& arguments, Engine& engine, const models::TextEncoder& model) {
  const std::int64_t longest = model.options().max_length;
  // Of a text its hidden states, and the zeros behind them.
  const std::int64_t result = 2 * longest * model.options().encoder.width * static_cast<std::int64_t>(sizeof(float));
  TextSource texts = open_texts(arguments.model, arguments.model.memory_of(engine, model, longest, result));
  UnknownWords unknown(model);
  unknown.add(texts);
  const std::int64_t width = model.options().encoder.width;
  const auto count = static_cast<std::int64_t>(texts.size());
  const std::vector<std::int64_t> shape{count, unknown.longest(), width};
  models::NpyWriter file(arguments.out, shape);
  const std::vector<float> zeros(static_cast<std::size_t>(unknown.longest() * width));
  Progress progress(texts.size());
  texts.rewind();
  while (true) {
    const std::vector<std::string> block = texts.next_block().texts;
    if (block.empty()) break;
    const Tensor<float, 3> hidden = model.encode(engine, block).hidden;
    const auto size = static_cast<std::size_t>(hidden.shape()[1] * width);
    for (std::int64_t row = 0; row < hidden.shape()[0]; ++row) {
      file.write({&hidden(row, 0, 0), size});
      file.write(std::span(zeros).subspan(size));
    }
    progress.advance(block.size());
  }
  progress.clear();
  file.commit();
  unknown.warn(/*is_demonstration=*/false);
  unknown.warn_of_texts();
  print_report(std::vector<WrittenFile>{{arguments.out, describe_float32(shape)}});
}

void encode(const Arguments& arguments) {
  arguments.model.check();
  Engine engine(arguments.model.engine.options());
  const models::TextEncoder model = arguments.model.load();
  if (arguments.model.ids.empty()) return encode_texts(arguments, engine, model);
  const TokenIds tokens = read_ids(arguments.model);
  const Tensor<float, 3> hidden = model.encode(engine, tokens.ids.view<2>(), tokens.mask_view());
  std::vector<WrittenFile> written;
  write_asked(arguments.out, hidden, written);
  print_report(written);
}

}  // namespace
}  // namespace encode_command

void add_encode(Command& program) {
  using namespace encode_command;
  Command command = program.add_subcommand("encode", "Hidden states of texts by a published model");
  const auto arguments = std::make_shared<Arguments>();
  arguments->model.add_to(command);
  arguments->model.add_memory_to(command);
  command
      .add_option("-o,--output", arguments->out,
                  "The last hidden states, float32 [B, L, E]; zeros behind the end of a text")
      .type_name("NPY")
      .check(output_name())
      .writes()
      .required();
  command.example("--model downloads/all-MiniLM-L6-v2 --text 'Hello, world.' -o hidden.npy", kPublishedModels);
  command.callback([arguments] { encode(*arguments); });
}

}  // namespace headlight::program
