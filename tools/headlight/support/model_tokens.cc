#include "tools/headlight/support/model_tokens.h"

#include <filesystem>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "headlight/models/errors.h"
#include "headlight/models/gguf.h"
#include "headlight/text/tokenizer.h"
#include "models/gguf/load_gguf.h"
#include "models/gguf/metadata.h"
#include "models/gguf/tokenizer.h"
#include "models/model_folder.h"
#include "models/tokenizers/text_tokenizer.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

std::optional<std::string> copy_of(std::optional<std::string_view> token) {
  return token ? std::optional<std::string>(*token) : std::nullopt;
}

ModelTokens tokens_of_model(models::TextEncoder loaded) {
  const auto model = std::make_shared<const models::TextEncoder>(std::move(loaded));
  return {.encode = [model](const std::string& text) { return model->tokenize(text); },
          .decode = [model](const std::vector<std::int64_t>& ids) { return model->decode(ids); },
          .token = [model](std::int64_t id) { return copy_of(model->token(id)); },
          .size = model->token_count()};
}

ModelTokens tokens_of_json(const std::string& path) {
  const text::Tokenizer tokenizer = text::Tokenizer::read(path);
  return {.encode = [tokenizer](const std::string& text) { return tokenizer.encode(text); },
          .decode = [tokenizer](const std::vector<std::int64_t>& ids) { return tokenizer.decode(ids); },
          .token = [tokenizer](std::int64_t id) { return tokenizer.token(id); },
          .size = tokenizer.size()};
}

ModelTokens tokens_of_gguf(const std::string& path) {
  const models::GgufFile file = models::GgufFile::whole(path);
  constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();
  const std::shared_ptr<const models::TextTokenizer> tokenizer =
      models::read_gguf_tokenizer(models::GgufMetadata(file), kAnyNumber);
  return {.encode =
              [tokenizer, scratch = std::make_shared<text::Scratch>()](const std::string& text) {
                std::vector<std::int64_t> ids;
                tokenizer->append(text, kAnyNumber, *scratch, ids);
                return ids;
              },
          .decode = [tokenizer](const std::vector<std::int64_t>& ids) { return tokenizer->decode(ids); },
          .token = [tokenizer](std::int64_t id) { return copy_of(tokenizer->token(id)); },
          .size = tokenizer->size()};
}

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Whether a tokenizer is there, and no model.
bool is_tokenizer_alone(const std::string& path) {
  const auto has = [&](const char* file) { return is_there(models::path_in(path, file)); };
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return true;
  return has(models::kTokenizerFile) && !has(models::kConfigFile) && !has(models::kModulesFile);
}

}  // namespace

ModelTokens tokens_of(const ModelArguments& arguments) {
  const std::optional<std::string> gguf = models::gguf_path(arguments.model);
  if (!gguf && is_tokenizer_alone(arguments.model)) return tokens_of_json(arguments.model);
  try {
    return tokens_of_model(arguments.load());
  } catch (const models::FileError& error) {
    if (!gguf && !is_there(models::path_in(arguments.model, models::kTokenizerFile))) throw;
    ModelTokens tokens = gguf ? tokens_of_gguf(*gguf) : tokens_of_json(arguments.model);
    print_warning("tokens are those of the tokenizer alone, for the model is not read: " + std::string(error.what()));
    return tokens;
  }
}

}  // namespace headlight::program
