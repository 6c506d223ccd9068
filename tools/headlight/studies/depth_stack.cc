#include "tools/headlight/studies/depth_stack.h"

#include <cmath>
#include <random>

#include "headlight/loss.h"

namespace headlight::program {
namespace {

// [B, L, E] as [B · L, E].
View<float, 2> rows_of(View<float, 3> x) { return {x.data, {x.extent(0) * x.extent(1), x.extent(2)}}; }
View<float, 2> rows_of(Tensor<float, 3>& x) { return rows_of(x.view()); }
View<const float, 2> rows_of(View<const float, 3> x) { return {x.data, {x.extent(0) * x.extent(1), x.extent(2)}}; }

void append(std::vector<Parameter>& list, const std::vector<Parameter>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

DepthLayer::DepthLayer(const DepthOptions& options, std::int64_t number)
    : norm_(options.norm),
      residual_(options.residual),
      attention_({.width = options.width, .heads = options.heads}),
      feed_forward_({.width = options.width}),
      norm1_(options.width),
      norm2_(options.width) {
  // A seed for each part of each layer, the same with and without residual connections.
  const std::uint64_t seed = options.seed * 1000003 + 2 * static_cast<std::uint64_t>(number);
  attention_.initialize(seed);
  feed_forward_.initialize(seed + 1);
  norm1_.initialize(0);
  norm2_.initialize(0);
  for (Layer* const part : parts()) part->set_training(true);
  for (Tensor<float, 3>* const tensor : {&inner1_, &between_, &inner2_, &sum_}) {
    *tensor = Tensor<float, 3>({options.sequences, options.length, options.width});
  }
}

// Post-LN: y = LN(z), z = F(x) (+ x); Pre-LN: y = F(n) (+ x), n = LN(x). `inner` is z or n.
template <class Part>
void DepthLayer::part_forward(Engine& engine, LayerNorm& norm, View<const float, 3> x, View<float, 3> inner,
                              View<float, 3> y, Part part) {
  const View<const float, 3> residual = residual_ ? x : View<const float, 3>();
  if (norm_ == Norm::pre) {
    norm.forward(engine, rows_of(x), rows_of(inner));
    part(inner, y, residual);
  } else {
    part(x, inner, residual);
    norm.forward(engine, rows_of(inner), rows_of(y));
  }
}

template <class Part>
void DepthLayer::part_backward(Engine& engine, LayerNorm& norm, View<const float, 3> x, View<const float, 3> inner,
                               View<float, 3> gradient, Part part) {
  if (norm_ == Norm::pre) {
    part(inner, gradient, sum_, View<const float, 3>());
    const View<const float, 2> around = residual_ ? rows_of(gradient) : View<float, 2>();
    norm.backward(engine, rows_of(x), rows_of(sum_), rows_of(gradient), around);
  } else {
    norm.backward(engine, rows_of(inner), rows_of(gradient), rows_of(sum_));
    part(x, sum_, gradient, residual_ ? View<const float, 3>(sum_) : View<const float, 3>());
  }
}

void DepthLayer::forward(Engine& engine, View<const float, 3> x, View<float, 3> y) {
  part_forward(engine, norm1_, x, inner1_, between_,
               [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
                 attention_.forward(engine, in, in, in, out, attention_saved_, {}, {}, residual);
               });
  part_forward(engine, norm2_, between_, inner2_, y,
               [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
                 feed_forward_.forward(engine, in, out, feed_forward_saved_, {}, residual);
               });
}

void DepthLayer::backward(Engine& engine, View<const float, 3> x, View<float, 3> gradient) {
  part_backward(
      engine, norm2_, between_, inner2_, gradient,
      [&](View<const float, 3> in, View<const float, 3> from, View<float, 3> to, View<const float, 3> residual) {
        feed_forward_.backward(engine, in, feed_forward_saved_, from, to, residual);
      });
  part_backward(
      engine, norm1_, x, inner1_, gradient,
      [&](View<const float, 3> in, View<const float, 3> from, View<float, 3> to, View<const float, 3> residual) {
        attention_.backward(engine, in, in, in, attention_saved_, from, {.query = to, .residual = residual});
      });
}

std::vector<Parameter> DepthLayer::parameters() {
  std::vector<Parameter> list;
  for (Layer* const part : parts()) append(list, part->parameters());
  return list;
}

DepthStack::DepthStack(const DepthOptions& options)
    : options_(options),
      tokens_(options.sequences * options.length),
      embedding_({.vocabulary = options.vocabulary,
                  .max_positions = options.length,
                  .width = options.width,
                  .layers = 0,
                  .norm = Norm::post,
                  .layer_norm_epsilon = 1e-5f,
                  .dropout = 0}),
      last_norm_(options.width),
      head_(options.width, options.vocabulary),
      gradient_({options.sequences, options.length, options.width}),
      normalized_({tokens_, options.width}),
      logits_({tokens_, options.vocabulary}) {
  embedding_.initialize(options.seed * 1000003 + 1000000);
  last_norm_.initialize(0);
  head_.initialize(options.seed * 1000003 + 1000001);
  embedding_.set_training(true);
  last_norm_.set_training(true);
  head_.set_training(true);
  append(parameters_, embedding_.parameters());
  layers_.reserve(static_cast<std::size_t>(options.depth));
  for (std::int64_t n = 0; n <= options.depth; ++n) {
    hidden_.emplace_back(Tensor<float, 3>({options.sequences, options.length, options.width}));
    if (n == options.depth) break;
    layers_.emplace_back(options, n);
    append(parameters_, of_layers_.emplace_back(layers_.back().parameters()));
  }
  if (options.norm == Norm::pre) append(parameters_, last_norm_.parameters());
  append(parameters_, head_.parameters());
  for (std::int64_t n = 0; n < tokens_; ++n) positions_.push_back(n % options.length);
  for (std::int64_t s = 0; s <= options.sequences; ++s) offsets_.push_back(s * options.length);
}

void DepthStack::draw(std::uint64_t batch) {
  std::mt19937_64 random(options_.seed * 1000003 + batch);
  ids_.clear();
  labels_.clear();
  for (std::int64_t n = 0; n < tokens_; ++n) {
    ids_.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(options_.vocabulary)));
  }
  for (std::int64_t n = 0; n < tokens_; ++n) {
    const std::int64_t place = n % options_.length;
    labels_.push_back(ids_[static_cast<std::size_t>(n - place + options_.length - 1 - place)]);
  }
}

double DepthStack::learn_from(Engine& engine, std::uint64_t batch) {
  draw(batch);
  zero_gradients(parameters_);
  const EncoderInput input = {.ids = ids_, .positions = positions_, .offsets = offsets_};
  embedding_.forward(engine, input, rows_of(hidden_.front()), embedding_saved_, {});
  for (std::size_t n = 0; n < layers_.size(); ++n) layers_[n].forward(engine, hidden_[n], hidden_[n + 1]);
  const View<float, 2> last = rows_of(hidden_.back());
  const View<float, 2> gradient = rows_of(gradient_);
  const bool pre = options_.norm == Norm::pre;
  if (pre) last_norm_.forward(engine, last, normalized_);
  const View<const float, 2> read = pre ? View<const float, 2>(normalized_) : last;
  head_.forward(engine, read, logits_);
  const double loss = cross_entropy(engine, logits_, labels_, {.logits_gradient = logits_}).loss;
  head_.backward(engine, read, logits_, gradient);
  if (pre) last_norm_.backward(engine, last, gradient, gradient);
  for (std::size_t n = layers_.size(); n-- > 0;) layers_[n].backward(engine, hidden_[n], gradient_);
  embedding_.backward(engine, input, embedding_saved_, gradient);
  return loss;
}

std::vector<double> DepthStack::gradient_norms() const {
  std::vector<double> norms;
  for (const std::vector<Parameter>& parameters : of_layers_) {
    double sum = 0;
    for (const Parameter& parameter : parameters) {
      for (const float value : parameter.gradient) sum += static_cast<double>(value) * static_cast<double>(value);
    }
    norms.push_back(std::sqrt(sum));
  }
  return norms;
}

}  // namespace headlight::program
