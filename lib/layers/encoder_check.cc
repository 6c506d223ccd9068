// What Encoder::forward() refuses, all of it before the first number is written.
#include "layers/encoder_check.h"

#include <array>
#include <string>
#include <string_view>

#include "headlight/layers/encoder.h"
#include "layers/layer_names.h"
#include "ops/attention/check.h"
#include "ops/check.h"
#include "ops/entry_name.h"

namespace headlight {

namespace {

// A view that forward() writes for an entry of a list; `number` counts them all.
struct Output {
  [[nodiscard]] ops::EntryName name() const noexcept { return {list, index, field}; }

  std::string_view list;
  std::size_t index;
  std::string_view field;
  std::size_t number;
};

// Calls f(output, view) for every view that is given.
template <class Function>
void for_each_output(std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads, Function f) {
  std::size_t number = 0;
  const auto visit = [&](std::string_view list, std::size_t index, std::string_view field, const auto& view) {
    if (view) f(Output{list, index, field, number++}, view);
  };
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    visit("probabilities", i, "probabilities.per_head", probabilities[i].probabilities.per_head);
    visit("probabilities", i, "probabilities.averaged", probabilities[i].probabilities.averaged);
  }
  for (std::size_t i = 0; i < heads.size(); ++i) {
    visit("heads", i, "outputs", heads[i].outputs);
    visit("heads", i, "scaled_outputs", heads[i].scaled_outputs);
  }
}

// Calls f(name, list) for every list of numbers that forward() trusts once it is checked.
template <class Function>
void for_each_list(const EncoderInput& input, std::span<const LayerProbabilities> probabilities,
                   std::span<const LayerHeads> heads, Function f) {
  f("ids", input.ids);
  f("positions", input.positions);
  f("token_types", input.token_types);
  f("offsets", input.offsets);
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const std::span<const std::int64_t> rows = probabilities[i].probabilities.rows;
    if (!rows.empty()) f(ops::EntryName("probabilities", i, "probabilities.rows"), rows);
  }
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (!heads[i].silenced.empty()) f(ops::EntryName("heads", i, "silenced"), heads[i].silenced);
  }
}

// That every output lies apart from hidden, which all layers read and write, from all other outputs, and, as hidden
// does, from all lists.
void check_places(const EncoderInput& input, const View<float, 2>& hidden,
                  std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) {
  const ops::Extent hidden_extent = ops::check_view(layers::kEncoderName, "hidden", hidden);
  const auto check_lists_apart = [&](std::string_view name, const ops::Extent& extent) {
    for_each_list(input, probabilities, heads, [&](std::string_view list, std::span<const std::int64_t> numbers) {
      ops::check_disjoint(layers::kEncoderName, name, extent, list, ops::extent_of(numbers));
    });
  };
  check_lists_apart("hidden", hidden_extent);
  for_each_output(probabilities, heads, [&](const Output& output, const auto& view) {
    const ops::EntryName name = output.name();
    const ops::Extent extent = ops::check_view(layers::kEncoderName, name, view);
    ops::check_no_self_overlap(layers::kEncoderName, name, view.shape, view.strides);
    ops::check_disjoint(layers::kEncoderName, name, extent, "hidden", hidden_extent);
    check_lists_apart(name, extent);
    for_each_output(probabilities, heads, [&](const Output& before, const auto& other) {
      if (before.number >= output.number) return;
      const ops::Extent other_extent = ops::check_view(layers::kEncoderName, before.list, other);
      // A name takes an allocation.
      if (ops::ranges_overlap(extent, other_extent)) {
        ops::check_disjoint(layers::kEncoderName, name, extent, before.name(), other_extent);
      }
    });
  });
}

// One layer's entries could only contradict each other.
template <class Entry>
void check_layers(std::string_view list, std::span<const Entry> entries, std::int64_t layers) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::int64_t layer = entries[i].layer;
    const auto refuse = [&](const std::string& expected) {
      ops::fail(layers::kEncoderName, ops::EntryName(list, i, "layer"), " is ", layer, expected);
    };
    if (layer < 0 || layer >= layers) refuse(", expected 0 to " + std::to_string(layers - 1));
    for (std::size_t before = 0; before < i; ++before) {
      if (entries[before].layer == layer) {
        refuse(" as " + std::string(ops::EntryName(list, before, "layer")) + " is, expected each layer once");
      }
    }
  }
}

void check_probabilities(std::span<const LayerProbabilities> probabilities, const EncoderInput& input,
                         std::int64_t tokens, const EncoderOptions& encoder) {
  // Without layers nobody may ask for them, and there may be no heads.
  if (probabilities.empty()) return;
  const std::int64_t head_dim = encoder.width / encoder.heads;
  const ops::AttentionSizes sizes = {1, tokens, tokens, encoder.heads, encoder.heads, 1, head_dim, head_dim};
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const ops::EntryName rows("probabilities", i, "probabilities.rows");
    const ops::EntryName per_head("probabilities", i, "probabilities.per_head");
    const ops::EntryName averaged("probabilities", i, "probabilities.averaged");
    const AttentionOptions options = {.query_offsets = input.offsets, .probabilities = probabilities[i].probabilities};
    ops::check_probability_shapes(layers::kEncoderName, {rows, per_head, averaged}, options, sizes);
  }
}

void check_heads(std::span<const LayerHeads> heads, std::int64_t tokens, const EncoderOptions& encoder) {
  const std::array<std::int64_t, 2> expected = {tokens, encoder.width};
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const std::span<const std::int64_t> silenced = heads[i].silenced;
    for (std::size_t s = 0; s < silenced.size(); ++s) {
      if (silenced[s] < 0 || silenced[s] >= encoder.heads) {
        ops::fail(layers::kEncoderName, ops::EntryName("heads", i, "silenced"), "[", s, "] is ", silenced[s],
                  ", expected 0 to ", encoder.heads - 1);
      }
    }
    const auto check_shape = [&](std::string_view field, const View<float, 2>& view) {
      if (view)
        ops::check_shape(layers::kEncoderName, ops::EntryName("heads", i, field), view.shape, expected, "[N, E]");
    };
    check_shape("outputs", heads[i].outputs);
    check_shape("scaled_outputs", heads[i].scaled_outputs);
  }
}

}  // namespace

void layers::check_encoder_offsets(const EncoderInput& input, std::int64_t tokens) {
  if (input.offsets.empty()) ops::fail(layers::kEncoderName, "offsets is empty, expected [n + 1] entries from 0 to N");
  ops::check_offsets(layers::kEncoderName, "offsets", input.offsets, tokens, "N");
}

void Encoder::check(const EncoderInput& input, const View<float, 2>& hidden,
                    std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) const {
  ops::check_view(layers::kEncoderName, "hidden", hidden);
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  const std::array<std::int64_t, 2> expected = {tokens, options_.width};
  ops::check_shape(layers::kEncoderName, "hidden", hidden.shape, expected, "[N, E]");
  const auto check_count = [&](std::string_view name, std::span<const std::int64_t> values, bool wanted) {
    const std::size_t count = wanted ? input.ids.size() : 0;
    if (values.size() != count) {
      ops::fail(layers::kEncoderName, name, " has ", values.size(), " entries, expected ", count,
                (wanted ? " (one for each id)" : " (there is no such table)"));
    }
  };
  check_count("positions", input.positions, true);
  check_count("token_types", input.token_types, options_.token_types > 0);
  check_layers("probabilities", probabilities, options_.layers);
  check_layers("heads", heads, options_.layers);
  check_probabilities(probabilities, input, tokens, options_);
  check_heads(heads, tokens, options_);
  check_places(input, hidden, probabilities, heads);
}

}  // namespace headlight
