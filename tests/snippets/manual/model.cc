// Texts as vectors, from a folder named on the command line.
#include <headlight/engine.h>
#include <headlight/models/models.h>

#include <iostream>
#include <string>
#include <vector>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  try {
    headlight::Engine engine;
    const headlight::models::TextEncoder model =
        headlight::models::load(arguments[1], {.precision = headlight::NumberType::float32});
    const std::vector<std::string> texts = {"The animal was tired.", "The animal was tired.", "The street was wide."};
    const headlight::Tensor<float, 2> vectors = model.embed(engine, texts);
    const auto cosine = [&](std::int64_t a, std::int64_t b) {
      float sum = 0;
      for (std::int64_t i = 0; i < vectors.shape()[1]; ++i) sum += vectors(a, i) * vectors(b, i);
      return sum;
    };
    std::cout << "cosine with the same text " << cosine(0, 1) << ", with the other " << cosine(0, 2) << '\n';
    return 0;
  } catch (const headlight::models::FileError& error) {
    std::cerr << error.what() << '\n';  // the file, what it holds and what was expected
    return 1;
  }
}
