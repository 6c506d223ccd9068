// Scores of pairs by every family's head, beside what Transformers makes of the same folders; see
// tests/golden/families.py.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/models/headlight_models.h"
#include "headlight/models/text_encoder.h"
#include "models/golden_family.h"
#include "models/scratch_folder.h"
#include "support/allocation_counter.h"
#include "support/compare.h"

namespace headlight::models::family_scores_test {

using nlohmann::json;
using test::contains;
using test::golden_families;
using test::GoldenFamily;
using test::ScratchFolder;

// Of scores near 1: what float32 rounds away in three layers is a hundredth of it.
constexpr double kAbsolute = 1e-4;

// The scores of cross-encoders, and the tokens of their pairs.
TEST(FamilyScores, AreThoseOfTransformers) {
  const ScratchFolder scratch;
  Engine engine({.threads = 2});
  for (const GoldenFamily& family : golden_families()) {
    if (!family.scores) continue;
    SCOPED_TRACE(family.name);
    const std::string folder = family.write(scratch.path("family"));
    if (family.described.at("longest") == 37) {
      scratch.write("family/tokenizer_config.json",
                    R"({"model_max_length": 37, "tokenizer_class": "TokenizersBackend"})");
    }
    const TextEncoder model = load(folder);
    EXPECT_TRUE(model.options().unknown_keys.empty()) << testing::PrintToString(model.options().unknown_keys);
    const auto texts = family.described.at("pairs").get<std::vector<std::pair<std::string, std::string>>>();
    std::vector<TextPair> pairs;
    for (const auto& [first, second] : texts) pairs.push_back({first, second});
    ASSERT_EQ(model.score_width(), family.scores->shape()[1]);
    const Tensor<float, 2> scores = model.score(engine, pairs);
    for (std::int64_t n = 0; n < scores.size(); ++n) {
      ASSERT_NEAR(scores.data()[n], family.scores->data()[n], kAbsolute) << n;
    }
    for (std::size_t n = 0; n < pairs.size(); ++n) {
      const Tensor<float, 2> alone = model.score(engine, std::span(pairs).subspan(n, 1));
      for (std::int64_t label = 0; label < alone.size(); ++label) {
        ASSERT_EQ(alone.data()[label], scores(static_cast<std::int64_t>(n), label));
      }
    }
  }
}

const GoldenFamily& classifier(const std::string& name) {
  for (const GoldenFamily& family : golden_families()) {
    if (family.name == name && family.scores) return family;
  }
  throw std::runtime_error("no classifier " + name);
}

TEST(FamilyScores, GoThroughTheFunctionThatIsNamed) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const GoldenFamily& family = classifier("roberta");
  const std::vector<TextPair> pair{{"a city", "New York"}};
  const auto score = [&](const json& changes) {
    json config = family.described.at("config");
    config.merge_patch(changes);
    return load(family.write(scratch.path("family"), config)).score(engine, pair)(0, 0);
  };
  const float logistic = score(json::object());
  const char* const kOlder = "sbert_ce_default_activation_function";
  const float plain = score({{kOlder, "torch.nn.modules.linear.Identity"}});
  EXPECT_NEAR(logistic, 1 / (1 + std::exp(-plain)), 1e-6);
  EXPECT_EQ(score({{"sentence_transformers", {{"activation_fn", "torch.nn.modules.linear.Identity"}}}}), plain);
  EXPECT_EQ(score({{"sentence_transformers", {{"version", "5"}}}}), logistic);
  EXPECT_NEAR(score({{kOlder, "torch.nn.modules.activation.Tanh"}}), std::tanh(plain), 1e-6);
  const auto refusal = [&](const json& changes) {
    try {
      static_cast<void>(score(changes));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_TRUE(contains(refusal({{kOlder, "torch.nn.Softmax"}}), std::string(kOlder) + " is 'torch.nn.Softmax'"));
  EXPECT_TRUE(contains(refusal({{"id2label", {{"0", "a"}, {"1", "b"}}}}), "id2label has 2 labels"));
  EXPECT_TRUE(contains(refusal({{"architectures", {"RobertaModel"}}}), "no head for classification"));
}

// Of a network with types of tokens: what says whether it is told them.
TEST(FamilyScores, NeedToKnowTheTypesOfTokens) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const GoldenFamily& family = classifier("bert");
  const std::vector<TextPair> pair{{"a city", "New York"}};
  const std::string folder = family.write(scratch.path("family"));
  const auto loaded = [&](const json& config) {
    scratch.write("family/tokenizer_config.json", config.dump());
    return load(folder);
  };
  const auto score = [&](const json& config) { return loaded(config).score(engine, pair)(0, 0); };
  const auto refusal = [&](const json& config) {
    try {
      static_cast<void>(score(config));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const json whole{{"tokenizer_class", "PreTrainedTokenizerFast"}}, distil{{"tokenizer_class", "DistilBertTokenizer"}};
  const json with{{"model_input_names", {"input_ids", "token_type_ids", "attention_mask"}}};
  const json without{{"model_input_names", {"input_ids", "attention_mask"}}};
  const auto both = [](json one, const json& other) {
    one.update(other);
    return one;
  };
  const float typed = score(json::object()), untyped = score(without);
  EXPECT_NE(typed, untyped);
  EXPECT_EQ(score(with), typed);
  EXPECT_EQ(score(distil), untyped);
  EXPECT_EQ(score(both(distil, with)), typed);
  EXPECT_EQ(score(both(whole, with)), typed);
  EXPECT_EQ(score(both(whole, without)), untyped);
  EXPECT_TRUE(contains(refusal(whole), "tokenizer_config.json: model_input_names is missing, expected it for scores"));
  // What is saved says so.
  for (const json& names : {with, without}) {
    loaded(both(whole, names)).save(scratch.path("saved"));
    EXPECT_EQ(load(scratch.path("saved")).score(engine, pair)(0, 0), score(names));
  }
  json tokenizer = family.tokenizer_json();
  tokenizer["post_processor"]["pair"].erase(2);
  scratch.write("family/tokenizer.json", tokenizer.dump());
  EXPECT_TRUE(contains(refusal(json::object()), "tokenizer.json: post_processor.pair is not [CLS] A [SEP] B [SEP]"));
  EXPECT_NO_THROW(static_cast<void>(load(folder).encode(engine, std::vector<std::string>{"a city"})));
}

// What sentence-transformers makes of a folder that is no CrossEncoder's.
TEST(FamilyScores, GoThroughNoTemplateAndAreNotCut) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<TextPair> pair{{"a city", "New York"}};
  const std::string folder = classifier("roberta").write(scratch.path("family"));
  const auto refusal = [&] {
    try {
      static_cast<void>(load(folder).score(engine, pair));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  scratch.write("family/sentence_bert_config.json", R"({"max_seq_length": 12})");
  EXPECT_TRUE(contains(refusal(), "sentence_bert_config.json: max_seq_length cuts texts, but not pairs"));
  scratch.write("family/sentence_bert_config.json", R"({"max_seq_length": 900})");
  EXPECT_EQ(refusal(), "");
  scratch.write("family/tokenizer_config.json", R"({"tokenizer_class": "TokenizersBackend", "chat_template": "x"})");
  EXPECT_TRUE(contains(refusal(), "tokenizer_config.json: chat_template is there, expected none"));
}

// As sentence-transformers 6 saves one.
TEST(FamilyScores, FollowTheFilesOfACrossEncoder) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const GoldenFamily& family = classifier("roberta");
  const std::vector<TextPair> pair{{"a city", "New York"}};
  const char* const kIdentity = "torch.nn.modules.linear.Identity";
  const json transformer{{"path", ""}, {"type", "sentence_transformers.base.modules.transformer.Transformer"}};
  const json pooling{{"path", "1_Pooling"}, {"type", "sentence_transformers.models.Pooling"}};
  const json task{{"transformer_task", "sequence-classification"},
                  {"modality_config", {{"text", {{"method", "forward"}, {"method_output_name", "logits"}}}}},
                  {"module_output_name", "scores"}};
  const auto score = [&](const json& options, const json& sentences = json::object(), const json& modules = {}) {
    const std::string folder = family.write(scratch.path("family"));
    const json kept{{"model_type", "CrossEncoder"}, {"default_prompt_name", nullptr}, {"prompts", json::object()}};
    json all = kept, of_task = task;
    all.update(options);
    of_task.update(sentences);
    scratch.write("family/config_sentence_transformers.json", all.dump());
    scratch.write("family/sentence_bert_config.json", of_task.dump());
    scratch.write("family/modules.json", modules.is_null() ? json::array({transformer}).dump() : modules.dump());
    return load(folder).score(engine, pair)(0, 0);
  };
  const float logistic = load(family.write(scratch.path("family"))).score(engine, pair)(0, 0);
  EXPECT_EQ(score(json::object()), logistic);
  const float plain = score({{"activation_fn", kIdentity}});
  EXPECT_NEAR(logistic, 1 / (1 + std::exp(-plain)), 1e-6);
  // The folder of vectors that is scored nevertheless: its files say nothing of that.
  EXPECT_EQ(score({{"model_type", "SentenceTransformer"}, {"activation_fn", kIdentity}}), logistic);
  const auto refusal = [&](const auto&... files) {
    try {
      static_cast<void>(score(files...));
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const json none = json::object(), message{{"method", "forward"}};
  EXPECT_TRUE(contains(refusal(json{{"activation_fn", "mine.Snake"}}),
                       "config_sentence_transformers.json: activation_fn is 'mine.Snake', expected Identity"));
  EXPECT_TRUE(contains(refusal(json{{"default_prompt_name", "query"}, {"prompts", {{"query", "q: "}}}}),
                       "config_sentence_transformers.json: default_prompt_name is 'query', expected none"));
  EXPECT_TRUE(contains(refusal(none, json{{"transformer_task", "text-generation"}}),
                       "sentence_bert_config.json: transformer_task is 'text-generation'"));
  EXPECT_TRUE(contains(refusal(none, json{{"processing_kwargs", {{"text", {{"max_length", 4}}}}}}),
                       "sentence_bert_config.json: processing_kwargs is"));
  EXPECT_TRUE(contains(refusal(none, json{{"do_lower_case", true}}), "do_lower_case is true, expected false"));
  json modalities = task;
  modalities["modality_config"]["message"] = message;
  EXPECT_TRUE(contains(refusal(none, modalities), "modality_config.message is a chat's"));
  EXPECT_TRUE(contains(refusal(none, none, json::array({transformer, pooling})),
                       "modules.json: [1].type is 'Pooling', expected a Transformer alone"));
}

// The last token that is not padding, which the end of a text may be.
TEST(FamilyScores, OfTheLastTokenPassOverPadding) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const GoldenFamily& family = classifier("qwen3");
  const auto score = [&](const json& padding, const std::string& second) {
    json config = family.described.at("config");
    config["pad_token_id"] = padding;
    const std::vector<TextPair> pair{{"", second}};
    return load(family.write(scratch.path("family"), config)).score(engine, pair)(0, 0);
  };
  const std::string end = "<|endoftext|>";
  // The id of the token that the tokenizer puts behind a text. One token, two of them, and three.
  const json id = 420;
  EXPECT_NE(score(nullptr, "city"), score(id, "city"));
  EXPECT_EQ(score(id, "city"), score(id, "city" + end));
  EXPECT_NE(score(nullptr, "city"), score(nullptr, "city" + end));
  EXPECT_EQ(score(7, "city"), score(nullptr, "city"));
  EXPECT_EQ(score(id, ""), score(id, end));  // of nothing else the first
}

TEST(FamilyScores, ArePooledAsEitherKeySays) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const GoldenFamily& family = classifier("eurobert");
  const std::vector<TextPair> pair{{"a city", "New York"}};
  const auto score = [&](const json& changes) {
    json config = family.described.at("config");
    config.merge_patch(changes);
    return load(family.write(scratch.path("family"), config)).score(engine, pair)(0, 0);
  };
  const float late = score(json::object()), mean = score({{"classifier_pooling", "mean"}});
  EXPECT_NE(late, mean);
  EXPECT_EQ(score({{"clf_pooling", "late"}}), late);
  EXPECT_EQ(score({{"clf_pooling", "mean"}, {"classifier_pooling", "late"}}), late);
  try {
    static_cast<void>(score({{"clf_pooling", "mean"}}));
    FAIL() << "it was read";
  } catch (const FileError& error) {
    EXPECT_TRUE(contains(error.what(), "clf_pooling is 'mean', expected classifier_pooling")) << error.what();
  }
}

// From C the same bits; and what is no model for it, or no pairs, is refused.
TEST(FamilyScores, HaveTheSameBitsFromC) {
  const ScratchFolder scratch;
  const std::string folder = classifier("roberta").write(scratch.path("family"));
  const std::vector<TextPair> pairs{{"a city", "New York"}, {"the streets", "are long"}, {"", "a"}};
  Engine own({.threads = 1});
  const Tensor<float, 2> expected = load(folder).score(own, pairs);

  headlight_error error{};
  headlight_engine* engine = nullptr;
  headlight_engine_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  ASSERT_EQ(headlight_engine_create(&options, &engine, &error), HEADLIGHT_OK) << error.message;
  headlight_encoder* encoder = nullptr;
  ASSERT_EQ(headlight_encoder_load(folder.c_str(), &encoder, &error), HEADLIGHT_OK) << error.message;
  EXPECT_EQ(headlight_encoder_score_width(encoder), 1);
  EXPECT_EQ(headlight_encoder_score_width(nullptr), 0);

  const char* const first[] = {"a city, but not this", "the streets", ""};
  const char* const second[] = {"New York", "are long", "a"};
  const std::size_t lengths[] = {6, 11, 0};
  const std::int64_t shape[] = {3, 1};
  Tensor<float, 2> found({3, 1});
  headlight_tensor out = {found.data(), HEADLIGHT_FLOAT32, 2, shape, nullptr};
  const auto score = [&](const char* const* firsts, const headlight_tensor* into) {
    return headlight_encoder_score(encoder, engine, firsts, lengths, second, nullptr, 3, into, &error);
  };
  ASSERT_EQ(score(first, &out), HEADLIGHT_OK) << error.message;
  EXPECT_TRUE(test::same_bits(found, expected));

  EXPECT_EQ(score(nullptr, &out), HEADLIGHT_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(error.message, "first is"));
  EXPECT_EQ(score(first, nullptr), HEADLIGHT_INVALID_ARGUMENT);
  const char* const broken[] = {"a", "\xFF", "b"};
  EXPECT_EQ(headlight_encoder_score(encoder, engine, broken, nullptr, second, nullptr, 3, &out, &error),
            HEADLIGHT_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(error.message, "pair 1: ")) << error.message;
  const std::int64_t other[] = {3, 2};
  out.shape = other;
  EXPECT_EQ(score(first, &out), HEADLIGHT_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(error.message, "out has shape [3, 2], expected [3, 1]")) << error.message;
  EXPECT_EQ(headlight_encoder_score(nullptr, engine, first, nullptr, second, nullptr, 3, &out, &error),
            HEADLIGHT_INVALID_ARGUMENT);
  headlight_encoder_destroy(encoder);
  headlight_engine_destroy(engine);
}

// Its layers have scratch memory of their own.
TEST(FamilyScores, NothingIsAllocatedAfterReserve) {
  const ScratchFolder scratch;
  for (const char* const name : {"bert", "roberta", "eurobert"}) {
    const TextEncoder model = load(classifier(name).write(scratch.path(name)));
    Engine engine({.threads = 1});
    const std::vector<TextPair> pairs{{"a city", "New York"}, {"the streets", "are long"}};
    Tensor<float, 2> out({2, model.score_width()});
    model.reserve(engine, 2 * model.options().embed_max_length);
    const test::AllocationCounter counter;
    model.score(engine, pairs, out);
    const std::int64_t allocations = counter.count();
    EXPECT_EQ(allocations, 0) << name;
  }
}

}  // namespace headlight::models::family_scores_test
