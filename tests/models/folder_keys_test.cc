// The table of keys: the page that shows it, and that loading does what it says.
#include "models/folder_keys.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/bert_config.h"
#include "models/families/family.h"
#include "models/golden_folder.h"
#include "models/tokenizers/text_tokenizer_files.h"
#include "support/compare.h"

namespace headlight::models::folder_keys_test {

using nlohmann::json;
using test::contains;
using test::GoldenFolder;
using test::ScratchFolder;

std::string treatment_of(const FolderKey& key) {
  if (key.treatment == Treatment::read) return "read";
  if (key.treatment == Treatment::no_effect) return "no effect";
  std::string text = key.accepted[0] == '\0' ? "refused" : "refused unless `";
  for (const char letter : std::string(key.accepted)) {
    if (letter == '|') {
      text += "`, `";
    } else if (letter != '\'') {
      text += letter;
    }
  }
  return key.accepted[0] == '\0' ? text : text + "`";
}

// Keys that are read together: a file's, or of it those of one family.
struct Section {
  std::string title;
  std::vector<FolderKey> keys;
};

// In the order of the page.
std::vector<Section> sections() {
  std::vector<Section> all;
  const auto add = [&](const std::string& title, std::span<const FolderKey> keys) {
    all.push_back({title, {keys.begin(), keys.end()}});
  };
  const std::span<const FolderKey> keys = folder_keys();
  for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    const std::string file = keys[begin].file;
    while (end < keys.size() && keys[end].file == file) ++end;
    add(file, keys.subspan(begin, end - begin));
    if (file == "config.json") {
      add("config.json of bert", bert_keys());
      for (const Family& family : families()) add("config.json of " + std::string(family.model_type), family.keys);
    }
    if (file == "tokenizer_config.json")
      add("tokenizer_config.json of another tokenizer than BERT's", text_tokenizer_keys());
  }
  return all;
}

// Of BERT's folders.
std::vector<FolderKey> keys_of_bert() {
  std::vector<FolderKey> keys{folder_keys().begin(), folder_keys().end()};
  keys.insert(keys.end(), bert_keys().begin(), bert_keys().end());
  return keys;
}

TEST(FolderKeys, ThePageHoldsTheTable) {
  std::ifstream stream(HEADLIGHT_SOURCE_DIR "/docs/model-folders.md");
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  std::string table;
  for (const Section& section : sections()) {
    table += "\n### " + section.title + "\n\n| key | treatment | |\n|---|---|---|\n";
    for (const FolderKey& key : section.keys) {
      table += "| `" + std::string(key.key) + "` | " + treatment_of(key) + " | " + key.note + " |\n";
    }
  }
  const std::size_t begin = page.find("\n### ");
  ASSERT_NE(begin, std::string::npos);
  if (const char* const written = std::getenv("HEADLIGHT_WRITE_FOLDER_KEYS")) std::ofstream(written) << table;
  EXPECT_EQ(page.substr(begin), table)
      << "the end of docs/model-folders.md is the tables of lib/models, which HEADLIGHT_WRITE_FOLDER_KEYS=FILE writes";
}

TEST(FolderKeys, FilesAreTogetherAndKeysThereOnce) {
  std::set<std::pair<std::string, std::string>> seen;
  std::set<std::string> done;
  for (const Section& section : sections()) {
    EXPECT_TRUE(done.insert(section.title).second) << section.title;
    for (const FolderKey& key : section.keys) {
      EXPECT_TRUE(section.title.starts_with(key.file)) << key.file << " " << key.key;
      EXPECT_TRUE(seen.emplace(section.title, key.key).second) << section.title << " " << key.key;
    }
  }
  EXPECT_GE(seen.size(), 450u);
}

// A folder with the file of a key, and whether that file is one of a network or its tokenizer.
GoldenFolder folder_of(const std::string& file) {
  const auto& folders = test::golden_folders();
  if (file == "tokenizer.json") return folders.named("tokenizer.json alone");
  if (file == "2_Dense/config.json") return folders.named("dense ReLU");
  if (file == "2_LayerNorm/config.json") return folders.named("layer norm");
  if (file == "2_Normalize/config.json" || file == "2_Dropout/config.json") {
    GoldenFolder folder = folders.named("plain");
    const std::string type = file.substr(2, file.find('/') - 2);
    folder.files["modules.json"].push_back({{"path", "2_" + type}, {"type", "sentence_transformers.models." + type}});
    return folder;
  }
  if (file == "config_sentence_transformers.json") return folders.named("prompt by name");
  if (file == "sentence_bert_config.json") return folders.named("max_seq_length");
  return folders.named("plain");
}

// Puts a value at a key of the table: "normalizer.type", "[].path".
void put(json& document, std::string key, const json& value) {
  json* place = &document;
  if (key.starts_with("[].")) {
    place = &document[1];
    key = key.substr(3);
  }
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.')) {
    place = &(*place)[key.substr(0, dot)];
    key = key.substr(dot + 1);
  }
  (*place)[key] = value;
}

// What refuses a folder: load() or embed(); "" where neither does.
std::string refusal_of(const std::string& path) {
  try {
    return load(path).options().unread_pooling;
  } catch (const FileError& error) {
    return error.what();
  }
}

TEST(FolderKeys, WhatIsRefusedIsRefusedByItsName) {
  const ScratchFolder scratch;
  for (const FolderKey& key : keys_of_bert()) {
    if (key.treatment != Treatment::refused) continue;
    SCOPED_TRACE(std::string(key.file) + " " + key.key);
    for (const json& value : {json("surprise"), json(7), json{{"surprise", 1}}}) {
      GoldenFolder folder = folder_of(key.file);
      put(folder.files[key.file], key.key, value);
      EXPECT_TRUE(
          contains(refusal_of(folder.write(scratch)), std::string(key.file) + ": ", std::string(key.key) + " is "));
    }
    GoldenFolder folder = folder_of(key.file);
    std::string accepted = key.accepted;
    accepted = accepted.substr(0, accepted.find('|'));
    if (accepted.starts_with('\'')) accepted = "\"" + accepted.substr(1, accepted.size() - 2) + "\"";
    put(folder.files[key.file], key.key, accepted.empty() ? json() : json::parse(accepted));
    EXPECT_EQ(refusal_of(folder.write(scratch)), "");
  }
}

TEST(FolderKeys, WhatHasNoEffectHasNone) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<std::string>& texts = test::golden_folders().texts;
  std::map<std::string, std::vector<std::string>> keys;
  for (const FolderKey& key : folder_keys()) {
    if (std::string_view(key.key) == "hidden_dropout_prob") continue;  // which BERT reads
    if (key.treatment == Treatment::no_effect) keys[key.file].emplace_back(key.key);
  }
  EXPECT_GE(keys.size(), 8u);
  for (const auto& [file, names] : keys) {
    SCOPED_TRACE(file);
    GoldenFolder folder = folder_of(file);
    const TextEncoder plain = load(folder.write(scratch));
    for (const std::string& name : names) put(folder.files[file], name, json{{"surprise", 1}});
    const TextEncoder other = load(folder.write(scratch));
    EXPECT_EQ(other.options().unread_pooling, "");
    EXPECT_TRUE(other.options().unknown_keys.empty());
    EXPECT_TRUE(test::same_bits(plain.embed(engine, texts), other.embed(engine, texts)));
  }
}

TEST(FolderKeys, WhatNobodyKnowsIsReportedOrRefused) {
  const ScratchFolder scratch;
  std::set<std::string> files;
  for (const FolderKey& key : folder_keys()) files.insert(key.file);
  files.erase("added_tokens.json");  // whose keys are tokens
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    for (const json& value : {json("surprise"), json(nullptr), json(false)}) {
      GoldenFolder folder = folder_of(file);
      const std::string key = file == "modules.json" ? "[].surprise" : "surprise";
      put(folder.files[file], key, value);
      const std::string path = folder.write(scratch);
      const std::string refusal = refusal_of(path);
      if (unknown_keys_of(file) == Unknown::refused) {
        EXPECT_EQ(refusal.find("surprise is 'surprise'") == std::string::npos, value != "surprise") << refusal;
        continue;
      }
      EXPECT_EQ(refusal, "");
      const std::vector<std::string> unknown = load(path).options().unknown_keys;
      ASSERT_EQ(unknown.size(), value.is_null() ? 0u : 1u);
      if (!unknown.empty()) {
        EXPECT_TRUE(contains(unknown[0], "/" + file + ": ", "surprise"));
      }
    }
  }
}

}  // namespace headlight::models::folder_keys_test
