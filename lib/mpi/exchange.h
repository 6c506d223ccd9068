// Between a rank's share, all heads of some rows, and what it works on, some heads of all rows of its row of the grid;
// and a few numbers that all ranks have.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/tensor.h"
#include "headlight/typed_view.h"
#include "mpi/call.h"
#include "mpi/transport.h"
#include "simd/integers.h"

namespace headlight::mpi {

// Memory of a tensor whose type the program learns as it runs.
class TypedTensor {
 public:
  TypedTensor() = default;
  TypedTensor(NumberType type, const TypedView<4>::Shape& shape)
      : words_({divide_up(View<const float, 4>(nullptr, shape).size() * static_cast<std::int64_t>(bytes_of(type)),
                          std::int64_t{sizeof(float)})}),
        view_(type, words_.data(), shape) {}
  [[nodiscard]] const MutableTypedView<4>& view() const noexcept { return view_; }

 private:
  Tensor<float, 1> words_;
  MutableTypedView<4> view_;
};

// share [B, n, H · head_ranks, D] → [B, m, H, D].
[[nodiscard]] TypedTensor gather_rows(Transport& transport, const Grid& grid, const Holding& holding,
                                      const TypedView<4>& share);
// The same of float32.
[[nodiscard]] Tensor<float, 4> gather_floats(Transport& transport, const Grid& grid, const Holding& holding,
                                             const View<const float, 4>& share);
// And back.
void scatter_rows(Transport& transport, const Grid& grid, const Holding& holding, const TypedView<4>& rows,
                  const MutableTypedView<4>& share);

// Each number the largest that any rank gives.
void find_largest(Transport& transport, std::span<std::int64_t> numbers);

}  // namespace headlight::mpi
