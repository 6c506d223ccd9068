// headlight convert: a model's folder again, with its weights in another type.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "headlight/number_type.h"
#include "models/gguf/load_gguf.h"
#include "models/model_folder.h"
#include "models/sentence_modules.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/number_types.h"
#include "tools/headlight/support/output.h"
#include "tools/headlight/support/quantity_text.h"
#include "tools/headlight/support/unknown_keys.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace convert_command {
namespace {

struct Arguments {
  std::string model;
  std::string type;
  std::string out;
  bool overwrite = false;
};

// In one file, or in several.
double weight_bytes(const std::string& path) {
  if (const auto file = models::gguf_path(path)) {
    const models::GgufFile whole = models::GgufFile::whole(*file);
    double bytes = 0;
    for (const models::GgufTensor& tensor : whole.tensors()) {
      bytes += static_cast<double>(tensor.bytes.size());
    }
    return bytes;
  }
  const models::ModelFolder folder(path);
  std::vector<std::string> unknown;
  const models::ModelFolder network = models::transformer_folder(folder, models::read_modules(folder, unknown));
  if (network.has(models::kWeightsFile)) {
    return static_cast<double>(std::filesystem::file_size(network.path(models::kWeightsFile)));
  }
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(network.path(""))) {
    if (entry.path().extension() == ".safetensors") bytes += static_cast<double>(entry.file_size());
  }
  return bytes;
}

void convert(const Arguments& arguments) {
  const models::TextEncoder model = models::load(arguments.model);
  warn_of_unknown_keys(model.options().unknown_keys);
  if (!arguments.overwrite) check_no_model(arguments.out);
  const double before = weight_bytes(arguments.model);
  const NumberType type = *parse_number_type(arguments.type);
  model.save(arguments.out, type);
  print_report(std::vector<WrittenFile>{{arguments.out, "the model in " + std::string(name(type)) + ", its weights " +
                                                            bytes_text(weight_bytes(arguments.out)) + " after " +
                                                            bytes_text(before)}});
}

}  // namespace
}  // namespace convert_command

void add_convert(Command& program) {
  using namespace convert_command;
  Command command = program.add_subcommand("convert", "A published model as a folder with its weights in another type");
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option("--model", arguments->model,
                  "Folder with config.json, model.safetensors and the files of its tokenizer, or a GGUF file")
      .type_name("PATH")
      .check(file_name())
      .required();
  take_number_type(
      command.add_option("--type", arguments->type, "Of matrices and tables in the new file; vectors stay float32")
          .required(),
      kNumberTypes);
  command.add_option("-o,--output", arguments->out, "The new folder, which is made")
      .type_name("DIR")
      .check(output_name())
      .required();
  command.add_flag("--overwrite", arguments->overwrite, "Replace the model that lies in this folder");
  command.example(
      "--model downloads/all-MiniLM-L6-v2 --type int8 -o small",
      "int8 has a scale for each row, and a quarter of the bytes, int4 one for each 32 numbers, and a seventh; "
      "only headlight reads these two. What narrower weights cost: `headlight study precision`.");
  command.callback([arguments] { convert(*arguments); });
}

}  // namespace headlight::program
