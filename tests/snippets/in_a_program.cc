// In a program that has threads of its own: options, memory that is there beforehand, and a model that it loads.
#include <headlight/attention.h>
#include <headlight/models/models.h>

#include <iostream>
#include <string>
#include <vector>

int main() {
  // The program's pool, of one thread here: the caller's. The engine starts none.
  const headlight::Executor pool = {.worker_count = [](void*) { return 1; },
                                    .inside_worker = [](void*) { return false; },
                                    .run = [](void*, int count, void (*task)(void*, int), void* argument) -> void* {
                                      for (int index = 0; index < count; ++index) task(argument, index);
                                      return nullptr;
                                    },
                                    .wait = [](void*, void*) {}};
  headlight::Engine engine({.executor = &pool});

  // The next word of a chat: one row of eight heads, over the last 64 of 1,000 words, whose keys two heads share.
  headlight::Tensor<float, 4> query({1, 1, 8, 64}), key({1, 1000, 2, 64}), value({1, 1000, 2, 64}), out({1, 1, 8, 64});
  for (std::int64_t word = 0; word < 1000; ++word) value(0, word, 0, 0) = static_cast<float>(word);
  const headlight::AttentionOptions options = {.causal = headlight::Causal::bottom_right, .window = {.left = 63}};
  headlight::reserve(engine, {.batch = 1,
                              .query_length = 1,
                              .key_length = 1000,
                              .query_heads = 8,
                              .key_value_heads = 2,
                              .head_dim = 64,
                              .value_dim = 64});
  headlight::attention(engine, query, key, value, out, options);  // which allocates nothing
  std::cout << "the words seen are number " << out(0, 0, 0, 0) << " on average\n";

  const headlight::models::Encoder model = headlight::models::load("models/demonstration");
  const std::vector<std::string> texts = {"The animal was tired.", "The street was wide."};
  const headlight::Tensor<float, 2> vectors = model.embed(engine, texts);
  std::cout << vectors.shape()[0] << " texts are vectors of " << vectors.shape()[1] << " numbers\n";
}
