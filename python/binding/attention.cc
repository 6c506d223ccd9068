#include "attention.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "attention_options.h"
#include "attention_text.h"
#include "engine.h"
#include "headlight/attention_backward.h"
#include "headlight/attention_merge.h"
#include "interruptible.h"
#include "results.h"
#include "values.h"

namespace headlight::python {
namespace {

constexpr const char* kName = "attention";
constexpr const char* kBackward = "attention_backward";
constexpr const char* kMerge = "merge_attention";
constexpr const char* kQuantize = "quantize_rows";
constexpr std::array kWords{EngineWord{"dropout.probability", "dropout"},
                            EngineWord{"probabilities.rows", "probabilities"}, EngineWord{"log_sum_exp", "lse"},
                            EngineWord{"log_sum_exp_gradient", "lse_gradient"}};

// What a call may say beside the keywords that forward and backward share.
struct Wanted {
  nb::handle key_scales, value_scales, log_sum_exp, probabilities, out, engine;
};

// The rows whose probabilities are asked for, as `probabilities=` says: False, True or a list of them.
struct WantedRows {
  explicit WantedRows(nb::handle given) {
    if (given.is_none()) return;
    if (const std::optional<bool> all = boolean(given)) {
      wanted = *all;
      return;
    }
    wanted = true;
    rows = integers(kName, "probabilities", given);
    if (rows.empty()) refuse_value(kName, "probabilities is an empty list of rows, expected some rows, True or False");
  }
  bool wanted = false;
  std::vector<std::int64_t> rows;  // none: all
};

// Scales that go with rows, which those of int8 need; `held` keeps them.
View<const float, 3> scales_of(const char* name, const TypedView<4>& rows, const char* argument, nb::handle given,
                               std::optional<Array>& held) {
  if (!given.is_none()) return held.emplace(kName, argument, given).floats<3>();
  if (rows.type != NumberType::int8) return {};
  refuse_value(kName, std::string(name) + " has numbers of type int8 and is given without " + argument);
}

struct Operands {
  TypedView<4> query, key, value;
  MutableTypedView<4> out;
};

// The form for what is all float32 is the faster one.
void attend(Engine& engine, const Operands& of, const AttentionOptions& options) {
  const auto floats = [](const auto& view) { return view.type == NumberType::float32; };
  if (!floats(of.query) || !floats(of.key) || !floats(of.value) || !floats(of.out)) {
    return attention(engine, of.query, of.key, of.value, of.out, options);
  }
  const auto input = [](const TypedView<4>& view) {
    return View<const float, 4>(static_cast<const float*>(view.data), view.shape, view.strides);
  };
  attention(engine, input(of.query), input(of.key), input(of.value),
            View<float, 4>(static_cast<float*>(of.out.data), of.out.shape, of.out.strides), options);
}

nb::object attend(nb::handle query, nb::handle key, nb::handle value, const AttentionKeywords& keywords,
                  const Wanted& wanted) {
  const Array queries(kName, "query", query), keys(kName, "key", key), values(kName, "value", value);
  Engine& engine = engine_of(kName, wanted.engine);
  queries.expect_axes(4);
  keys.expect_axes(4);
  values.expect_axes(4);
  ReadAttentionOptions read(kName, keywords);
  AttentionOptions& options = read.options();
  read.check_lists(queries.extent(0));
  const std::int64_t batch = queries.extent(0), rows = queries.extent(1), heads = queries.extent(2);
  Operands operands{queries.numbers<4>(), keys.stored_numbers<4>(), values.stored_numbers<4>(), {}};
  std::optional<Array> key_scales, value_scales;
  options.key_scales = scales_of("key", operands.key, "key_scales", wanted.key_scales, key_scales);
  options.value_scales = scales_of("value", operands.value, "value_scales", wanted.value_scales, value_scales);

  const Result out(kName, "out", wanted.out, queries, std::array{batch, rows, heads, values.extent(3)},
                   queries.number_type());
  operands.out = out.array().numbers<4>();
  std::optional<Result> log_sum_exp, probabilities;
  if (!wanted.log_sum_exp.is_none() && truth(kName, "log_sum_exp", wanted.log_sum_exp)) {
    log_sum_exp.emplace(kName, "log_sum_exp", nb::none(), queries, std::array{batch, heads, rows});
    options.log_sum_exp = log_sum_exp->array().floats<3>();
  }
  const WantedRows shown(wanted.probabilities);
  if (shown.wanted) {
    const std::int64_t shown_rows = shown.rows.empty() ? rows : static_cast<std::int64_t>(shown.rows.size());
    probabilities.emplace(kName, "probabilities", nb::none(), queries,
                          std::array{batch, heads, shown_rows, keys.extent(1)});
    options.probabilities = {.per_head = probabilities->array().floats<4>(), .rows = shown.rows};
  }
  with_names_of_python(kName, kWords, [&] { compute([&] { attend(engine, operands, options); }); });

  if (log_sum_exp && probabilities) {
    return nb::make_tuple(out.object(), log_sum_exp->object(), probabilities->object());
  }
  if (log_sum_exp) return nb::make_tuple(out.object(), log_sum_exp->object());
  if (probabilities) return nb::make_tuple(out.object(), probabilities->object());
  return out.object();
}

// What attention gave, and the gradients by it.
struct Forward {
  nb::handle out, log_sum_exp, out_gradient, log_sum_exp_gradient;
};

// Whether those beside the three are wanted; that of a bias only where there is one.
struct FurtherGradients {
  nb::handle bias, sinks;
};

nb::object attend_backward(nb::handle query, nb::handle key, nb::handle value, const Forward& forward,
                           const AttentionKeywords& keywords, const FurtherGradients& further, nb::handle engine) {
  const Array queries(kBackward, "query", query), keys(kBackward, "key", key), values(kBackward, "value", value),
      out(kBackward, "out", forward.out), log_sum_exp(kBackward, "lse", forward.log_sum_exp),
      out_gradient(kBackward, "out_gradient", forward.out_gradient);
  Engine& on = engine_of(kBackward, engine);
  ReadAttentionOptions read(kBackward, keywords);
  AttentionOptions& options = read.options();
  std::optional<Array> log_sum_exp_gradient;
  if (!forward.log_sum_exp_gradient.is_none()) {
    options.log_sum_exp_gradient =
        log_sum_exp_gradient.emplace(kBackward, "lse_gradient", forward.log_sum_exp_gradient).floats<3>();
  }
  read.check_lists(queries.extent(0));

  // Before the results are made of their shapes: what is wrong is said of the operand.
  const TypedView<4> q = queries.numbers<4>(), k = keys.numbers<4>(), v = values.numbers<4>();
  const auto beside = [&](const Array& input) {
    return Result(kBackward, "a gradient", nb::none(), queries, input.shape(), input.number_type());
  };
  const Result by_query = beside(queries), by_key = beside(keys), by_value = beside(values);
  TypedAttentionGradients gradients{by_query.array().numbers<4>(), by_key.array().numbers<4>(),
                                    by_value.array().numbers<4>()};
  nb::list results;
  for (const Result* one : {&by_query, &by_key, &by_value}) results.append(one->object());
  std::optional<Result> by_bias, by_sinks;
  if (truth(kBackward, "bias_gradient", further.bias) && read.bias() != nullptr) {
    by_bias.emplace(kBackward, "a gradient", nb::none(), queries, read.bias()->shape());
    gradients.bias = by_bias->array().broadcast_floats();
    results.append(by_bias->object());
  }
  if (truth(kBackward, "sinks_gradient", further.sinks)) {
    if (options.sinks.empty() && queries.extent(2) > 0) refuse_value(kBackward, "sinks_gradient is True without sinks");
    by_sinks.emplace(kBackward, "a gradient", nb::none(), queries, std::array{queries.extent(2)});
    gradients.sinks = by_sinks->array().floats<1>();
    results.append(by_sinks->object());
  }
  with_names_of_python(kBackward, kWords, [&] {
    compute([&] {
      attention_backward(on, q, k, v, out.numbers<4>(), log_sum_exp.floats<3>(), out_gradient.numbers<4>(), gradients,
                         options);
    });
  });
  return nb::tuple(results);
}

// A result over some of the keys.
struct Part {
  Part(std::size_t number, nb::handle out_, nb::handle log_sum_exp_)
      : name_of_out("parts[" + std::to_string(number) + "].out"),
        name_of_sums("parts[" + std::to_string(number) + "].log_sum_exp"),
        out(kMerge, name_of_out.c_str(), out_),
        log_sum_exp(kMerge, name_of_sums.c_str(), log_sum_exp_) {}
  std::string name_of_out, name_of_sums;
  Array out, log_sum_exp;
};

nb::object merge(nb::handle parts, nb::handle engine) {
  Engine& on = engine_of(kMerge, engine);
  std::deque<Part> given;
  std::vector<AttentionPart> views;
  Items items(kMerge, "parts", parts, "a list of pairs (out, log_sum_exp)");
  while (const nb::object part = items.next()) {
    if (!is_pair_like(part) || nb::len(part) != 2) {
      refuse_type(kMerge, "parts[" + std::to_string(views.size()) + "] is " + kind_of(part) +
                              ", expected a pair (out, log_sum_exp)");
    }
    const nb::object out = part[0], log_sum_exp = part[1];
    given.emplace_back(views.size(), out, log_sum_exp);
    views.push_back({given.back().out.numbers<4>(), given.back().log_sum_exp.floats<3>()});
  }
  if (views.empty()) refuse_value(kMerge, "parts is empty, expected at least one pair");
  const Part& first = given.front();
  const Result out(kMerge, "out", nb::none(), first.out, first.out.shape(), first.out.number_type());
  const std::array rows{first.out.extent(0), first.out.extent(2), first.out.extent(1)};
  const Result log_sum_exp(kMerge, "log_sum_exp", nb::none(), first.out, rows);
  compute([&] { merge_attention(on, views, out.array().numbers<4>(), log_sum_exp.array().floats<3>()); });
  return nb::make_tuple(out.object(), log_sum_exp.object());
}

nb::object quantize(nb::handle x, nb::handle numbers, nb::handle scales, nb::handle engine) {
  const Array given(kQuantize, "x", x);
  Engine& on = engine_of(kQuantize, engine);
  const TypedView<4> rows = given.numbers<4>();
  const Result integers(kQuantize, "numbers", numbers, given, given.shape(), NumberType::int8);
  const Result of_rows(kQuantize, "scales", scales, given, given.shape().first(3));
  compute([&] { quantize_rows(on, rows, integers.array().integers<std::int8_t, 4>(), of_rows.array().floats<3>()); });
  return nb::make_tuple(integers.object(), of_rows.object());
}

constexpr const char* kSignature =
    "def attention(query: A, key: Array, value: Array, *, " HEADLIGHT_ATTENTION_KEYWORDS
    "key_scales: Array | None = None, value_scales: Array | None = None, log_sum_exp: bool = False, "
    "probabilities: bool | Integers = False, out: Array | None = None, engine: Engine | None = None) -> A | tuple[A, "
    "...]";
constexpr const char* kBackwardSignature =
    "def attention_backward(query: A, key: Array, value: Array, out: Array, lse: Array, out_gradient: Array, "
    "*, " HEADLIGHT_ATTENTION_KEYWORDS
    "lse_gradient: Array | None = None, bias_gradient: bool = True, sinks_gradient: bool = False, "
    "engine: Engine | None = None) -> tuple[A, ...]";
constexpr const char* kMergeSignature =
    "def merge_attention(parts: Iterable[tuple[A, Array]], *, engine: Engine | None = None) -> tuple[A, A]";
constexpr const char* kQuantizeSignature =
    "def quantize_rows(x: A, *, numbers: Array | None = None, scales: Array | None = None, "
    "engine: Engine | None = None) -> tuple[A, A]";

// One handle for each keyword.
template <std::size_t>
using Keyword = nb::handle;

template <std::size_t... Number>
void define_with_keywords(nb::module_& module, std::index_sequence<Number...>) {
  define(
      module, "attention", kSignature,
      [](nb::handle query, nb::handle key, nb::handle value, Keyword<Number>... keywords, nb::handle key_scales,
         nb::handle value_scales, nb::handle log_sum_exp, nb::handle probabilities, nb::handle out, nb::handle engine) {
        return attend(query, key, value, AttentionKeywords{keywords...},
                      {key_scales, value_scales, log_sum_exp, probabilities, out, engine});
      },
      kAttentionText, argument("query"), argument("key"), argument("value"), nb::kw_only(),
      argument(kAttentionKeywords[Number]) = nb::none()..., argument("key_scales") = nb::none(),
      argument("value_scales") = nb::none(), argument("log_sum_exp") = false, argument("probabilities") = false,
      argument("out") = nb::none(), argument("engine") = nb::none());
  define(
      module, "attention_backward", kBackwardSignature,
      [](nb::handle query, nb::handle key, nb::handle value, nb::handle out, nb::handle log_sum_exp,
         nb::handle out_gradient, Keyword<Number>... keywords, nb::handle lse_gradient, nb::handle bias_gradient,
         nb::handle sinks_gradient, nb::handle engine) {
        return attend_backward(query, key, value, {out, log_sum_exp, out_gradient, lse_gradient},
                               AttentionKeywords{keywords...}, {bias_gradient, sinks_gradient}, engine);
      },
      kBackwardText, argument("query"), argument("key"), argument("value"), argument("out"), argument("lse"),
      argument("out_gradient"), nb::kw_only(), argument(kAttentionKeywords[Number]) = nb::none()...,
      argument("lse_gradient") = nb::none(), argument("bias_gradient") = true, argument("sinks_gradient") = false,
      argument("engine") = nb::none());
}

}  // namespace

void define_attention(nb::module_& module) {
  define_with_keywords(module, std::make_index_sequence<kAttentionKeywords.size()>());
  define(module, "merge_attention", kMergeSignature, &merge, kMergeText, argument("parts"), nb::kw_only(),
         argument("engine") = nb::none());
  define(module, "quantize_rows", kQuantizeSignature, &quantize, kQuantizeText, argument("x"), nb::kw_only(),
         argument("numbers") = nb::none(), argument("scales") = nb::none(), argument("engine") = nb::none());
}

}  // namespace headlight::python
