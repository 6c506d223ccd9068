// A training step of one transformer encoder layer as a module of Python, for the comparison: training whole layers is
// not part of the Python package.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headlight/layers/transformer.h"

namespace nb = nanobind;

namespace {

class TrainingStep {
 public:
  TrainingStep(int threads, std::int64_t batch, std::int64_t length, std::int64_t width, std::int64_t heads)
      : engine_({.threads = threads}),
        layer_({.width = width, .heads = heads, .dropout = 0}),
        x({batch, length, width}),
        y_gradient(x.shape()),
        y(x.shape()),
        x_gradient(x.shape()) {
    layer_.initialize(1);
    layer_.set_training(true);
    parameters = layer_.parameters();
  }
  void run() {
    const nb::gil_scoped_release released;
    headlight::zero_gradients(parameters);
    layer_.forward(engine_, x, y, saved_, {.seed = 1});
    layer_.backward(engine_, x, saved_, y_gradient, x_gradient);
  }

 private:
  headlight::Engine engine_;
  headlight::TransformerEncoderLayer layer_;
  headlight::SavedState saved_;

 public:
  headlight::Tensor<float, 3> x, y_gradient, y, x_gradient;
  std::vector<headlight::Parameter> parameters;
};

// Memory of the step's as an array of NumPy, which keeps the step alive.
nb::object array(std::span<float> numbers, std::span<const std::int64_t> shape, nb::handle step) {
  const std::vector<std::size_t> extents(shape.begin(), shape.end());
  return nb::cast(nb::ndarray<nb::numpy, float>(numbers.data(), extents.size(), extents.data(), step));
}

template <headlight::Tensor<float, 3> TrainingStep::*tensor>
nb::object tensor_of(nb::handle step) {
  auto& of = nb::cast<TrainingStep&>(step).*tensor;
  return array({of.data(), static_cast<std::size_t>(of.size())}, of.shape(), step);
}

// [(name, values, gradient)]
nb::list parameters_of(nb::handle step) {
  nb::list list;
  for (const headlight::Parameter& one : nb::cast<TrainingStep&>(step).parameters) {
    list.append(nb::make_tuple(one.name, array(one.values, one.shape, step), array(one.gradient, one.shape, step)));
  }
  return list;
}

}  // namespace

NB_MODULE(headlight_training_step, module) {
  nb::class_<TrainingStep>(module, "TrainingStep")
      .def(nb::init<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t>(), nb::arg("threads"),
           nb::arg("batch"), nb::arg("length"), nb::arg("width"), nb::arg("heads"))
      .def("run", &TrainingStep::run)
      .def("parameters", &parameters_of)
      .def_prop_ro("x", &tensor_of<&TrainingStep::x>)
      .def_prop_ro("y_gradient", &tensor_of<&TrainingStep::y_gradient>)
      .def_prop_ro("y", &tensor_of<&TrainingStep::y>)
      .def_prop_ro("x_gradient", &tensor_of<&TrainingStep::x_gradient>);
}
