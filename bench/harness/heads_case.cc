#include "harness/heads_case.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "support/random.h"
#include "tools/headlight/heads/heads.h"
#include "tools/headlight/heads/texts.h"

namespace headlight::bench {
namespace {

// all-MiniLM-L6-v2 where its files are, else random weights of its shape and a vocabulary of as many made-up words.
models::TextEncoder load(const std::string& folder) {
  if (std::filesystem::exists(folder + "/model.safetensors")) return models::load(folder);
  std::vector<std::string> vocabulary = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  while (vocabulary.size() < 30522) {
    std::string word = "w";
    for (std::size_t n = vocabulary.size(); n > 0; n /= 26) word += static_cast<char>('a' + n % 26);
    vocabulary.push_back(word);
  }
  models::ModelOptions options;
  options.encoder = {
      .max_positions = 512, .token_types = 2, .width = 384, .heads = 12, .feed_forward_width = 1536, .layers = 6};
  return models::make_random(options, models::Tokenizer(std::move(vocabulary)), 1);
}

bool is_word(const std::string& token) {
  return std::all_of(token.begin(), token.end(), [](char letter) { return letter >= 'a' && letter <= 'z'; });
}

struct Operands {
  Operands(std::size_t sentences, const CaseContext& context)
      : model(load(context.options.model)), texts(draw(sentences)) {}

  // Six to forty words, 23 on average.
  [[nodiscard]] std::vector<std::string> draw(std::size_t sentences) const {
    test::Random random(1);
    const auto between = [&](std::int64_t least, std::int64_t most) {
      const double share = (static_cast<double>(random.uniform()) + 1) / 2;
      return least + static_cast<std::int64_t>(share * static_cast<double>(most - least));
    };
    std::vector<std::string> drawn(sentences);
    for (std::string& text : drawn) {
      const std::int64_t words = between(6, 41);
      for (std::int64_t n = 0; n < words;) {
        const std::string token = model.tokenizer().token(between(5, model.options().encoder.vocabulary));
        if (!is_word(token)) continue;
        text += (n++ > 0 ? " " : "") + token;
      }
    }
    return drawn;
  }

  void analyse(Engine& engine) {
    program::TextSource source(texts);
    report = program::run_heads(engine, model, program::ModelNetwork(model, "the model"), source, [](std::size_t) {});
  }

  void pass(Engine& engine) {
    program::TextSource source(texts);
    program::TextBatches batches(model, source);
    const EncoderOptions& options = model.options().encoder;
    for (program::TextBatch batch; batches.next(batch);) {
      const models::TokenBatch packed = batch.packed();
      hidden.resize(
          static_cast<std::size_t>(std::max(batch.tokens * options.width, static_cast<std::int64_t>(hidden.size()))));
      model.network().forward(engine, packed.input(options.token_types > 0),
                              View<float, 2>(hidden.data(), {batch.tokens, options.width}));
    }
  }

  // Every sentence was read, and every head has its numbers; tests hold them against the twins.
  [[nodiscard]] bool is_right() const {
    if (report.texts != static_cast<std::int64_t>(texts.size())) return false;
    for (std::int64_t head = 0; head < report.all_heads(); ++head) {
      const analysis::HeadAttention& attention = report.attention[static_cast<std::size_t>(head)];
      if (attention.rows != report.rows || !attention.entropy || !report.cka_of(head, head)) return false;
    }
    return true;
  }

  models::TextEncoder model;
  std::vector<std::string> texts;
  std::vector<float> hidden;
  program::HeadsReport report;
};

}  // namespace

Work heads_work(std::size_t sentences, const CaseContext& context) {
  const auto operands = std::make_shared<Operands>(sentences, context);
  Engine* engine = &context.engine;
  Work work;
  work.run = [operands, engine] { operands->analyse(*engine); };
  work.is_right = [operands] { return operands->is_right(); };
  work.peers.push_back({"headlight, the plain pass", "", [operands, engine] { operands->pass(*engine); }});
  return work;
}

}  // namespace headlight::bench
