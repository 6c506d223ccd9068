// An engine with scratch memory taken in advance, one that computes on the program's own threads, and a mistake.
#include <headlight/attention.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

// A pool of three threads that ends with each call. A real one hands the tasks to threads that wait for them.
thread_local bool inside = false;

int worker_count(void*) { return 3; }
bool inside_worker(void*) { return inside; }
void* run(void*, int count, void (*task)(void* argument, int index), void* argument) {
  auto* threads = new std::vector<std::thread>;
  for (int index = 0; index < count; ++index) {
    threads->emplace_back([=] {
      inside = true;
      task(argument, index);
    });
  }
  return threads;
}
void wait(void*, void* ticket) {
  auto* threads = static_cast<std::vector<std::thread>*>(ticket);
  for (std::thread& thread : *threads) thread.join();
  delete threads;
}

}  // namespace

int main() {
  headlight::Tensor<float, 4> query({2, 300, 4, 64}), key({2, 300, 4, 64}), value({2, 300, 4, 64});
  headlight::Tensor<float, 4> out({2, 300, 4, 64}), again({2, 300, 4, 64});
  for (std::int64_t i = 0; i < value.size(); ++i) {
    query.data()[i] = static_cast<float>(i % 7);
    key.data()[i] = static_cast<float>(i % 5) * 0.1f;
    value.data()[i] = static_cast<float>(i % 11);
  }

  headlight::Engine engine({.threads = 2});
  headlight::reserve(engine, {.batch = 2,
                              .query_length = 300,
                              .key_length = 300,
                              .query_heads = 4,
                              .key_value_heads = 4,
                              .head_dim = 64,
                              .value_dim = 64});
  const std::size_t reserved = engine.scratch_bytes();
  headlight::attention(engine, query, key, value, out);
  if (engine.scratch_bytes() != reserved) return 1;  // it took no more

  const headlight::Executor pool = {nullptr, worker_count, inside_worker, run, wait};
  headlight::Engine borrowing({.executor = &pool});
  headlight::attention(borrowing, query, key, value, again);
  if (borrowing.threads() > 3 || !std::equal(out.begin(), out.end(), again.begin())) return 1;  // the same bits

  headlight::Tensor<float, 4> narrow({2, 300, 4, 32});
  try {
    headlight::attention(engine, query, narrow, value, out);
  } catch (const std::invalid_argument& error) {
    std::cout << error.what() << '\n';
    return 0;
  }
  return 1;
}
