#include "headlight/head_rows.h"

#include <array>

#include "kernels/kernels.h"
#include "ops/rows/buffers.h"
#include "ops/rows/head_rows_check.h"
#include "ops/rows/norm_weight.h"
#include "ops/rows/sums.h"
#include "runtime/costs.h"

namespace headlight {
namespace {

// For rows from `first` on, which are turned, and normalised if that is asked for.
kernels::HeadRowsArguments arguments_of(const View<float, 3>::Shape& shape, const HeadRowsOptions& options,
                                        bool inverse, const kernels::Rows<const float>& x, void* y,
                                        std::int64_t y_stride, std::int64_t first, std::int64_t rows) noexcept {
  const View<const float, 2>& table = options.rotation.cosines_and_sines;
  // What stays as it is goes in one piece.
  const bool stays = !table && options.norm == NormKind::none;
  return {.x = x,
          .y = y,
          .y_stride = y_stride,
          .angles = ops::rows_from(table, first),
          .rows = rows,
          .heads = stays ? 1 : shape[1],
          .head_dim = stays ? shape[1] * shape[2] : shape[2],
          .dims = table ? table.extent(1) : 0,
          .interleaved = options.rotation.pairing == RotaryPairing::interleaved,
          .inverse = inverse,
          .normalizes = options.norm == NormKind::rms,
          .weight = ops::given(options.weight),
          .one_plus_weight = options.one_plus_weight,
          .epsilon = options.epsilon};
}

// Of checked arguments that have elements.
void run(Engine& engine, std::string_view operation, const TypedView<3>& x, const MutableTypedView<3>& y,
         const HeadRowsOptions& options, bool inverse) {
  const kernels::RowKernels& kernels = kernels::row_kernels(engine.isa());
  const TypedView<2> from = ops::flat(x);
  const MutableTypedView<2> to = ops::flat(y);
  const auto run_all = [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t first, std::int64_t rows) {
    if (options.norm != NormKind::layer) {
      return kernels.head_rows(arguments_of(x.shape, options, inverse, in[0], out.data, out.stride, first, rows));
    }
    // Of few models: a second walk over the row.
    const std::int64_t heads = x.extent(1), head_dim = x.extent(2);
    for (std::int64_t row = 0; row < rows; ++row) {
      kernels.layer_norm({{in[0].row(row), head_dim},
                          {nullptr, 0},
                          {out.row(row), head_dim},
                          heads,
                          head_dim,
                          ops::given(options.weight),
                          ops::given(options.bias),
                          options.epsilon});
      if (!options.rotation.cosines_and_sines) continue;
      const kernels::Rows<const float> normal = {out.row(row), out.stride};
      kernels.head_rows(arguments_of(x.shape, options, inverse, normal, out.row(row), out.stride, first + row, 1));
    }
  };
  ops::for_row_buffers(engine, operation, runtime::costs::kHeadRows, {&from}, to, run_all);
}

// The same of float32 heads as attention takes them where it multiplies bfloat16: rounded as they are made. False
// where they are others, and nothing is done.
bool run_rounded(Engine& engine, const TypedView<3>& x, const MutableTypedView<3>& y, const HeadRowsOptions& options) {
  const kernels::HeadKernels* const kernels = kernels::pair_head_kernels(engine.features());
  const bool rounds = x.type == NumberType::float32 && y.type == NumberType::bfloat16;
  if (kernels == nullptr || !rounds || options.norm == NormKind::layer) return false;
  const TypedView<2> from = ops::flat(x);
  const MutableTypedView<2> to = ops::flat(y);
  const View<const float, 2> floats(static_cast<const float*>(from.data), from.shape, from.strides);
  ops::for_row_blocks(engine, to.extent(0), to.extent(1), runtime::costs::kHeadRows,
                      [&](std::int64_t first, std::int64_t rows) {
                        kernels->head_rows(arguments_of(x.shape, options, false, ops::rows_from(floats, first),
                                                        ops::RowBuffers::behind(to, first), to.stride(0), first, rows));
                      });
  return true;
}

// Goes back through the norm of heads, of rows whose gradient is turned back first, in a buffer of its own.
class NormBackward {
 public:
  NormBackward(Engine& engine, std::string_view operation, const TypedView<3>& x, const TypedView<3>& y_gradient,
               const HeadRowsGradients& gradients, const HeadRowsOptions& options)
      : x_(x),
        y_gradient_(y_gradient),
        gradients_(gradients),
        options_(options),
        turn_(kernels::row_kernels(engine.isa()).head_rows),
        norm_(kernels::row_gradient_kernels(engine.isa()).layer_norm),
        weight_(engine, operation, options.weight, options.one_plus_weight),
        buffers_(engine, operation, x.extent(1) * x.extent(2), true) {}

  void operator()(int worker, std::int64_t begin, std::int64_t count, float* weight_sums,
                  float* bias_sums) const noexcept {
    const TypedView<2> x = ops::flat(x_), y_gradient = ops::flat(y_gradient_);
    buffers_.compute(worker, {&x, &y_gradient}, ops::flat(gradients_.x), begin, count,
                     [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t first, std::int64_t rows) {
                       const kernels::Rows<const float> turned = turn_back(in[1], first, rows, worker);
                       // A head is a row of the norm.
                       for (std::int64_t row = 0; row < rows; ++row) {
                         norm_({.x = {in[0].row(row), x_.extent(2)},
                                .y_gradient = {turned.row(row), x_.extent(2)},
                                .residual = {nullptr, 0},
                                .x_gradient = {out.data == nullptr ? nullptr : out.row(row), x_.extent(2)},
                                .rows = x_.extent(1),
                                .columns = x_.extent(2),
                                .weight = weight_.data(),
                                .epsilon = options_.epsilon,
                                .root_mean_square = options_.norm == NormKind::rms,
                                .weight_gradient = weight_sums,
                                .bias_gradient = bias_sums});
                       }
                     });
  }

 private:
  kernels::Rows<const float> turn_back(const kernels::Rows<const float>& y_gradient, std::int64_t first,
                                       std::int64_t rows, int worker) const noexcept {
    if (!options_.rotation.cosines_and_sines) return y_gradient;
    const kernels::Rows<float> turned = {buffers_.buffer(worker, 3), buffers_.size().row};
    turn_(arguments_of(x_.shape, {.rotation = options_.rotation}, true, y_gradient, turned.data, turned.stride, first,
                       rows));
    return {turned.data, turned.stride};
  }

  const TypedView<3>& x_;
  const TypedView<3>& y_gradient_;
  const HeadRowsGradients& gradients_;
  const HeadRowsOptions& options_;
  void (*turn_)(const kernels::HeadRowsArguments&) noexcept;
  void (*norm_)(const kernels::LayerNormBackwardArguments&) noexcept;
  ops::NormWeight weight_;
  ops::RowBuffers buffers_;
};

}  // namespace

void head_rows(Engine& engine, const TypedView<3>& x, const MutableTypedView<3>& y, const HeadRowsOptions& options) {
  constexpr std::string_view kName = "head_rows";
  if (ops::check_head_rows(kName, x, y, options).is_empty() || run_rounded(engine, x, y, options)) return;
  run(engine, kName, x, y, options, false);
}

void rotate(Engine& engine, const Rotation& rotation, const TypedView<3>& x, const MutableTypedView<3>& y,
            bool inverse) {
  constexpr std::string_view kName = "rotate";
  const HeadRowsOptions options = {.rotation = rotation};
  if (!ops::check_head_rows(kName, x, y, options).is_empty()) run(engine, kName, x, y, options, inverse);
}

void head_rows_backward(Engine& engine, const TypedView<3>& x, const TypedView<3>& y_gradient,
                        const HeadRowsGradients& gradients, const HeadRowsOptions& options) {
  constexpr std::string_view kName = "head_rows_backward";
  if (ops::check_head_rows_backward(kName, x, y_gradient, gradients, options).is_empty()) return;
  if (options.norm == NormKind::none) {
    if (gradients.x) run(engine, kName, y_gradient, gradients.x, options, true);
    return;
  }

  const NormBackward backward(engine, kName, x, y_gradient, gradients, options);
  const std::array<float*, 2> sums = {ops::given(gradients.weight), ops::given(gradients.bias)};
  const std::int64_t columns = x.extent(1) * x.extent(2);
  if (sums[0] == nullptr && sums[1] == nullptr) {
    ops::for_row_blocks(
        engine, x.extent(0), columns, runtime::costs::kLayerNormBackward,
        [&](std::int64_t first, std::int64_t rows, int worker) { backward(worker, first, rows, nullptr, nullptr); });
    return;
  }
  ops::add_sums_over_rows(engine, kName, x.extent(0), x.extent(2),
                          runtime::costs::kLayerNormBackward * static_cast<double>(x.extent(1)), sums,
                          [&](std::int64_t first, std::int64_t rows, const std::array<float*, 2>& partial, int worker) {
                            backward(worker, first, rows, partial[0], partial[1]);
                          });
}

}  // namespace headlight
