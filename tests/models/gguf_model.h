// Models of tests/golden/families.jsonl as GGUF files, as llama.cpp's converters make them: names by the table of
// ggml's own package (tests/golden/gguf_names.jsonl).
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "models/gguf_writer.h"
#include "models/golden_family.h"
#include "support/golden.h"

namespace headlight::test {

struct GgufModel {
  const GoldenFamily* family = nullptr;
  std::string architecture;
  std::map<std::string, std::string> names;  // of the folder's tensors

  using json = nlohmann::json;

  // The file, all numbers of float32; and some of it.
  [[nodiscard]] GgufWriter writer() const {
    GgufWriter file = writer_without_tensors();
    add_tensors(file);
    return file;
  }
  [[nodiscard]] GgufWriter writer_without_tokenizer() const {
    GgufWriter file(architecture);
    add_keys(file);
    add_tensors(file);
    return file;
  }
  [[nodiscard]] GgufWriter writer_without_tensors() const {
    GgufWriter file(architecture);
    add_keys(file);
    add_tokenizer(file);
    return file;
  }
  void add_tensors(GgufWriter& file) const {
    for (const auto& [name, tensor] : tensors()) file.floats(name, tensor.first, tensor.second);
  }

  // By the names of the file, changed as the converters do.
  [[nodiscard]] GoldenFamily::Tensors tensors() const {
    GoldenFamily::Tensors renamed;
    for (auto& [name, tensor] : family->tensors()) {
      const auto found = names.find(name);
      if (found == names.end()) continue;
      auto changed = tensor;
      if (architecture.starts_with("gemma") && name.ends_with("norm.weight")) {
        for (float& value : changed.second) value += 1;
      }
      if (architecture == "llama" &&
          (found->second.find("attn_q.") != std::string::npos || found->second.find("attn_k.") != std::string::npos)) {
        order_pairs(tensor, changed);
      }
      // RoBERTa's positions begin behind that of padding.
      if (found->second == "position_embd.weight" && family->name.find("roberta") != std::string::npos) {
        const std::int64_t skipped = config().at("pad_token_id").get<std::int64_t>() + 1;
        changed.first[0] -= skipped;
        changed.second.erase(changed.second.begin(), changed.second.begin() + skipped * changed.first[1]);
      }
      renamed.emplace(found->second, std::move(changed));
    }
    return renamed;
  }

  // The folder's, but for what a GGUF file cannot say: what scores are divided by, and BERT's activation.
  [[nodiscard]] json sayable_config() const {
    json changed = config();
    if (changed.contains("query_pre_attn_scalar")) changed["query_pre_attn_scalar"] = changed.at("head_dim");
    if (architecture == "bert") changed.erase("hidden_act");
    return changed;
  }
  [[nodiscard]] const json& config() const { return family->described.at("config"); }

 private:
  // Row 2i + h of a head is what was row h · dim / 2 + i.
  void order_pairs(const GoldenFamily::Tensors::mapped_type& from, GoldenFamily::Tensors::mapped_type& to) const {
    const auto dim = config().at("head_dim").get<std::int64_t>();
    const std::int64_t columns = from.first.size() > 1 ? from.first[1] : 1;
    for (std::int64_t row = 0; row < from.first[0]; ++row) {
      const std::int64_t within = row % dim, before = row - within + within % 2 * (dim / 2) + within / 2;
      std::copy_n(from.second.begin() + before * columns, columns, to.second.begin() + row * columns);
    }
  }

  void add_keys(GgufWriter& file) const {
    const auto add = [&](const char* key, std::initializer_list<const char*> theirs) {
      for (const char* const one : theirs) {
        if (!config().contains(one)) continue;
        return file.integer(architecture + "." + key, config().at(one).get<std::uint32_t>());
      }
    };
    const auto add_number = [&](const char* key, std::initializer_list<const char*> theirs, double otherwise) {
      double value = otherwise;
      for (const char* const one : theirs) value = config().value(one, value);
      file.number(architecture + "." + key, value);
    };
    add("block_count", {"num_hidden_layers", "n_layer"});
    add("embedding_length", {"hidden_size", "n_embd"});
    add("feed_forward_length", {"intermediate_size", "n_inner"});
    add("attention.head_count", {"num_attention_heads", "n_head"});
    add("attention.head_count_kv", {"num_key_value_heads"});
    add("attention.key_length", {"head_dim"});
    add("attention.value_length", {"head_dim"});
    add("attention.sliding_window", {"sliding_window", "local_attention"});
    const bool roberta = family->name.find("roberta") != std::string::npos;
    const auto longest = config().value("max_position_embeddings", config().value("n_positions", 0u));
    file.integer(architecture + ".context_length", roberta ? longest - 2 : longest);
    if (architecture == "modern-bert") {
      file.integer("modern-bert.attention.sliding_window_pattern", 2);
      add_number("attention.layer_norm_epsilon", {"norm_eps"}, 1e-5);
      add_number("rope.freq_base", {"global_rope_theta"}, 0);
      add_number("rope.freq_base_swa", {"local_rope_theta"}, 0);
    } else if (architecture == "bert" || architecture == "nomic-bert") {
      add_number("attention.layer_norm_epsilon", {"layer_norm_eps", "layer_norm_epsilon"}, 1e-12);
      if (architecture == "nomic-bert") add_number("rope.freq_base", {"rotary_emb_base"}, 0);
    } else {
      add_number("attention.layer_norm_rms_epsilon", {"rms_norm_eps"}, 1e-5);
      if (architecture == "gemma3") {
        add_gemma3(file);
      } else {
        add_number("rope.freq_base", {"rope_theta"}, 0);
      }
      if (architecture == "gemma-embedding") {
        file.integer("gemma-embedding.attention.sliding_window_pattern", 2);
        add_number("rope.freq_base_swa", {"rope_local_base_freq"}, 0);
      }
    }
    file.integer(architecture + ".pooling_type", 1);
  }

  // Of "gemma3_text causal".
  static void add_gemma3(GgufWriter& file) {
    file.number("gemma3.rope.freq_base", 5000);
    file.number("gemma3.rope.freq_base_swa", 20);
    file.text("gemma3.rope.scaling.type", "linear");
    file.number("gemma3.rope.scaling.factor", 8);
    file.integer("gemma3.attention.sliding_window_pattern", 3);
  }

  void add_tokenizer(GgufWriter& file) const {
    const json tokenizer = family->tokenizer_json(), &model = tokenizer.at("model");
    const std::string type = model.at("type");
    const std::string prefix = "tokenizer.ggml.";
    std::map<std::int64_t, std::string> tokens;
    std::vector<float> scores;
    if (type == "Unigram") {
      for (const json& entry : model.at("vocab")) {
        tokens.emplace(static_cast<std::int64_t>(tokens.size()), entry.at(0));
        scores.push_back(entry.at(1).get<float>());
      }
    } else {
      for (const auto& [token, id] : model.at("vocab").items()) tokens.emplace(id.get<std::int64_t>(), token);
    }
    std::map<std::int64_t, std::string> added;
    for (const json& token : tokenizer.at("added_tokens")) {
      added.emplace(token.at("id").get<std::int64_t>(), token.at("content").get<std::string>());
    }
    tokens.insert(added.begin(), added.end());
    std::vector<std::string> list;
    std::vector<std::int32_t> kinds;
    for (const auto& [id, token] : tokens) {
      const bool special = added.contains(id);
      kinds.push_back(special ? 3 : 1);
      std::string spelt = token;
      if (type == "WordPiece" && !special) {
        spelt = token.starts_with("##") ? token.substr(2) : "\u2581" + token;
      }
      list.push_back(spelt);
    }
    file.texts(prefix + "tokens", list);
    file.integers(prefix + "token_type", kinds);
    const auto id_of = [&](const char* key, const char* token) {
      for (const auto& [id, name] : tokens) {
        if (name == token) file.integer(prefix + key, static_cast<std::uint32_t>(id));
      }
    };
    if (type == "WordPiece") {
      file.text(prefix + "model", "bert");
      id_of("unknown_token_id", "[UNK]"), id_of("seperator_token_id", "[SEP]"), id_of("padding_token_id", "[PAD]");
      id_of("bos_token_id", "[CLS]"), id_of("mask_token_id", "[MASK]");
    } else if (type == "Unigram") {
      file.text(prefix + "model", "t5");
      scores.resize(list.size());
      file.numbers(prefix + "scores", scores);
      id_of("unknown_token_id", "<unk>"), id_of("bos_token_id", "<s>"), id_of("eos_token_id", "</s>");
      id_of("mask_token_id", "<mask>");
      file.bytes(prefix + "precompiled_charsmap",
                 decoded(tokenizer.at("normalizer").at("normalizers").at(0).at("precompiled_charsmap")));
    } else {
      file.text(prefix + "model", "gpt2");
      file.text(prefix + "pre", "gpt-2");
      std::vector<std::string> merges;
      for (const json& merge : model.at("merges")) {
        merges.push_back(merge.is_string() ? merge.get<std::string>()
                                           : merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());
      }
      file.texts(prefix + "merges", merges);
      const bool roberta = tokenizer.at("post_processor").at("type") == "RobertaProcessing";
      file.integer(prefix + "bos_token_id", 420);
      file.integer(prefix + "eos_token_id", 420);
      file.flag(prefix + "add_bos_token", roberta);
      file.flag(prefix + "add_eos_token", true);
    }
  }

  [[nodiscard]] static std::string decoded(const std::string& base64) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char digit : base64) {
      const std::size_t value = kDigits.find(digit);
      if (value == std::string_view::npos) break;
      bits = bits << 6 | static_cast<std::uint32_t>(value);
      count += 6;
      if (count < 8) continue;
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
    return bytes;
  }
};

// All of them; read once.
inline const std::vector<GgufModel>& gguf_models() {
  static const std::vector<GgufModel> all = [] {
    std::vector<GgufModel> read;
    for (const std::string& line : golden_lines("gguf_names.jsonl")) {
      const nlohmann::json one = nlohmann::json::parse(line);
      for (const GoldenFamily& family : golden_families()) {
        if (!family.hidden || family.name != one.at("family")) continue;
        read.push_back({&family, one.at("architecture"), one.at("names").get<std::map<std::string, std::string>>()});
      }
    }
    return read;
  }();
  return all;
}

}  // namespace headlight::test
