// Softmax, normalisations, activations, gates and turned heads of whole matrices: elements a nanosecond, and bytes a
// second beside what reading the input alone reaches.
#include <cmath>
#include <memory>

#include "harness/case_name.h"
#include "harness/element_operations.h"
#include "harness/inputs.h"
#include "harness/spans.h"
#include "harness/suite.h"
#include "headlight/activation.h"
#include "headlight/dropout.h"
#include "headlight/gate.h"
#include "headlight/head_rows.h"
#include "headlight/normalization.h"
#include "reference/activation.h"
#include "reference/normalization.h"
#include "reference/rotary.h"

namespace headlight::bench {
namespace {

struct Operands {
  Operands(std::int64_t rows, std::int64_t columns, bool with_residual)
      : x(filled<2>({rows, columns}, 1)),
        y({rows, columns}),
        weight(filled<1>({columns}, 3)),
        bias(filled<1>({columns}, 4)) {
    if (with_residual) residual = filled<2>({rows, columns}, 2);
  }
  Tensor<float, 2> x, y, residual;
  Tensor<float, 1> weight, bias;
};

// The first and the last row of ours against the same rows of `reference`, which maps [2, columns] doubles.
bool rows_are_right(
    const Operands& operands,
    const std::function<void(View<const double, 2>, View<const double, 2>, View<double, 2>)>& reference) {
  const std::int64_t columns = operands.x.shape()[1];
  const std::int64_t chosen[] = {0, operands.x.shape()[0] - 1};
  Tensor<double, 2> x({2, columns}), residual({2, columns}), y({2, columns});
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t j = 0; j < columns; ++j) {
      x(row, j) = operands.x(chosen[row], j);
      residual(row, j) = operands.residual.size() > 0 ? operands.residual(chosen[row], j) : 0;
    }
  }
  reference(x, residual, y);
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t j = 0; j < columns; ++j) {
      if (!(std::abs(operands.y(chosen[row], j) - y(row, j)) < 1e-5)) return false;
    }
  }
  return true;
}

// The figures that all of these share.
Work row_work(const std::shared_ptr<Operands>& operands) {
  Work work;
  work.reads = reads_of(operands->x, operands->residual);
  work.elements = static_cast<double>(operands->x.size());
  work.bound_by_reading = true;
  work.writes = writes_of(operands->y);
  return work;
}

Work softmax_work(std::int64_t rows, std::int64_t columns, Engine& engine) {
  const auto operands = std::make_shared<Operands>(rows, columns, false);
  Work work = row_work(operands);
  work.element_operations = kSoftmaxOperations;
  work.run = [operands, &engine] { softmax(engine, operands->x, operands->y); };
  work.is_right = [operands] {
    return rows_are_right(*operands, [](View<const double, 2> x, View<const double, 2>, View<double, 2> y) {
      reference::softmax<double>(x, y);
    });
  };
  return work;
}

Work layer_norm_work(std::int64_t rows, std::int64_t columns, bool with_residual, Engine& engine) {
  const auto operands = std::make_shared<Operands>(rows, columns, with_residual);
  Work work = row_work(operands);
  work.element_operations = kLayerNormOperations + (with_residual ? 1 : 0);
  work.run = [operands, &engine] {
    LayerNormOptions options;
    options.weight = {operands->weight.begin(), operands->weight.end()};
    options.bias = {operands->bias.begin(), operands->bias.end()};
    if (operands->residual.size() > 0) options.residual = operands->residual;
    layer_norm(engine, operands->x, operands->y, options);
  };
  work.is_right = [operands] {
    const auto widened = [](const Tensor<float, 1>& from) {
      Tensor<double, 1> to(from.shape());
      for (std::int64_t n = 0; n < from.size(); ++n) to(n) = from(n);
      return to;
    };
    const Tensor<double, 1> weight = widened(operands->weight);
    const Tensor<double, 1> bias = widened(operands->bias);
    return rows_are_right(*operands, [&](View<const double, 2> x, View<const double, 2> residual, View<double, 2> y) {
      reference::layer_norm<double>(x, residual, weight, bias, 1e-5, y);
    });
  };
  return work;
}

Work rms_norm_work(std::int64_t rows, std::int64_t columns, bool with_added, Engine& engine) {
  const auto operands = std::make_shared<Operands>(rows, columns, with_added);
  Work work = row_work(operands);
  work.element_operations = kRmsNormOperations + (with_added ? 1 : 0);
  work.run = [operands, &engine] {
    RmsNormOptions options = {.weight = {operands->weight.begin(), operands->weight.end()}};
    if (operands->residual.size() > 0) options.added = operands->residual;
    rms_norm(engine, operands->x, operands->y, options);
  };
  work.is_right = [operands] {
    Tensor<double, 1> weight(operands->weight.shape());
    std::copy(operands->weight.begin(), operands->weight.end(), weight.begin());
    return rows_are_right(*operands, [&](View<const double, 2> x, View<const double, 2> added, View<double, 2> y) {
      reference::rms_norm<double>(x, weight, false, 1e-6, added, y);
    });
  };
  return work;
}

// The residual is what the activation is multiplied by.
Work gate_work(std::int64_t rows, std::int64_t columns, Engine& engine) {
  const auto operands = std::make_shared<Operands>(rows, columns, true);
  Work work = row_work(operands);
  work.element_operations = kSiluOperations + 1;
  work.run = [operands, &engine] { gate(engine, Activation::silu, operands->x, operands->residual, operands->y); };
  work.is_right = [operands] {
    return rows_are_right(*operands, [](View<const double, 2> a, View<const double, 2> b, View<double, 2> y) {
      for (std::int64_t row = 0; row < 2; ++row) {
        for (std::int64_t j = 0; j < a.extent(1); ++j) y(row, j) = reference::silu(a(row, j)) * b(row, j);
      }
    });
  };
  return work;
}

// Rows of heads of that many numbers, all of them turned; with a norm or none.
Work head_rows_work(std::int64_t rows, std::int64_t columns, std::int64_t head_dim, NormKind norm,
                    RotaryPairing pairing, Engine& engine) {
  const auto operands = std::make_shared<Operands>(rows, columns, false);
  const auto angles = std::make_shared<Tensor<float, 2>>(filled<2>({rows, head_dim}, 5));
  Work work = row_work(operands);
  work.reads = reads_of(operands->x, *angles);
  work.element_operations = kRotationOperations + (norm == NormKind::none ? 0 : kRmsNormOperations);
  const auto heads = [=](Tensor<float, 2>& of) {
    return View<float, 3>(of.data(), {rows, columns / head_dim, head_dim});
  };
  work.run = [=, &engine] {
    head_rows(engine, heads(operands->x), heads(operands->y), {.norm = norm, .rotation = {*angles, pairing}});
  };
  work.is_right = [=] {
    return rows_are_right(*operands, [&](View<const double, 2> x, View<const double, 2>, View<double, 2> y) {
      Tensor<double, 3> from({2, columns / head_dim, head_dim}), to(from.shape());
      Tensor<double, 2> turns({2, head_dim});
      for (std::int64_t row = 0; row < 2; ++row) {
        for (std::int64_t j = 0; j < columns; ++j) from.data()[row * columns + j] = x(row, j);
        for (std::int64_t j = 0; j < head_dim; ++j) turns(row, j) = (*angles)(row == 0 ? 0 : rows - 1, j);
      }
      reference::head_rows<double>(
          from, {.norm = norm, .epsilon = 1e-6, .cosines_and_sines = turns.view(), .pairing = pairing}, to);
      for (std::int64_t n = 0; n < to.size(); ++n) y(n / columns, n % columns) = to.data()[n];
    });
  };
  return work;
}

Work activation_work(Activation activation, std::int64_t rows, std::int64_t columns, Engine& engine) {
  const auto operands = std::make_shared<Operands>(rows, columns, false);
  Work work = row_work(operands);
  work.element_operations = activation == Activation::gelu        ? kGeluOperations
                            : activation == Activation::gelu_tanh ? kGeluTanhOperations
                            : activation == Activation::silu      ? kSiluOperations
                                                                  : kReluOperations;
  work.run = [operands, activation, &engine] { activate(engine, activation, operands->x, operands->y); };
  work.is_right = [operands, activation] {
    return rows_are_right(*operands, [&](View<const double, 2> x, View<const double, 2>, View<double, 2> y) {
      for (std::int64_t row = 0; row < 2; ++row) {
        for (std::int64_t j = 0; j < x.extent(1); ++j) y(row, j) = reference::activate(activation, x(row, j));
      }
    });
  };
  return work;
}

// The same rows in bfloat16, x, residual and y.
struct NarrowOperands {
  NarrowOperands(std::int64_t rows, std::int64_t columns)
      : floats(rows, columns, true), x({rows, columns}), residual({rows, columns}), y({rows, columns}) {
    const auto round = [](Tensor<float, 2>& from, Tensor<BFloat16, 2>& to) {
      for (std::int64_t n = 0; n < from.size(); ++n) {
        to.data()[n] = BFloat16(from.data()[n]);
        from.data()[n] = static_cast<float>(to.data()[n]);
      }
    };
    round(floats.x, x);
    round(floats.residual, residual);
  }
  Operands floats;
  Tensor<BFloat16, 2> x, residual, y;
};

// Two numbers each.
std::span<float> words_of(Tensor<BFloat16, 2>& tensor) {
  return {reinterpret_cast<float*>(tensor.data()), static_cast<std::size_t>(tensor.size() / 2)};
}

// operation(engine, x, residual, y, weight and bias), of floats and of bfloat16.
template <class Operation>
Case narrow_case(const char* name, std::int64_t rows, std::int64_t columns, double operations, Operation operation) {
  return {case_name(name, "_bfloat16/", rows, "x", columns),
          [=](const CaseContext& context) {
            const auto operands = std::make_shared<NarrowOperands>(rows, columns);
            Engine& engine = context.engine;
            Work work;
            work.reads = {words_of(operands->x), words_of(operands->residual)};
            work.writes = {words_of(operands->y)};
            work.elements = static_cast<double>(operands->x.size());
            work.element_operations = operations;
            work.bound_by_reading = true;
            work.run = [=, &engine] {
              operation(engine, operands->x, operands->residual, operands->y, operands->floats);
            };
            work.is_right = [=, &engine] {
              Operands& floats = operands->floats;
              operation(engine, floats.x, floats.residual, floats.y, floats);
              for (std::int64_t n = 0; n < floats.y.size(); ++n) {
                if (BFloat16(floats.y.data()[n]).bits != operands->y.data()[n].bits) return false;
              }
              return true;
            };
            return work;
          },
          false, rows == 16};
}

void append_narrow_cases(std::vector<Case>& all) {
  for (const auto& [rows, columns] : {std::pair{16, 64}, {128, 768}, {1024, 768}, {16384, 768}}) {
    all.push_back(
        narrow_case("layer_norm_residual", rows, columns, kLayerNormOperations + 1,
                    [](Engine& engine, const auto& x, const auto& residual, auto& y, const Operands& vectors) {
                      layer_norm(engine, x, y,
                                 {.weight = {vectors.weight.begin(), vectors.weight.end()},
                                  .bias = {vectors.bias.begin(), vectors.bias.end()},
                                  .residual = residual});
                    }));
    all.push_back(narrow_case("residual", rows, columns, 1,
                              [](Engine& engine, const auto& x, const auto& residual, auto& y, const Operands&) {
                                dropout(engine, x, y, {}, residual);
                              }));
    all.push_back(narrow_case("gelu", rows, columns, kGeluOperations,
                              [](Engine& engine, const auto& x, const auto&, auto& y, const Operands&) {
                                activate(engine, Activation::gelu, x, y);
                              }));
  }
}

void append_block_cases(std::vector<Case>& all) {
  const auto append = [&](const char* name, std::int64_t rows, std::int64_t columns, auto make) {
    all.push_back({case_name(name, "/", rows, "x", columns),
                   [=](const CaseContext& context) { return make(rows, columns, context.engine); }, rows == 128,
                   rows == 16});
  };
  for (const auto& [rows, columns] : {std::pair{16, 128}, {128, 768}, {4096, 768}, {4096, 2048}}) {
    append("rms_norm", rows, columns,
           [](auto n, auto width, Engine& engine) { return rms_norm_work(n, width, false, engine); });
    append("rms_norm_added", rows, columns,
           [](auto n, auto width, Engine& engine) { return rms_norm_work(n, width, true, engine); });
    append("gate_silu", rows, columns, gate_work);
    append("rotate", rows, columns, [](auto n, auto width, Engine& engine) {
      return head_rows_work(n, width, 64, NormKind::none, RotaryPairing::halves, engine);
    });
    append("rotate_interleaved", rows, columns, [](auto n, auto width, Engine& engine) {
      return head_rows_work(n, width, 64, NormKind::none, RotaryPairing::interleaved, engine);
    });
    append("head_rows_rms", rows, columns, [](auto n, auto width, Engine& engine) {
      return head_rows_work(n, width, 64, NormKind::rms, RotaryPairing::halves, engine);
    });
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  append_narrow_cases(all);
  append_block_cases(all);
  for (const auto& [rows, columns, quick] :
       {std::tuple{16, 64, false}, {128, 128, false}, {512, 512, true}, {4096, 4096, false}}) {
    const bool smoke = rows == 16;
    all.push_back({case_name("softmax/", rows, "x", columns),
                   [rows = rows, columns = columns](const CaseContext& context) {
                     return softmax_work(rows, columns, context.engine);
                   },
                   quick, smoke});
    for (const auto& [name, activation] : {std::pair{"gelu", Activation::gelu},
                                           {"gelu_tanh", Activation::gelu_tanh},
                                           {"silu", Activation::silu},
                                           {"relu", Activation::relu}}) {
      all.push_back({case_name(name, "/", rows, "x", columns),
                     [rows = rows, columns = columns, activation = activation](const CaseContext& context) {
                       return activation_work(activation, rows, columns, context.engine);
                     },
                     false, smoke});
    }
  }
  for (const auto& [rows, columns, quick] :
       {std::tuple{16, 64, false}, {128, 384, false}, {128, 768, true}, {3200, 512, false}}) {
    for (const bool with_residual : {false, true}) {
      all.push_back({case_name(with_residual ? "layer_norm_residual/" : "layer_norm/", rows, "x", columns),
                     [rows = rows, columns = columns, with_residual](const CaseContext& context) {
                       return layer_norm_work(rows, columns, with_residual, context.engine);
                     },
                     quick && with_residual, rows == 16});
    }
  }
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) { return headlight::bench::run_suite("rows", headlight::bench::cases(), argc, argv); }
