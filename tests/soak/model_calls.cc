#include "digests/digest.h"
#include "headlight/models/text_encoder.h"
#include "models/tiny_bert.h"
#include "soak/call.h"

namespace headlight::soak {
namespace {

models::TextEncoder load(NumberType precision) {
  const test::ScratchFolder folder;
  return models::load(test::TinyBert().write(folder), {.precision = precision});
}

// One model for all callers.
class ModelCall : public Call {
 public:
  explicit ModelCall(NumberType precision) : model_(load(precision)) {}
  std::uint64_t run(Engine& engine) const override {
    test::Digest digest;
    digest.add(model_.embed(engine, texts_));
    digest.add(model_.encode(engine, texts_).hidden);
    return digest.value();
  }
  bool may_follow_fork() const override { return false; }

 private:
  std::vector<std::string> texts_ = {"a b c", "", "d", "e f g h i j k l m n o p", "the quick brown fox"};
  models::TextEncoder model_;
};

}  // namespace

void add_model_calls(Calls& calls) {
  for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8})
    calls.push_back(std::make_unique<ModelCall>(type));
}

}  // namespace headlight::soak
