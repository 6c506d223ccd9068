// Files, tokenizers and models.
#include <filesystem>
#include <fstream>
#include <optional>

#include "digests/digest.h"
#include "faults/model_files.h"
#include "faults/scene.h"
#include "headlight/models/npy.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/scratch_folder.h"

namespace headlight::faults::model_scenes {
namespace {

using test::Digest;

const std::vector<std::string> kTexts = {"a b c", "d", "", "a letter of many words"};

void add_text(Digest& digest, std::string_view text) {
  for (const char letter : text) digest.add(static_cast<std::uint64_t>(letter));
}

template <NumberType kPrecision>
class LoadScene : public Scene {
 public:
  void call() override {
    model_.reset();
    model_.emplace(models::load(tiny_model(), {.precision = kPrecision}));
    vectors_ = model_->embed(engine_, kTexts);
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(vectors_);
    return digest.value();
  }

 private:
  Engine engine_{EngineOptions{.threads = 2}};
  std::optional<models::TextEncoder> model_;
  Tensor<float, 2> vectors_;
};

class LoadFromMemoryScene : public Scene {
 public:
  LoadFromMemoryScene() {
    for (const char* name : {"config.json", "vocab.txt", "model.safetensors"}) {
      std::ifstream stream(tiny_model() + "/" + name, std::ios::binary);
      contents_.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
      names_.emplace_back(name);
    }
    for (std::size_t n = 0; n < names_.size(); ++n)
      files_.push_back({names_[n], std::as_bytes(std::span<const char>(contents_[n]))});
  }
  void call() override {
    model_.reset();
    model_.emplace(models::load("memory", files_));
  }
  std::uint64_t result() const override { return static_cast<std::uint64_t>(model_->network().parameter_count()); }

 private:
  std::vector<std::string> names_, contents_;
  std::vector<models::FileInMemory> files_;
  std::optional<models::TextEncoder> model_;
};

// A warm model, which no failure changes.
class WithModel : public Scene {
 protected:
  Engine engine_{EngineOptions{.threads = 2}};
  models::TextEncoder model_ = models::load(tiny_model());
};

class ComputeScene : public WithModel {
 public:
  void call() override {
    states_ = model_.encode(engine_, kTexts);
    vectors_ = model_.embed(engine_, kTexts);
    weights_ = model_.probabilities(engine_, states_.ids[0], 1);
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(states_.hidden);
    digest.add(vectors_);
    digest.add(weights_);
    return digest.value();
  }

 private:
  models::HiddenStates states_;
  Tensor<float, 2> vectors_;
  Tensor<float, 3> weights_;
};

// Each file of the folder is whole or not there.
class SaveScene : public WithModel {
 public:
  explicit SaveScene(const std::string& folder) : target_(folder + "/model"), whole_(whole()) {}
  void call() override { model_.save(target_); }
  std::uint64_t result() const override { return digest_of_folder(target_); }
  std::uint64_t state() const override { return only_whole_files(target_, whole_) ? 1 : 2; }

 private:
  // The same model, saved before any fault.
  static const std::string& whole() {
    static const test::ScratchFolder folder;
    static const std::string path = [] {
      models::load(tiny_model()).save(folder.path("whole"));
      return folder.path("whole");
    }();
    return path;
  }

  std::string target_;
  const std::string& whole_;
};

// A file that is replaced behind a symbolic link, or read: it has the old bytes or the new ones, and the link stays.
class ReplaceScene : public Scene {
 public:
  explicit ReplaceScene(const std::string& folder) : folder_(folder), link_(folder + "/link") {
    std::ofstream(folder + "/real") << "old";
    std::filesystem::create_symlink("real", link_);
  }
  void call() override {
    models::write_npy(link_, std::vector<std::int64_t>{2, 3}, std::span<const float>(values_));
    array_ = models::read_npy<float>(link_);
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(digest_of_folder(folder_));
    digest.add(std::span<const float>(array_.values));
    return digest.value();
  }
  // The call writes, then reads: what was written may stand when reading fails.
  std::uint64_t state() const override {
    if (!std::filesystem::is_symlink(link_)) return 2;
    const auto size = std::filesystem::file_size(folder_ + "/real");
    const bool has_one_file = std::distance(std::filesystem::directory_iterator(folder_), {}) == 2;
    return has_one_file && (size == 3 || size == 128 + sizeof values_) ? 1 : 3;
  }

 private:
  std::string folder_, link_;
  float values_[6] = {1, 2, 3, 4, 5, 6};
  models::Array<float> array_;
};

class SafetensorsScene : public Scene {
 public:
  explicit SafetensorsScene(const std::string& folder) : path_(folder + "/weights.safetensors") {}
  void call() override {
    models::write_safetensors(path_, {{"a", {{2, 3}, values_}}, {"b", {{6}, values_}}}, {{"about", "a test"}});
    models::SafetensorsFile file(path_);
    Digest digest;
    for (const auto& [name, weight] : file.weights()) {
      add_text(digest, name);
      digest.add(weight.values);
    }
    digest_ = digest.value();
  }
  std::uint64_t result() const override { return digest_; }

 private:
  std::string path_;
  float values_[6] = {1, 2, 3, 4, 5, 6};
  std::uint64_t digest_ = 0;
};

class TokenizerScene : public Scene {
 public:
  void call() override {
    const auto tokenizer = models::Tokenizer::read(tiny_model() + "/vocab.txt");
    Digest digest;
    for (const std::string& text : kTexts) {
      for (const std::int64_t id : tokenizer.encode(text, 12)) digest.add(static_cast<std::uint64_t>(id));
    }
    digest_ = digest.value();
  }
  std::uint64_t result() const override { return digest_; }

 private:
  std::uint64_t digest_ = 0;
};

}  // namespace

std::span<const NamedScene> list() {
  static constexpr NamedScene kScenes[] = {
      {"models::load", make_scene<LoadScene<NumberType::float32>>},
      {"models::load, bfloat16", make_scene<LoadScene<NumberType::bfloat16>>},
      {"models::load from memory", make_scene<LoadFromMemoryScene>},
      {"encode, embed, probabilities", make_scene<ComputeScene>},
      {"Encoder::save", make_scene<SaveScene>},
      {"write_npy over a link, read_npy", make_scene<ReplaceScene>},
      {"safetensors written and read", make_scene<SafetensorsScene>},
      {"Tokenizer::read", make_scene<TokenizerScene>},
  };
  return kScenes;
}

}  // namespace headlight::faults::model_scenes
