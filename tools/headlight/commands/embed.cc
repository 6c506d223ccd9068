// headlight embed: one vector a text, so that close meanings lie close together.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/models/npy.h"
#include "headlight/models/text_encoder.h"
#include "headlight/out_of_memory.h"
#include "runtime/list_text.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/arrays.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/late_text.h"
#include "tools/headlight/support/line_stream.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/output.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/text_memory.h"
#include "tools/headlight/support/unknown_words.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace embed_command {
namespace {

struct Arguments {
  ModelArguments model;
  std::string out;
  std::string prompt;
  std::int64_t truncate_dim = -1;  // not given
  bool json = false;
};

// What stands in front of each text: the prompt that --prompt names, or the one that the model has by default.
std::string prompt_of(const Arguments& arguments, const models::TextEncoder& model) {
  if (arguments.prompt.empty()) return model.prompt();
  const auto& prompts = model.options().prompts;
  if (const auto found = prompts.find(arguments.prompt); found != prompts.end()) return found->second;
  std::string names;
  for (const auto& [known, text] : prompts) runtime::append_item(names, models::printable(known));
  throw UsageError("--prompt is " + models::in_quotes(arguments.prompt) +
                   ", expected the name of one of the model's: " + (names.empty() ? "it has none" : names));
}

models::EmbedOptions options_of(const Arguments& arguments, const models::TextEncoder& model) {
  if (const std::int64_t width = model.embed_width({.truncate_dim = 0}); arguments.truncate_dim > width) {
    throw UsageError("--truncate-dim is " + std::to_string(arguments.truncate_dim) +
                     ", expected at most the width of the model's vectors, " + std::to_string(width));
  }
  models::EmbedOptions options;
  if (arguments.truncate_dim >= 0) options.truncate_dim = arguments.truncate_dim;
  if (arguments.model.ids.empty()) options.prompt = prompt_of(arguments, model);
  return options;
}

Tensor<float, 2> vectors_of(Engine& engine, const models::TextEncoder& model, const std::vector<std::string>& texts,
                            const models::EmbedOptions& options) {
  Tensor<float, 2> vectors({static_cast<std::int64_t>(texts.size()), model.embed_width(options)});
  model.embed(engine, texts, vectors, options);
  return vectors;
}

// Calls take(part) with {"text": …, "embedding": […]}, part by part; without a text where ids went in.
template <class Take>
void write_json(const std::string* text, std::span<const float> embedding, Take take) {
  take("{");
  if (text != nullptr) {
    // A long text is never there a second time with all that JSON escapes.
    constexpr std::size_t kPart = std::size_t{1} << 16;
    take("\"text\": \"");
    for (std::size_t at = 0, end = 0; at < text->size(); at = end) {
      end = std::min(at + kPart, text->size());
      while (end < text->size() && (static_cast<unsigned char>((*text)[end]) & 0xC0) == 0x80) --end;
      const std::string quoted = json_text(std::string_view(*text).substr(at, end - at));
      take(std::string_view(quoted).substr(1, quoted.size() - 2));
    }
    take("\", ");
  }
  std::string numbers = "\"embedding\": [";
  for (const float& value : embedding) {
    if (&value != embedding.data()) numbers += ", ";
    numbers += json_number(value);
  }
  take(numbers + "]}");
}

// Where vectors go as they come: lines, or the elements of one document, or rows of the file.
class Results {
 public:
  Results(const Arguments& arguments, std::int64_t count, std::int64_t width)
      : arguments_(arguments), shape_{count, width} {
    if (!arguments.out.empty()) file_.emplace(arguments.out, shape_);
  }

  void add(const Tensor<float, 2>& vectors, std::span<const std::string> texts) {
    if (file_) file_->write({vectors.begin(), vectors.end()});
    if (file_ && !arguments_.json) return;
    for (std::int64_t row = 0; row < vectors.shape()[0]; ++row) {
      const std::span<const float> vector(&vectors(row, 0), static_cast<std::size_t>(shape_[1]));
      if (arguments_.json) document_.add(document_.is_empty() ? "[" : ",\n ");
      write_json(texts.empty() ? nullptr : &texts[static_cast<std::size_t>(row)], vector,
                 [this](std::string_view part) { put(part); });
      if (!arguments_.json) put("\n");
    }
    flush();
  }

  void finish() {
    if (file_) file_->commit();
    if (arguments_.json) {
      if (document_.is_empty()) print("[");
      document_.print_all();
      print("]\n");
    } else if (file_) {
      print_report(std::vector<WrittenFile>{{arguments_.out, describe_float32(shape_)}});
    }
  }

 private:
  // Parts of lines are printed together.
  void put(std::string_view part) {
    if (arguments_.json) return document_.add(part);
    lines_ += part;
    constexpr std::size_t kMany = std::size_t{1} << 18;
    if (lines_.size() > kMany) flush();
  }
  void flush() {
    if (!lines_.empty()) print(lines_);
    lines_.clear();
  }

  const Arguments& arguments_;
  std::vector<std::int64_t> shape_;
  std::optional<models::NpyWriter> file_;
  std::string lines_;
  LateText document_;  // so that an error leaves standard output empty
};

void count_unknown(UnknownWords& unknown, const models::TextEncoder& model, const models::EmbedOptions& options,
                   const std::vector<std::string>& block) {
  const std::int64_t most = model.options().embed_max_length;
  for (const std::string& text : block) {
    if (options.prompt->empty()) {
      unknown.add(text, most);
    } else {
      unknown.add(*options.prompt + text, most);
    }
  }
}

// How far a file is read that may be read once; 0: of a pipe nobody knows.
std::size_t size_of_file(const std::string& path) {
  std::error_code none;
  const std::uintmax_t size = is_stream(path) || path == "-" ? 0 : std::filesystem::file_size(path, none);
  return none ? 0 : static_cast<std::size_t>(size);
}

// Numbers of a text do not depend on its neighbours: block by block, the first lines come early. Answers whoever writes
// into a pipe line by line: whenever the input pauses, all that came has been answered.
void embed_stream(const Arguments& arguments, Engine& engine, const models::TextEncoder& model,
                  const models::EmbedOptions& options, const TextMemory& memory) {
  LineStream lines(arguments.model.input, memory);
  Results results(arguments, /*count=*/0, model.embed_width(options));
  UnknownWords unknown(model);
  Progress progress(size_of_file(arguments.model.input));
  std::size_t read = 0;
  while (true) {
    const std::vector<std::string> block = lines.next();
    if (block.empty()) break;
    count_unknown(unknown, model, options, block);
    progress.clear();
    results.add(vectors_of(engine, model, block, options), block);
    progress.advance(lines.bytes() - read);
    read = lines.bytes();
  }
  progress.clear();
  results.finish();
  unknown.warn(/*is_demonstration=*/false);
  unknown.warn_of_texts();
}

void embed(const Arguments& arguments) {
  arguments.model.check();
  if (arguments.json && !arguments.out.empty() && is_standard_output(arguments.out)) {
    throw UsageError("--json prints on standard output, where --output goes too: expected one of them");
  }
  if (!arguments.prompt.empty() && !arguments.model.ids.empty()) {
    throw UsageError("--prompt goes with texts, not with --ids");
  }
  Engine engine(arguments.model.engine.options());
  const models::TextEncoder model = arguments.model.load();
  const models::EmbedOptions options = options_of(arguments, model);
  const std::int64_t width = model.embed_width(options);
  if (!arguments.model.ids.empty()) {
    const TokenIds tokens = read_ids(arguments.model);
    // Rows without columns may be more than vectors can be.
    if (tokens.ids.shape[0] > INT64_MAX / 8 / width) throw OutOfMemory("the vectors", SIZE_MAX);
    Tensor<float, 2> vectors({tokens.ids.shape[0], width});
    model.embed(engine, tokens.ids.view<2>(), tokens.mask_view(), vectors, options);
    Results results(arguments, vectors.shape()[0], width);
    results.add(vectors, {});
    return results.finish();
  }
  // A number of a vector, as text, with what is around it.
  constexpr std::int64_t kDigits = 32;
  const TextMemory memory = arguments.model.memory_of(engine, model, model.options().embed_max_length, kDigits * width);
  // A file of vectors begins with their count, and a document is printed whole: neither can be written on the way.
  const bool once =
      is_stream(arguments.model.input) || (!arguments.model.memory.empty() && !arguments.model.input.empty());
  if (arguments.out.empty() && !arguments.json && once) return embed_stream(arguments, engine, model, options, memory);
  TextSource texts = open_texts(arguments.model, memory);
  Results results(arguments, static_cast<std::int64_t>(texts.size()), width);
  Progress progress(texts.size());
  UnknownWords unknown(model);
  while (true) {
    const std::vector<std::string> block = texts.next_block().texts;
    if (block.empty()) break;
    count_unknown(unknown, model, options, block);
    results.add(vectors_of(engine, model, block, options), block);
    progress.advance(block.size());
  }
  progress.clear();
  results.finish();
  unknown.warn(/*is_demonstration=*/false);
  unknown.warn_of_texts();
}

}  // namespace
}  // namespace embed_command

void add_embed(Command& program) {
  using namespace embed_command;
  Command command = program.add_subcommand("embed", "Sentence vectors of texts by a published model");
  const auto arguments = std::make_shared<Arguments>();
  arguments->model.add_to(command);
  command.add_option("-o,--output", arguments->out, "The vectors, float32 [B, E], instead of a JSON line a text")
      .type_name("NPY")
      .check(output_name())
      .writes();
  command
      .add_option("--prompt", arguments->prompt,
                  "What the model puts in front of each text, by its name in config_sentence_transformers.json "
                  "(default: what that names as default_prompt_name)")
      .type_name("NAME");
  command
      .add_option("--pooling", arguments->model.pooling,
                  "cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, or several with commas between, "
                  "in place of what the model's folder says")
      .type_name("MODES")
      .check(expected_poolings);
  command
      .add_option("--truncate-dim", arguments->truncate_dim,
                  "Keep the first N numbers of each vector, then normalise it; 0: all (default: what "
                  "config_sentence_transformers.json says)")
      .type_name("N")
      .check(at_least(0));
  arguments->model.add_memory_to(command, ", and vectors are printed while texts are read");
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.example("--model downloads/all-MiniLM-L6-v2 --text 'Hello, world.' --text 'Hi, everyone!'", kPublishedModels);
  command.callback([arguments] { embed(*arguments); });
}

}  // namespace headlight::program
