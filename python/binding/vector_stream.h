// Vectors of any number of texts, of which a few are in memory at a time.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/models/text_budget.h"
#include "headlight/models/text_encoder.h"
#include "values.h"

namespace headlight::python {

namespace nb = nanobind;

class VectorStream {
 public:
  // `held`: the model of `encoder`, and the engine. Texts are read when they are asked for. Throws for a memory, in
  // bytes, in which no text has room.
  VectorStream(const models::TextEncoder& encoder, Engine& engine, nb::handle texts, models::EmbedOptions options,
               std::int64_t memory, nb::object held);

  // The vector of the next text, [D]; StopIteration behind the last. ValueError while another call is under way: of
  // another thread, or of the iterable of texts, which may ask for this.
  [[nodiscard]] nb::object next();

 private:
  // The next texts, as many as memory has room for, and their vectors.
  void read_block();
  // False behind the last text.
  [[nodiscard]] bool read_text();

  const models::TextEncoder& encoder_;
  Engine& engine_;
  nb::object held_, given_;
  Items items_;
  models::EmbedOptions options_;
  std::int64_t memory_;
  models::TextBudget::Share share_;  // of a block
  bool is_one_text_, ended_ = false;

  std::string waiting_;  // the text that comes next, where a block had no room for it
  bool waits_ = false;
  std::string refusal_;   // of that text; empty: it has room
  std::size_t read_ = 0;  // texts so far
  Tensor<float, 2> vectors_;
  std::int64_t given_rows_ = 0;  // of them
  std::atomic<bool> executing_ = false;
};

// Encoder.embed_stream() gives one.
void define_vector_stream(nb::module_& module);

}  // namespace headlight::python
