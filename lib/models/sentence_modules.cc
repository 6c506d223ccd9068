#include "models/sentence_modules.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "headlight/models/errors.h"
#include "models/folder_keys.h"
#include "models/module_files.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr std::string_view kNamespace = "sentence_transformers.";
constexpr const char* kPooling = "1_Pooling";  // where folders without modules.json have it
constexpr const char* kDense = "2_Dense";

// A folder below the model's: nothing absolute, nothing that leads out of it.
std::string checked_path(const JsonValue& entry) {
  const auto named = entry.string("path");
  if (!named) entry.fail("path", "is missing");
  std::string path = *named;
  while (path.ends_with('/')) path.pop_back();
  if (path == ".") path.clear();
  bool inside = !path.starts_with('/') && path.find('\\') == std::string::npos;
  for (std::string_view rest = path; inside && !rest.empty();) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    inside = rest.substr(0, end) != "..";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!inside) entry.fail("path", "is " + in_quotes(path) + ", expected a folder within the model's");
  return path;
}

// What follows a Transformer and a Pooling.
void add_layer(const ModelFolder& folder, const Module& module, ModelOptions& into) {
  const ModelFolder files = folder.within(module.path);
  const std::int64_t before = vector_width(into);
  if (module.type == "Dense") {
    into.vector_layers.push_back(read_dense(files, before));
  } else if (module.type == "LayerNorm") {
    into.vector_layers.push_back(read_layer_norm(files, before));
  } else if (module.type == "Normalize") {
    if (!module.path.empty()) check_module(files, "2_Normalize/config.json");
    into.vector_layers.push_back({});
  } else if (module.type == "Dropout") {  // of training
    if (!module.path.empty()) check_module(files, "2_Dropout/config.json");
  } else {
    throw NotBuilt{module.place + " is " + in_quotes(module.type) +
                   ", expected Transformer, Pooling, and then Dense, LayerNorm, Normalize or Dropout"};
  }
}

void read_pooling_and_layers(const ModelFolder& folder, const std::vector<Module>& modules,
                             const std::optional<std::vector<PoolingMode>>& pooling, ModelOptions& into) {
  if (modules.empty()) {
    if (folder.within(kDense).has(kConfigFile)) {
      throw NotBuilt{printable(folder.within(kDense).path(kConfigFile)) +
                     ": a layer behind the pooling, expected a modules.json that says so"};
    }
    return read_pooling(folder.within(kPooling), pooling, into);
  }
  if (modules.front().type != "Transformer") {
    throw NotBuilt{modules.front().place + " is " + in_quotes(modules.front().type) + ", expected Transformer first"};
  }
  if (modules.size() < 2 || modules[1].type != "Pooling") {
    throw NotBuilt{modules.size() < 2 ? modules[0].place + " is the last one, expected a Pooling behind it"
                                      : modules[1].place + " is " + in_quotes(modules[1].type) + ", expected Pooling"};
  }
  read_pooling(folder.within(modules[1].path), pooling, into);
  for (std::size_t n = 2; n < modules.size(); ++n) add_layer(folder, modules[n], into);
}

// The prompts, and how much of a vector is kept.
void read_sentence_options(const ModelFolder& folder, ModelOptions& into) {
  into.prompts = {{"query", ""}, {"document", ""}};
  if (!folder.has(kPromptsFile)) return;
  const JsonValue config = folder.json(kPromptsFile);
  if (const auto prompts = config.object("prompts")) {
    for (const auto& [key, value] : prompts->members()) {
      if (value.is_null()) continue;
      if (!value.as_string()) value.fail("is " + value.described() + ", expected a text");
      into.prompts.insert_or_assign(std::string(key), std::string(*value.as_string()));
    }
  }
  const auto default_name = config.string("default_prompt_name");
  const std::string name = default_name.value_or("");
  understood([&] {
    check_keys(config, kPromptsFile, "", into.unknown_keys);
    // sentence-transformers then reads none of the folder's modules.
    if (config.contains("model_type") && !config.find("model_type")) {
      config.fail("model_type", "is null, expected SentenceTransformer");
    }
    if (default_name && (name.empty() || !into.prompts.contains(name))) {
      config.fail("default_prompt_name", "is " + in_quotes(name) + ", expected the name of one of prompts");
    }
  });
  into.default_prompt = name;
  const std::int64_t width = vector_width(into);
  const std::int64_t kept = config.integer("truncate_dim").value_or(width);
  if (kept < 1) config.fail("truncate_dim", "is " + std::to_string(kept) + ", expected 1 or more");
  if (kept < width) into.truncate_dim = kept;
}

// What may stand in model_args and its kind: it changes how fast or in which type something is computed, no more.
void check_arguments(const JsonValue& config) {
  constexpr std::array kArguments = {"model_args",       "model_kwargs", "tokenizer_args",
                                     "processor_kwargs", "config_args",  "config_kwargs"};
  constexpr std::array<std::string_view, 6> kHarmless = {"add_pooling_layer", "attn_implementation", "dtype",
                                                         "torch_dtype",       "trust_remote_code",   "use_safetensors"};
  for (const char* const key : kArguments) {
    const auto arguments = config.object(key);
    if (!arguments) continue;
    for (const auto& [name, value] : arguments->members()) {
      if (std::find(kHarmless.begin(), kHarmless.end(), name) == kHarmless.end() && !value.is_null()) {
        value.fail("is " + value.described() + ", expected nothing");
      }
    }
  }
}

// What the Transformer is for: vectors or scores.
struct Task {
  std::string_view name, output, method_output;
  const char* what;
};
constexpr Task kVectors{"feature-extraction", "token_embeddings", "last_hidden_state",
                        "is not that of hidden states of texts"};
constexpr Task kScores{"sequence-classification", "scores", "logits", "is not that of scores of texts"};

void check_task(const JsonValue& config, const Task& task) {
  for (const auto& [key, expected] :
       {std::pair("transformer_task", task.name), std::pair("module_output_name", task.output)}) {
    const auto value = config.string(key);
    if (value && *value != expected)
      config.fail(key, "is " + in_quotes(*value) + ", expected " + std::string(expected));
  }
  const auto modalities = config.object("modality_config");
  if (!modalities) return;
  const auto text = modalities->object("text");
  if (!text || text->string("method") != "forward" || text->string("method_output_name") != task.method_output) {
    config.fail("modality_config", task.what);
  }
  if (const auto message = modalities->find("message"))
    message->fail("is a chat's, whose template texts would go through, expected nothing");
}

// A text whole, however long it is.
std::string name_of(const JsonValue& value) {
  const auto text = value.as_string();
  return text ? std::string(*text) : value.described();
}

}  // namespace

std::vector<Module> read_modules(const ModelFolder& folder, std::vector<std::string>& unknown) {
  std::vector<Module> modules;
  if (!folder.has(kModulesFile)) return modules;
  const JsonValue document = folder.json_array(kModulesFile);
  std::set<std::string> names;
  for (const JsonValue& entry : document.elements()) {
    if (modules.size() == kMostModules) document.fail("has more than " + std::to_string(kMostModules) + " modules");
    if (!entry.is_object()) entry.fail("is " + entry.described() + ", expected an object");
    check_keys(entry, kModulesFile, "[].", unknown);
    // sentence-transformers keeps the last one of a name alone.
    if (const auto name = entry.find("name"); name && !names.insert(name_of(*name)).second) {
      name->fail("is " + name->described() + ", the name of another module");
    }
    Module& module = modules.emplace_back();
    const auto type = entry.string("type");
    if (!type) entry.fail("type", "is missing");
    module.type = type->starts_with(kNamespace) ? type->substr(type->rfind('.') + 1) : *type;
    module.path = checked_path(entry);
    module.place = printable(entry.path()) + ": " + entry.place() + ".type";
  }
  if (modules.empty()) document.fail("is empty, expected modules");
  return modules;
}

ModelFolder transformer_folder(const ModelFolder& folder, const std::vector<Module>& modules) {
  const bool named = !modules.empty() && modules.front().type == "Transformer";
  return folder.within(named ? modules.front().path : "");
}

void read_vectors(const ModelFolder& folder, const std::vector<Module>& modules,
                  const std::optional<std::vector<PoolingMode>>& pooling, ModelOptions& into) {
  try {
    read_pooling_and_layers(folder, modules, pooling, into);
    read_sentence_options(folder, into);
  } catch (const NotBuilt& not_built) {
    into.unread_pooling = not_built.message;
  }
}

SentenceConfig read_sentence_config(const ModelFolder& transformer) {
  SentenceConfig read;
  // Other names that sentence-transformers looks for, one after another.
  for (const char* const file : {kSentenceConfigFile, "sentence_roberta_config.json", "sentence_distilbert_config.json",
                                 "sentence_camembert_config.json", "sentence_albert_config.json",
                                 "sentence_xlm-roberta_config.json", "sentence_xlnet_config.json"}) {
    if (!transformer.has(file)) continue;
    const JsonValue config = transformer.json(file);
    if (config.members().empty()) continue;
    read.max_seq_length = config.integer("max_seq_length");
    if (read.max_seq_length.value_or(2) < 2) {
      config.fail("max_seq_length", "is " + std::to_string(*read.max_seq_length) + ", expected 2 or more");
    }
    read.lower_case = config.boolean("do_lower_case").value_or(false);
    const auto refusal = [&](const Task& task) -> std::string {
      try {
        std::vector<std::string> unknown;
        check_keys(config, kSentenceConfigFile, "", unknown);
        check_arguments(config);
        check_task(config, task);
      } catch (const FileError& error) {
        return error.what();
      }
      return "";
    };
    read.unread_pooling = refusal(kVectors);
    read.unread_scores = refusal(kScores);
    return read;
  }
  return read;
}

std::string chat_template_of(const ModelFolder& folder) {
  for (const char* const file : {"chat_template.jinja", "chat_template.json"}) {
    if (folder.has(file)) return printable(folder.path(file));
  }
  if (!folder.has(kTokenizerConfigFile)) return "";
  const JsonValue config = folder.json(kTokenizerConfigFile);
  return config.find("chat_template") ? printable(config.path()) + ": chat_template" : "";
}

bool is_cross_encoder(const ModelFolder& folder) {
  return folder.has(kPromptsFile) && folder.json(kPromptsFile).string("model_type") == "CrossEncoder";
}

void check_processor_classes(const ModelFolder& transformer) {
  for (const char* const name :
       {kTokenizerConfigFile, kConfigFile, "preprocessor_config.json", "processor_config.json"}) {
    if (!transformer.has(name)) continue;
    const JsonValue file = transformer.json(name);
    const auto processor = file.string("processor_class");
    if (!processor) continue;
    const bool is_of_text = std::string_view(name) == kTokenizerConfigFile || std::string_view(name) == kConfigFile;
    if (is_of_text && processor->find("Tokenizer") == std::string::npos) continue;
    file.fail("processor_class", "is " + in_quotes(*processor) + ", expected " +
                                     (is_of_text ? "a processor's class" : "nothing beside a model of texts"));
  }
}

void read_defaults_of_vectors(const ModelFolder& folder, const JsonValue& config, bool has_pooling,
                              ModelOptions& into) {
  const std::string place = chat_template_of(folder);
  if (!place.empty() && into.unread_pooling.empty()) {
    into.unread_pooling = place + " is there, expected a modules.json beside it: without one sentence-transformers " +
                          "puts texts through the template";
  }
  if (has_pooling || folder.within(kPooling).has(kConfigFile)) return;
  const auto names = config.array("architectures");
  const std::vector<JsonValue> first = names ? names->few_elements(1) : std::vector<JsonValue>();
  const bool is_causal = config.boolean("is_causal").value_or(true);
  if (!first.empty() && is_causal && first[0].as_string().value_or("").ends_with("ForCausalLM")) {
    into.pooling = {PoolingMode::last_token};
  }
}

void read_score_options(const ModelFolder& folder, const std::vector<Module>& modules, const SentenceConfig& sentences,
                        ScoreHead& into) {
  if (modules.empty() || !is_cross_encoder(folder)) return;
  const JsonValue config = folder.json(kPromptsFile);
  const auto function = config.string("activation_fn");
  const auto prompt = config.string("default_prompt_name");
  try {
    if (modules.size() > 1) {
      throw NotBuilt{modules[1].place + " is " + in_quotes(modules[1].type) + ", expected a Transformer alone"};
    }
    if (!sentences.unread_scores.empty()) throw NotBuilt{sentences.unread_scores};
    understood([&] {
      if (prompt) config.fail("default_prompt_name", "is " + in_quotes(*prompt) + ", expected none for scores");
      if (function && !parse_function(*function))
        config.fail("activation_fn", "is " + in_quotes(*function) + ", expected " + std::string(kFunctionNames));
    });
    if (function) {
      into.function = *parse_function(*function);
      into.unread.clear();
    }
  } catch (const NotBuilt& not_built) {
    into.unread = not_built.message;
  }
}

}  // namespace headlight::models
