// What the lists of a forward pass may ask for, all of it checked before the first number is written.
#include "layers/layer_outputs.h"

#include <array>
#include <string>

#include "ops/attention/check.h"
#include "ops/check.h"
#include "ops/entry_name.h"
#include "ops/offsets_check.h"

namespace headlight::layers {

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
void check_places(std::string_view owner, const EncoderInput& input, const View<float, 2>& hidden,
                  std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) {
  const ops::Extent hidden_extent = ops::check_view(owner, "hidden", hidden);
  const auto check_lists_apart = [&](std::string_view name, const ops::Extent& extent) {
    for_each_list(input, probabilities, heads, [&](std::string_view list, std::span<const std::int64_t> numbers) {
      ops::check_disjoint(owner, name, extent, list, ops::extent_of(numbers));
    });
  };
  check_lists_apart("hidden", hidden_extent);
  for_each_output(probabilities, heads, [&](const Output& output, const auto& view) {
    const ops::EntryName name = output.name();
    const ops::Extent extent = ops::check_view(owner, name, view);
    ops::check_no_self_overlap(owner, name, view.shape, view.strides);
    ops::check_disjoint(owner, name, extent, "hidden", hidden_extent);
    check_lists_apart(name, extent);
    for_each_output(probabilities, heads, [&](const Output& before, const auto& other) {
      if (before.number >= output.number) return;
      const ops::Extent other_extent = ops::check_view(owner, before.list, other);
      // A name takes an allocation.
      if (ops::ranges_overlap(extent, other_extent)) {
        ops::check_disjoint(owner, name, extent, before.name(), other_extent);
      }
    });
  });
}

// One layer's entries could only contradict each other.
template <class Entry>
void check_layers(std::string_view owner, std::string_view list, std::span<const Entry> entries, std::int64_t layers) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::int64_t layer = entries[i].layer;
    const auto refuse = [&](const std::string& expected) {
      ops::fail(owner, ops::EntryName(list, i, "layer"), " is ", layer, expected);
    };
    if (layers == 0) refuse(", but there are no layers");
    if (layer < 0 || layer >= layers) refuse(", expected 0 to " + std::to_string(layers - 1));
    for (std::size_t before = 0; before < i; ++before) {
      if (entries[before].layer == layer) {
        refuse(" as " + std::string(ops::EntryName(list, before, "layer")) + " is, expected each layer once");
      }
    }
  }
}

void check_probabilities(std::string_view owner, std::span<const LayerProbabilities> probabilities,
                         const EncoderInput& input, std::int64_t tokens, const HeadShapes& shapes) {
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const auto [heads, head_dim] = shapes.at(probabilities[i].layer);
    const ops::AttentionSizes sizes = {1, tokens, tokens, heads, heads, 1, head_dim, head_dim};
    const ops::EntryName rows("probabilities", i, "probabilities.rows");
    const ops::EntryName per_head("probabilities", i, "probabilities.per_head");
    const ops::EntryName averaged("probabilities", i, "probabilities.averaged");
    const AttentionOptions options = {.query_offsets = input.offsets, .probabilities = probabilities[i].probabilities};
    ops::check_probability_shapes(owner, {rows, per_head, averaged}, options, sizes);
  }
}

void check_heads(std::string_view owner, std::span<const LayerHeads> heads, std::int64_t tokens,
                 const HeadShapes& shapes) {
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const HeadShape shape = shapes.at(heads[i].layer);
    const std::span<const std::int64_t> silenced = heads[i].silenced;
    for (std::size_t s = 0; s < silenced.size(); ++s) {
      if (silenced[s] < 0 || silenced[s] >= shape.heads) {
        ops::fail(owner, ops::EntryName("heads", i, "silenced"), "[", s, "] is ", silenced[s], ", expected 0 to ",
                  shape.heads - 1);
      }
    }
    const std::array<std::int64_t, 2> expected = {tokens, shape.heads * shape.head_dim};
    const auto check_shape = [&](std::string_view field, const View<float, 2>& view) {
      if (view) ops::check_shape(owner, ops::EntryName("heads", i, field), view.shape, expected, "[N, H · D]");
    };
    check_shape("outputs", heads[i].outputs);
    check_shape("scaled_outputs", heads[i].scaled_outputs);
  }
}

}  // namespace

void check_token_offsets(std::string_view owner, const EncoderInput& input, std::int64_t tokens) {
  ops::check_offsets(owner, "offsets", input.offsets, tokens, "N");
}

void check_layer_outputs(std::string_view owner, const HeadShapes& shapes, const EncoderInput& input,
                         const View<float, 2>& hidden, std::span<const LayerProbabilities> probabilities,
                         std::span<const LayerHeads> heads) {
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  check_layers(owner, "probabilities", probabilities, shapes.layers());
  check_layers(owner, "heads", heads, shapes.layers());
  check_probabilities(owner, probabilities, input, tokens, shapes);
  check_heads(owner, heads, tokens, shapes);
  check_places(owner, input, hidden, probabilities, heads);
}

}  // namespace headlight::layers
