// Who looks at the heads of a layer on the way back, and in which type.
#pragma once

#include "headlight/activation.h"
#include "headlight/layers/multi_head_attention.h"
#include "layers/rows.h"
#include "layers/saved_state.h"
#include "runtime/parallel.h"

namespace headlight::layers {

// The gradient of the heads, and whoever looks at them on the way: in float32, before it is rounded.
class VisitedHeads {
 public:
  VisitedHeads(Engine& engine, const TypedView<3>& heads, const MutableTypedView<3>& gradient, const HeadVisit& visit)
      : heads_(heads),
        gradient_(gradient),
        visit_(visit),
        memory_(engine, is_rounded() ? size().bytes() : 0, "MultiHeadAttention"),
        place_(is_rounded() ? memory_.data() : nullptr) {
    if (!is_rounded()) return;
    shown_ = rows_of(place_);
    shown_gradient_ = rows_of(place_);
  }

  // Where the gradient goes at first.
  [[nodiscard]] MutableTypedView<3> gradient() const noexcept {
    return is_rounded() ? MutableTypedView<3>(shown_gradient_) : gradient_;
  }
  // From there to whom it is shown, and on.
  void pass_on(Engine& engine) const {
    if (visit_.visitor == nullptr) return;
    if (!is_rounded()) {
      visit_.visitor->visit(engine, visit_.layer, floats_of(heads_), floats_of(gradient_));
      return;
    }
    convert(engine, heads_, shown_);
    visit_.visitor->visit(engine, visit_.layer, shown_, shown_gradient_);
    convert(engine, shown_gradient_, gradient_);
  }

 private:
  [[nodiscard]] bool is_rounded() const noexcept {
    return visit_.visitor != nullptr && gradient_.type != NumberType::float32;
  }
  View<float, 3> rows_of(Placement& place) const noexcept {
    return place.rows(heads_.extent(0), heads_.extent(1), heads_.extent(2));
  }
  [[nodiscard]] Placement size() const noexcept {
    Placement two;
    rows_of(two);
    rows_of(two);
    return two;
  }
  static void convert(Engine& engine, const TypedView<3>& from, const MutableTypedView<3>& to) {
    for_each_matrix(
        from.extent(0),
        [&](const TypedView<2>& x, const MutableTypedView<2>& y) { activate(engine, Activation::none, x, y); }, from,
        to);
  }

  TypedView<3> heads_;
  MutableTypedView<3> gradient_;
  HeadVisit visit_;
  runtime::Scratch memory_;
  Placement place_;
  View<float, 3> shown_{};
  View<float, 3> shown_gradient_{};
};

}  // namespace headlight::layers
