// Five words seen by two heads, each four numbers wide.
#include <headlight/attention.h>

#include <iostream>

int main() {
  // [batch, words, heads, width of a head], zeros at first.
  headlight::Tensor<float, 4> query({1, 5, 2, 4}), key({1, 5, 2, 4}), value({1, 5, 2, 4}), out({1, 5, 2, 4});
  for (int word = 0; word < 5; ++word) {
    for (int head = 0; head < 2; ++head) value(0, word, head, 0) = static_cast<float>(word);
    // Head 1 asks for the word itself: its keys stand at right angles or face away. Head 0 asks for nothing.
    query(0, word, 1, word % 4) = key(0, word, 1, word % 4) = word < 4 ? 20.0f : -20.0f;
  }

  headlight::Engine engine;  // this machine's cores and best instruction set
  headlight::attention(engine, query, key, value, out);

  for (int word = 0; word < 5; ++word) {
    std::cout << "word " << word << ": head 0 sees " << out(0, word, 0, 0) << " on average, head 1 sees "
              << out(0, word, 1, 0) << '\n';
  }
}
