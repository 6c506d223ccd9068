// What the cases of attention forward and backward share: their fields, and how they are drawn.
#pragma once

#include <string>

#include "support/attention_case.h"
#include "support/placed.h"
#include "sweep/case.h"

namespace headlight::sweep {

class AttentionCall : public Case {
 public:
  void make_valid() override {
    call.make_valid();
    for (NumberType& type : call.types) {
      const bool is_cache = &type == &call.types[1] || &type == &call.types[2];
      if (type > (is_cache ? narrowest_cache() : NumberType::float16)) type = NumberType::float32;
    }
  }

  test::AttentionCase call;
  test::Layout layout = test::Layout::contiguous;

 protected:
  void visit(Fields& fields) override;
  // The last type of the enumeration that keys and values may have.
  [[nodiscard]] virtual NumberType narrowest_cache() const { return NumberType::int8; }
  // With the seed of the line.
  [[nodiscard]] test::AttentionCase seeded() const {
    test::AttentionCase c = call;
    c.seed = seed;
    return c;
  }
  // Which end of each operand touches a page that nobody may.
  [[nodiscard]] test::Against side() const { return test::kBothSides[seed % 2]; }
};

// Sizes around tiles, lanes, and the blocks of either pass; then every option, by itself and with others.
void draw_attention(AttentionCall& made, test::Random& random, bool is_backward);

}  // namespace headlight::sweep
