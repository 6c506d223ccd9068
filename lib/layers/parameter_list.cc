#include "layers/parameter_list.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <utility>

#include "headlight/storage_format.h"
#include "layers/product.h"
#include "ops/check.h"
#include "ops/stored_check.h"

namespace headlight::layers {

namespace {

// Its numbers, in whichever format.
StoredNumbers numbers_of(const WeightView& weight) noexcept {
  if (weight.stored) return weight.stored;
  return {StorageFormat::float32, weight.values.data(), static_cast<std::int64_t>(weight.values.size())};
}
// Of a row of them.
std::int64_t columns_of(const ParameterPlace& place) noexcept { return place.shape.empty() ? 1 : place.shape.back(); }

void check_weight(std::string_view layer, const ParameterPlace& parameter, const WeightView& weight) {
  if (weight.shape != parameter.shape) {
    ops::fail(layer, "weight ", parameter.name, " has shape ", weight.shape, ", expected ", parameter.shape);
  }
  if (weight.stored) {
    const std::string name = "weight " + parameter.name;
    if (!weight.values.empty()) ops::fail(layer, name, " holds both values and stored numbers, expected one of them");
    ops::check_stored_numbers(layer, name, weight.stored, columns_of(parameter));
  }
  const std::int64_t count = count_of(parameter);
  const std::int64_t held = numbers_of(weight).count;
  if (held != count) {
    ops::fail(layer, "weight ", parameter.name, " of shape ", weight.shape, " holds ", held, " values, expected ",
              count);
  }
}

void check_no_extra(std::string_view layer, std::span<const ParameterPlace> parameters, const Weights& weights,
                    std::string_view prefix) {
  std::set<std::string_view> known;
  for (const ParameterPlace& parameter : parameters) known.insert(parameter.name);
  for (auto at = weights.lower_bound(prefix); at != weights.end() && at->first.starts_with(prefix); ++at) {
    if (!known.contains(at->first)) {
      ops::fail(layer, "weight ", at->first, " of shape ", at->second.shape,
                " belongs to no parameter, expected none beside the layer's own");
    }
  }
}

// Parts of one matrix that is read where its weights lie from now on.
struct Borrowed {
  WeightMatrix* matrix;
  std::vector<WeightMatrix::Lent> parts;
};

// Numbers of somebody who lends none, in memory of their own and as they were: a layer computes the same with them as
// with those of a mapped file.
WeightMatrix::Lent copied(const ParameterPlace& place, const StoredNumbers& from) {
  const std::int64_t columns = columns_of(place), rows = place.rows.count;
  const auto bytes = static_cast<std::size_t>(rows * row_bytes(from.format, columns));
  const auto scale_bytes = static_cast<std::size_t>(rows * row_scale_bytes(from.format, columns));
  try {
    const std::shared_ptr<std::byte[]> memory(new std::byte[bytes + scale_bytes]);
    std::memcpy(memory.get(), from.data, bytes);
    if (scale_bytes > 0) std::memcpy(memory.get() + bytes, from.scales, scale_bytes);
    const std::byte* const scales = scale_bytes > 0 ? memory.get() + bytes : nullptr;
    return {place.rows, {from.format, memory.get(), from.count, scales}, memory};
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(std::array{rows, columns}, bytes + scale_bytes);
  }
}

// The matrices that can be, and own memory for those that cannot: with what they hold, which is theirs again if there
// is no memory for a later one.
std::vector<Borrowed> find_borrowed(std::span<const ParameterPlace> places, const Weights& weights) {
  std::vector<Borrowed> borrowed;
  for (std::size_t first = 0, end = 0; first < places.size(); first = end) {
    WeightMatrix* const matrix = places[first].matrix;
    end = first + 1;
    if (matrix == nullptr) continue;
    while (end < places.size() && places[end].matrix == matrix) ++end;
    Borrowed found = {matrix, {}};
    for (const ParameterPlace& place : places.subspan(first, end - first)) {
      const WeightView& weight = weights.find(place.name)->second;
      if (!matrix->may_move() || (weight.owner == nullptr && !weight.stored)) break;
      found.parts.push_back(weight.owner == nullptr
                                ? copied(place, weight.stored)
                                : WeightMatrix::Lent{place.rows, numbers_of(weight), weight.owner, weight.let_go});
    }
    if (found.parts.size() == end - first) {
      borrowed.push_back(std::move(found));
    } else {
      (void)matrix->own();
    }
  }
  return borrowed;
}

}  // namespace

std::int64_t count_of(const ParameterPlace& place) noexcept {
  std::int64_t count = 1;
  for (const std::int64_t extent : place.shape) count *= extent;
  return count;
}

void read(const ParameterPlace& place, float* to) noexcept {
  if (place.matrix != nullptr) return place.matrix->read(place.rows, to);
  std::ranges::copy(some_of(*place.vector, place.rows), to);
}

namespace {

void write(const ParameterPlace& place, const StoredNumbers& from) {
  float* const to = place.matrix != nullptr ? rows_of(place.matrix->own(), place.rows).data
                                            : some_of(*place.vector, place.rows).data();
  const std::int64_t columns = columns_of(place);
  if (columns > 0) widen_rows(from, columns, 0, count_of(place) / columns, to);
}

}  // namespace

void write(const ParameterPlace& place, const float* from) {
  write(place, {StorageFormat::float32, from, count_of(place)});
}

std::span<float> gradient_of(const ParameterPlace& place) noexcept {
  if (place.matrix == nullptr) return some_of(*place.vector_gradient, place.rows);
  const View<float, 2> gradient = place.matrix->gradient();
  return gradient ? values_of(rows_of(gradient, place.rows)) : std::span<float>();
}

void load_parameters(std::string_view layer, std::span<const ParameterPlace> places, const Weights& weights,
                     const LoadOptions& options) {
  for (const ParameterPlace& place : places) {
    const auto found = weights.find(place.name);
    if (found == weights.end()) {
      ops::fail(layer, "weight ", place.name, " is missing, expected one of shape ", place.shape);
    }
    check_weight(layer, place, found->second);
  }
  if (!options.ignore_extra) {
    named_lack(layer, "list of parameters", places.size() * sizeof(std::string_view),
               [&] { check_no_extra(layer, places, weights, options.prefix); });
  }
  std::vector<Borrowed> borrowed = named_lack(layer, "list of weights", places.size() * sizeof(WeightMatrix::Lent),
                                              [&] { return find_borrowed(places, weights); });
  // Nothing is refused from here on.
  for (Borrowed& found : borrowed) found.matrix->borrow(std::move(found.parts));
  for (const ParameterPlace& place : places) {
    if (place.matrix != nullptr && place.matrix->is_borrowed()) continue;
    write(place, numbers_of(weights.find(place.name)->second));
  }
}

}  // namespace headlight::layers
