// A program of somebody else's: it includes and links headlight in the way its build file says, and uses a little of
// each library.
#include <headlight/analysis/attention_cost.h>
#include <headlight/attention.h>
#include <headlight/version.h>

#include <iostream>
#include <string>

#ifdef CONSUMER_HAS_MODELS
#include <headlight/models/errors.h>
#endif

int main() {
  headlight::Engine engine({.threads = 1});
  // Queries of zeros look at all keys alike, so they see the mean of the values.
  headlight::Tensor<float, 4> query({1, 2, 1, 4}), key({1, 2, 1, 4}), value({1, 2, 1, 1}), out({1, 2, 1, 1});
  value(0, 0, 0, 0) = 1.0f;
  value(0, 1, 0, 0) = 2.0f;
  headlight::attention(engine, query, key, value, out);
  if (out(0, 0, 0, 0) != 1.5f || out(0, 1, 0, 0) != 1.5f) return 1;
  // The 512 × 512 probabilities of each of 8 heads.
  headlight::analysis::AttentionStep step;
  step.method = headlight::analysis::AttentionMethod::unfused;
  step.length = 512;
  step.heads = 8;
  if (headlight::analysis::attention_step_bytes(engine, step).probabilities != 8 * 512 * 512 * 4) return 1;
#ifdef CONSUMER_HAS_MODELS
  if (headlight::models::printable("a\nb") != "a\\nb") return 1;
#endif
  std::cout << "headlight " << HEADLIGHT_VERSION_MAJOR << '.' << HEADLIGHT_VERSION_MINOR << " computes with "
            << name(engine.isa()) << '\n';
}
