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
#include "models/load_tokenizer.h"
#include "models/model_folder.h"
#include "models/tokenizers/text_tokenizer.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/unknown_keys.h"

namespace headlight::program {
namespace {

std::optional<std::string> copy_of(std::optional<std::string_view> token) {
  return token ? std::optional<std::string>(*token) : std::nullopt;
}

ModelTokens tokens_by(std::shared_ptr<const models::TextTokenizer> tokenizer, std::int64_t max_length) {
  return {.encode =
              [tokenizer, max_length, scratch = std::make_shared<text::Scratch>()](const std::string& text) {
                std::vector<std::int64_t> ids;
                tokenizer->append(text, max_length, *scratch, ids);
                return ids;
              },
          .decode = [tokenizer](const std::vector<std::int64_t>& ids) { return tokenizer->decode(ids); },
          .token = [tokenizer](std::int64_t id) { return copy_of(tokenizer->token(id)); },
          .size = tokenizer->size()};
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
  return tokens_by(models::read_gguf_tokenizer(models::GgufMetadata(file), kAnyNumber), kAnyNumber);
}

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Whether a tokenizer is there, and no model.
bool is_tokenizer_alone(const std::string& path) {
  const auto has = [&](const char* file) { return is_there(models::path_in(path, file)); };
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return is_there(path);
  return has(models::kTokenizerFile) && !has(models::kConfigFile) && !has(models::kModulesFile);
}

}  // namespace

ModelTokens tokens_of(const std::string& path) {
  const std::optional<std::string> gguf = models::gguf_path(path);
  if (!gguf && is_tokenizer_alone(path)) return tokens_of_json(path);
  try {
    models::LoadedTokenizer loaded = models::load_tokenizer(path);
    warn_of_unknown_keys(loaded.unknown_keys);
    return tokens_by(std::move(loaded.tokenizer), loaded.max_length);
  } catch (const models::FileError& error) {
    if (!gguf && !is_there(models::path_in(path, models::kTokenizerFile))) throw;
    ModelTokens tokens = gguf ? tokens_of_gguf(*gguf) : tokens_of_json(path);
    print_warning("tokens are those of the tokenizer alone, for the model is not read: " + std::string(error.what()));
    return tokens;
  }
}

}  // namespace headlight::program
