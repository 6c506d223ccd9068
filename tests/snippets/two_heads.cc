// Self-attention over five tokens, with two heads of head_dim 4.
#include <headlight/attention.h>

#include <iostream>

int main() {
  // [batch, length, heads, head_dim], zeros at first.
  headlight::Tensor<float, 4> query({1, 5, 2, 4}), key({1, 5, 2, 4}), value({1, 5, 2, 4}), out({1, 5, 2, 4});
  for (int token = 0; token < 5; ++token) {
    for (int head = 0; head < 2; ++head) value(0, token, head, 0) = static_cast<float>(token);
    // Head 1: query and key of a token are equal, and those of two tokens are orthogonal or opposite. Head 0: all
    // zeros.
    query(0, token, 1, token % 4) = key(0, token, 1, token % 4) = token < 4 ? 20.0f : -20.0f;
  }

  headlight::Engine engine;  // all cores and the best instruction set of this machine
  headlight::attention(engine, query, key, value, out);

  for (int token = 0; token < 5; ++token) {
    std::cout << "token " << token << ": head 0 gives " << out(0, token, 0, 0) << ", head 1 gives "
              << out(0, token, 1, 0) << '\n';
  }
}
