// Who looks at the heads of a layer on the way back, and in which type.
#pragma once

#include <string_view>

#include "headlight/activation.h"
#include "headlight/layers/multi_head_attention.h"
#include "layers/rows.h"
#include "layers/saved_state.h"
#include "runtime/parallel.h"

namespace headlight::layers {

// Heads, their gradient, and whoever looks at them on the way: in float32, before the gradient is rounded to the type
// of the heads. The gradient has a place in one of the two types; where the other is wanted, too, that lies here.
class VisitedHeads {
 public:
  // `name`: of the layer, which asks for memory.
  VisitedHeads(Engine& engine, std::string_view name, const TypedView<3>& heads, const MutableTypedView<3>& gradient,
               const HeadVisit& visit)
      : heads_(heads),
        visit_(visit),
        floats_(gradient),
        handed_on_(gradient),
        memory_(engine, is_rounded() ? place_all(nullptr) : 0, name) {
    if (is_rounded()) place_all(memory_.data());
  }

  // Where the gradient comes, in float32 if somebody looks.
  [[nodiscard]] const MutableTypedView<3>& gradient() const noexcept { return floats_; }
  // Where it is behind pass_on(), in the type of the heads.
  [[nodiscard]] const MutableTypedView<3>& handed_on() const noexcept { return handed_on_; }
  // To whom it is shown, and on.
  void pass_on(Engine& engine) const {
    if (visit_.visitor == nullptr) return;
    if (is_rounded()) convert(engine, heads_, shown_);
    const View<const float, 3> heads(static_cast<const float*>(shown_.data), shown_.shape, shown_.strides);
    visit_.visitor->visit(engine, visit_.layer, is_rounded() ? heads : floats_of_heads(), floats_of(floats_));
    if (is_rounded()) convert(engine, floats_, handed_on_);
  }

 private:
  [[nodiscard]] bool is_rounded() const noexcept {
    return visit_.visitor != nullptr && heads_.type != NumberType::float32;
  }
  [[nodiscard]] View<const float, 3> floats_of_heads() const noexcept {
    return {static_cast<const float*>(heads_.data), heads_.shape, heads_.strides};
  }
  // The heads in float32, and the gradient in the type in which it has no place yet; returns how many bytes they take.
  std::size_t place_all(std::byte* memory) noexcept {
    Placement place(memory);
    const auto rows = [&](NumberType type) {
      return place.typed_rows(heads_.extent(0), heads_.extent(1), heads_.extent(2), type);
    };
    shown_ = rows(NumberType::float32);
    const bool comes_in_floats = floats_.type == NumberType::float32;
    const MutableTypedView<3> other = rows(comes_in_floats ? heads_.type : NumberType::float32);
    if (memory != nullptr) (comes_in_floats ? handed_on_ : floats_) = other;
    return place.bytes();
  }
  static void convert(Engine& engine, const TypedView<3>& from, const MutableTypedView<3>& to) {
    for_each_matrix(
        from.extent(0),
        [&](const TypedView<2>& x, const MutableTypedView<2>& y) { activate(engine, Activation::none, x, y); }, from,
        to);
  }

  TypedView<3> heads_;
  HeadVisit visit_;
  MutableTypedView<3> floats_;
  MutableTypedView<3> handed_on_;
  MutableTypedView<3> shown_{};
  runtime::Scratch memory_;
};

}  // namespace headlight::layers
