#include "tools/headlight/model_arguments.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <istream>
#include <nlohmann/json.hpp>

#include "headlight/models/errors.h"
#include "tools/headlight/arrays.h"
#include "tools/headlight/process.h"
#include "tools/headlight/validators.h"

namespace headlight::program {
namespace {

// The lines of a stream, without their ends, be they \n or \r\n.
std::vector<std::string> read_lines(std::istream& stream, const std::string& name) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  if (stream.bad()) throw models::FileError(name, std::string("cannot be read: ") + std::strerror(errno));
  if (lines.empty()) throw models::FileError(name, "is empty, expected one text a line");
  return lines;
}

std::vector<std::string> read_lines(const std::string& path) {
  if (path == "-") return read_lines(std::cin, "standard input");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  // A folder opens and fails only when it is read.
  if (file && file.peek() == std::ifstream::traits_type::eof() && errno != 0) file.setstate(std::ios::failbit);
  if (!file && errno != 0) throw models::FileError(path, std::string("cannot be read: ") + std::strerror(errno));
  return read_lines(file, path);
}

// The JSON library's strict writer is the judge.
bool is_utf8(const std::string& text) {
  try {
    [[maybe_unused]] const std::string written = nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace

void ModelArguments::add_to(CLI::App& command, Inputs accepted) {
  inputs = accepted;
  const bool optional = accepted == Inputs::texts;
  command
      .add_option("--model", model,
                  std::string("Folder with config.json, model.safetensors, vocab.txt") +
                      (optional ? "; default: the demonstration model" : ""))
      ->type_name("DIR")
      ->check(file_name())
      ->required(!optional);
  command.add_option("--text", texts, "A text; may be given again and again")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command.add_option("--input", input, "A file with one text a line; - is standard input")
      ->type_name("FILE")
      ->check(file_name());
  if (accepted == Inputs::texts_or_ids) {
    command.add_option("--ids", ids, "int64 [B, L]: token ids instead of texts")->type_name("NPY")->check(file_name());
    command.add_option("--attention-mask", attention_mask, "[B, L]: 0 for tokens of --ids to leave out")
        ->type_name("NPY")
        ->check(file_name());
  }
  engine.add_to(command);
}

void ModelArguments::check() const {
  const int sources = (texts.empty() ? 0 : 1) + (input.empty() ? 0 : 1) + (ids.empty() ? 0 : 1);
  if (sources != 1) {
    throw UsageError(inputs == Inputs::texts ? "exactly one of --text and --input is needed"
                                             : "exactly one of --text, --input and --ids is needed");
  }
  if (!attention_mask.empty() && ids.empty()) throw UsageError("--attention-mask goes with --ids");
}

View<const std::int64_t, 2> TokenIds::mask_view() const {
  return mask.shape.empty() ? View<const std::int64_t, 2>() : mask.view<2>();
}

std::vector<std::string> read_texts(const ModelArguments& arguments) {
  const bool from_file = !arguments.input.empty();
  std::vector<std::string> texts = from_file ? read_lines(arguments.input) : arguments.texts;
  const auto bad = std::find_if_not(texts.begin(), texts.end(), is_utf8);
  if (bad != texts.end()) {
    const std::string number = std::to_string(bad - texts.begin() + 1);
    const std::string shown = " is not UTF-8: " + models::printable(*bad);
    if (from_file) {
      throw models::FileError(arguments.input == "-" ? "standard input" : arguments.input, "line " + number + shown);
    }
    throw std::invalid_argument("--text number " + number + shown);
  }
  return texts;
}

TokenIds read_ids(const ModelArguments& arguments) {
  TokenIds tokens;
  tokens.ids = read_array<std::int64_t>(arguments.ids, 2, "[B, L]");
  if (!arguments.attention_mask.empty()) {
    tokens.mask = read_array<std::int64_t>(arguments.attention_mask, 2, "[B, L]");
  }
  return tokens;
}

}  // namespace headlight::program
