// headlight tokenize: the tokens of texts by the tokenizer of any published model.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/list_text.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/line_stream.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/model_tokens.h"
#include "tools/headlight/support/number_parse.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace tokenize_command {
namespace {

struct Arguments {
  ModelArguments source;  // the model, and the texts
  std::string ids;
  bool has_ids = false;
};

// {"ids": […], "tokens": […]}
std::string as_json(const ModelTokens& model, const std::string& text) {
  const std::vector<std::int64_t> ids = model.encode(text);
  std::string numbers, tokens;
  for (const std::int64_t id : ids) {
    runtime::append_item(numbers, std::to_string(id));
    runtime::append_item(tokens, json_text(model.token(id).value_or("")));
  }
  return "{\"ids\": [" + numbers + "], \"tokens\": [" + tokens + "]}\n";
}

// Each id as it was typed: how many there are, the tokenizer knows.
std::vector<std::string> parse_ids(const std::string& list) {
  const std::string expected = "ids with commas between, such as 101,7592,102";
  std::vector<std::string> ids = parts_of(list, ",");
  for (const std::string& id : ids) {
    if (id.empty()) refuse_value("--decode", list, list.empty() ? expected : expected + ", none of them empty");
    if (!is_whole_number(id)) throw UsageError("--decode has " + value_text(id) + ", expected " + expected);
  }
  return ids;
}

std::string decoded(const ModelTokens& model, const std::vector<std::string>& texts) {
  std::vector<std::int64_t> ids;
  for (const std::string& text : texts) {
    const auto id = parse_number<std::int64_t>(text);
    if (!id || !model.token(*id)) {
      throw UsageError("--decode has " + value_text(text) + ", expected ids of tokens, 0 to " +
                       std::to_string(model.size - 1));
    }
    ids.push_back(*id);
  }
  return model.decode(ids);
}

void tokenize(const Arguments& arguments) {
  const ModelArguments& source = arguments.source;
  if ((source.texts.empty() ? 0 : 1) + (source.input.empty() ? 0 : 1) + (arguments.has_ids ? 1 : 0) != 1) {
    throw UsageError("exactly one of --text, --input and --decode is needed");
  }
  const std::vector<std::string> ids = arguments.has_ids ? parse_ids(arguments.ids) : std::vector<std::string>();
  const ModelTokens model = tokens_of(source.model);
  if (arguments.has_ids) return print(decoded(model, ids) + "\n");
  if (is_stream(source.input)) {
    LineStream lines(source.input);
    for (std::vector<std::string> block; block = lines.next(), !block.empty();) {
      std::string answer;
      for (const std::string& text : block) answer += as_json(model, text);
      print(answer);
    }
    return;
  }
  TextSource texts = open_texts(source);
  for (std::string text; texts.next(text);) print(as_json(model, text));
}

}  // namespace
}  // namespace tokenize_command

void add_tokenize(Command& program) {
  using namespace tokenize_command;
  Command command = program.add_subcommand("tokenize", "Tokens of texts by a published tokenizer, and texts of tokens");
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("--model", arguments->source.model, "Folder or GGUF file of a model, or a tokenizer.json")
      .type_name("DIR")
      .check(file_name())
      .required();
  command.add_option("--text", arguments->source.texts, "A text; may be given again and again")
      .type_name("TEXT")
      .one_at_a_time();
  command.add_option("--input", arguments->source.input, "A file with one text a line; - is standard input")
      .type_name("FILE")
      .check(file_name())
      .reads();
  const Option decode =
      command.add_option("--decode", arguments->ids, "Print the text of token ids, with commas between")
          .type_name("IDS");
  command.example(
      "--model downloads/all-MiniLM-L6-v2 --text 'Hello, world.'",
      "The tokens are those that `encode` gives the model, cut at the longest text that it takes; `embed` may put a "
      "prompt in front, and cut earlier. No weights are read. Of a model that headlight does not read, and of a "
      "tokenizer.json by itself, they are those of the tokenizer alone: any of WordPiece, BPE or Unigram will do.");
  command.callback([arguments, decode] {
    arguments->has_ids = decode.given();
    tokenize(*arguments);
  });
}

}  // namespace headlight::program
