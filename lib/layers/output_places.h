// Where a layer's call may write what it is asked for beside its output: softmax rows, log-sum-exps, heads. Some of it
// is written while inputs are still to be read, and the rest before the call ends.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "headlight/attention.h"
#include "ops/check.h"

namespace headlight::layers {

// What errors call the outputs among a layer's options.
struct OptionNames {
  std::string_view log_sum_exp;
  std::string_view per_head;
  std::string_view averaged;
  std::string_view scores;
};

inline constexpr OptionNames kOptions = {"options.log_sum_exp", "options.probabilities.per_head",
                                         "options.probabilities.averaged", "options.scores"};

// Each view that is written must lie apart from those named before it, and from whatever apart_from() names then. Views
// that are not given count for nothing. Throws std::invalid_argument that names both.
class OutputPlaces {
 public:
  explicit OutputPlaces(std::string_view layer) noexcept : layer_(layer) {}

  template <int Rank>
  OutputPlaces& writes(std::string_view name, const View<float, Rank>& view) {
    if (!view) return *this;
    const ops::Extent extent = ops::check_view(layer_, name, view);
    ops::check_no_self_overlap(layer_, name, view.shape, view.strides);
    for (std::size_t other = 0; other < count_; ++other) {
      ops::check_disjoint(layer_, name, extent, places_[other].name, places_[other].extent);
    }
    places_[count_++] = {name, extent};
    return *this;
  }
  OutputPlaces& writes(const OptionNames& names, const AttentionOptions& options) {
    return writes(names.log_sum_exp, options.log_sum_exp)
        .writes(names.per_head, options.probabilities.per_head)
        .writes(names.averaged, options.probabilities.averaged)
        .writes(names.scores, options.scores);
  }

  template <class T>
  const OutputPlaces& apart_from(std::string_view name, const View<T, 3>& other) const {
    if (count_ == 0 || !other) return *this;
    const ops::Extent extent = ops::check_view(layer_, name, other);
    for (std::size_t place = 0; place < count_; ++place) {
      ops::check_disjoint(layer_, places_[place].name, places_[place].extent, name, extent);
    }
    return *this;
  }

 private:
  // A decoder layer's two attentions name four each; no call names more.
  static constexpr std::size_t kMost = 8;
  struct Place {
    std::string_view name;
    ops::Extent extent;
  };

  std::string_view layer_;
  std::array<Place, kMost> places_{};
  std::size_t count_ = 0;
};

}  // namespace headlight::layers
