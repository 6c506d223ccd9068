// headlight encode: the last hidden states of a published model.
#include <memory>
#include <string>

#include "headlight/models/encoder.h"
#include "headlight/models/npy.h"
#include "tools/headlight/commands.h"
#include "tools/headlight/model_arguments.h"
#include "tools/headlight/validators.h"

namespace headlight::program {
namespace {

struct Arguments {
  ModelArguments model;
  std::string out;
};

Tensor<float, 3> hidden_states(const ModelArguments& arguments, Engine& engine, const models::Encoder& model) {
  if (arguments.ids.empty()) return model.encode(engine, read_texts(arguments)).hidden;
  const TokenIds tokens = read_ids(arguments);
  return model.encode(engine, tokens.ids.view<2>(), tokens.mask_view());
}

void encode(const Arguments& arguments) {
  arguments.model.check();
  Engine engine(arguments.model.engine.options());
  const models::Encoder model = models::load(arguments.model.model);
  const Tensor<float, 3> hidden = hidden_states(arguments.model, engine, model);
  models::write_npy(arguments.out, hidden.shape(), {hidden.begin(), hidden.end()});
}

}  // namespace

void add_encode(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("encode", "Hidden states of texts by a published model");
  const auto arguments = std::make_shared<Arguments>();
  arguments->model.add_to(*command);
  command
      ->add_option("-o,--output", arguments->out,
                   "The last hidden states, float32 [B, L, E]; zeros behind the end of a text")
      ->type_name("NPY")
      ->check(output_name())
      ->required();
  command->footer(
      "Example (after tools/run):\n"
      "  build/release/headlight encode --model downloads/all-MiniLM-L6-v2 --text 'Hello, world.' -o hidden.npy");
  command->callback([arguments] { encode(*arguments); });
}

}  // namespace headlight::program
