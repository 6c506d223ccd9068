#include "models/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "headlight/models/errors.h"
#include "models/describe.h"

namespace headlight::models {
namespace {

using Json = nlohmann::json;

// More axes than any framework allows (PyTorch and numpy 2 stop at 64).
constexpr std::size_t kMostAxes = 64;

// Sub-byte dtypes (F4, F6 …) are not listed: nothing here reads them.
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 18> kElementSizes{{
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"F8_E8M0", 1},
    {"F8_E4M3FNUZ", 1},
    {"F8_E5M2FNUZ", 1},
    {"I16", 2},
    {"U16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"I32", 4},
    {"U32", 4},
    {"F32", 4},
    {"F64", 8},
    {"I64", 8},
    {"U64", 8},
}};

// Walks the header event by event and keeps only what the format allows at that place, so that hostile JSON can neither
// nest deep nor hide a second meaning behind a repeated key.
//
//   level 0: the object itself    level 1: its values, one object a tensor    level 2: a tensor's three members
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  HeaderHandler(const std::string& path, SafetensorsHeader& header) : path_(path), header_(header) {}

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) return enter(Place::header);
    if (place_ == Place::header) return enter(name_ == "__metadata__" ? Place::metadata : Place::tensor);
    unexpected("an object");
  }

  bool end_object() override {
    if (place_ == Place::header) return enter(Place::outside);
    if (place_ == Place::tensor) {
      if (!dtype_ || !shape_ || !offsets_)
        fail("lacks " + std::string(!dtype_ ? "dtype" : !shape_ ? "shape" : "data_offsets"));
      if (offsets_->size() != 2) fail("data_offsets has " + std::to_string(offsets_->size()) + " entries, expected 2");
      header_.tensors.push_back({name_, std::move(*dtype_), std::move(*shape_),
                                 static_cast<std::uint64_t>((*offsets_)[0]),
                                 static_cast<std::uint64_t>((*offsets_)[1])});
      dtype_.reset();
      shape_.reset();
      offsets_.reset();
    }
    return enter(Place::header);
  }

  bool key(std::string& text) override {
    if (place_ == Place::header) {
      name_ = text;
      if (!names_.insert(text).second) throw FileError(path_, "the header names " + in_quotes(text) + " twice");
      return true;
    }
    key_ = text;
    if (place_ == Place::metadata) {
      if (header_.metadata.contains(text)) fail("holds the key " + in_quotes(text) + " twice");
      return true;
    }
    const bool known = text == "dtype" || text == "shape" || text == "data_offsets";
    if (!known) fail("has the unknown member " + in_quotes(text) + ", expected dtype, shape and data_offsets");
    const bool repeated = text == "dtype"   ? dtype_.has_value()
                          : text == "shape" ? shape_.has_value()
                                            : offsets_.has_value();
    if (repeated) fail("holds " + text + " twice");
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") unexpected("an array");
    (key_ == "shape" ? shape_ : offsets_).emplace();
    return enter(Place::numbers);
  }

  bool end_array() override { return enter(Place::tensor); }

  bool number_unsigned(Json::number_unsigned_t value) override {
    if (place_ != Place::numbers) unexpected("a number");
    if (value > static_cast<std::uint64_t>(INT64_MAX))
      fail(key_ + " holds " + std::to_string(value) + ", expected less than 2^63");
    auto& numbers = key_ == "shape" ? *shape_ : *offsets_;
    if (numbers.size() == kMostAxes) fail(key_ + " has more than " + std::to_string(kMostAxes) + " entries");
    numbers.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      header_.metadata.emplace(key_, value);
      return true;
    }
    if (place_ != Place::tensor || key_ != "dtype") unexpected("a string");
    dtype_ = value;
    return true;
  }

  bool null() override {
    if (place_ == Place::header && name_ == "__metadata__") return true;  // none
    unexpected("null");
  }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_integer(Json::number_integer_t) override { unexpected("a negative number"); }
  bool number_float(Json::number_float_t, const std::string&) override {
    unexpected("a number that is no 64-bit integer");
  }
  bool binary(Json::binary_t&) override { unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw FileError(path_, "the header is not valid JSON at its byte " + std::to_string(position));
  }

 private:
  enum class Place { outside, header, metadata, tensor, numbers };

  bool enter(Place place) {
    place_ = place;
    return true;
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw FileError(path_, (name_ == "__metadata__" ? name_ : "tensor " + in_quotes(name_)) + " " + message);
  }

  [[noreturn]] void unexpected(const char* what) const {
    switch (place_) {
      case Place::outside:
        throw FileError(path_, "the header is " + std::string(what) + ", expected an object");
      case Place::header:
        fail("is " + std::string(what) + ", expected an object");
      case Place::metadata:
        fail("holds " + std::string(what) + " for " + in_quotes(key_) + ", expected a string");
      case Place::numbers:
        fail(key_ + " holds " + what + ", expected integers from 0 on");
      case Place::tensor:
        fail(key_ + " is " + what + ", expected " + (key_ == "dtype" ? "a string" : "an array of integers"));
    }
    fail("is not understood");
  }

  const std::string& path_;
  SafetensorsHeader& header_;
  Place place_ = Place::outside;
  std::string name_;
  std::string key_;
  std::set<std::string> names_;  // no hash: names that share one would cost the square
  std::optional<std::string> dtype_;
  std::optional<std::vector<std::int64_t>> shape_;
  std::optional<std::vector<std::int64_t>> offsets_;
};

// Checks one tensor against its bytes.
void check(const std::string& path, const SafetensorsHeader::Tensor& tensor, std::uint64_t expected_begin,
           std::uint64_t data_size) {
  const auto fail = [&](const std::string& message) {
    throw FileError(path, "tensor " + in_quotes(tensor.name) + " " + message);
  };
  const std::uint64_t element_size = safetensors_element_size(tensor.dtype);
  if (element_size == 0) fail("has the unknown dtype " + in_quotes(tensor.dtype));
  const std::string offsets = "data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
  if (tensor.begin > tensor.end) fail("has " + offsets + ", expected the first not above the second");
  if (tensor.end > data_size) fail("has " + offsets + ", but the data has " + std::to_string(data_size) + " bytes");
  if (tensor.begin != expected_begin) {
    fail("has " + offsets + ", expected to begin at " + std::to_string(expected_begin) + " (no gap, no overlap)");
  }
  // Axes of no extent do not excuse the others: strides are products of them.
  bool empty = false;
  std::int64_t bytes_if_full = static_cast<std::int64_t>(element_size);
  for (const std::int64_t extent : tensor.shape) {
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(bytes_if_full, extent, &bytes_if_full)) {
      fail("has shape " + describe(tensor.shape) + ", whose size does not fit 63 bits");
    }
  }
  const std::uint64_t bytes = empty ? 0 : static_cast<std::uint64_t>(bytes_if_full);
  if (bytes != tensor.end - tensor.begin) {
    fail("of dtype " + tensor.dtype + " and shape " + describe(tensor.shape) + " takes " + std::to_string(bytes) +
         " bytes, but " + offsets + " hold " + std::to_string(tensor.end - tensor.begin));
  }
}

}  // namespace

std::uint64_t safetensors_element_size(std::string_view dtype) noexcept {
  for (const auto& [name, size] : kElementSizes) {
    if (name == dtype) return size;
  }
  return 0;
}

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json, std::uint64_t data_size) {
  if (json.empty() || json.front() != '{') throw FileError(path, "the header does not begin with '{'");
  // The parser takes a zero byte for the end of its input; nothing may hide behind one.
  if (json.find('\0') != std::string_view::npos) throw FileError(path, "the header holds a zero byte");
  SafetensorsHeader header;
  HeaderHandler handler(path, header);
  Json::sax_parse(json.begin(), json.end(), &handler);
  // Tensors of no bytes may begin where another does: they come first.
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t covered = 0;
  for (const auto& tensor : header.tensors) {
    check(path, tensor, covered, data_size);
    covered = tensor.end;
  }
  if (covered != data_size) {
    throw FileError(path,
                    "holds " + std::to_string(data_size - covered) + " bytes after the last tensor, expected none");
  }
  return header;
}

}  // namespace headlight::models
