#include "models/tensor_files/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
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

// The parser keeps several copies of a string that grow.
constexpr std::size_t kLongestString = std::size_t{1} << 20;

// What one walk over the header tells, of JSON.
struct Outline {
  std::size_t objects = 0, longest_string = 0;
};
Outline outline_of(std::string_view json) noexcept {
  Outline outline;
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (json[at] == '{') ++outline.objects;
    if (json[at] != '"') continue;
    const std::size_t begin = ++at;
    while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
    outline.longest_string = std::max(outline.longest_string, std::min(at, json.size()) - begin);
  }
  return outline;
}

// What a string takes beside itself.
std::size_t heap_of(const std::string& text) noexcept { return text.size() < sizeof text / 2 ? 0 : text.size() + 1; }

std::string offsets_text(std::uint64_t begin, std::uint64_t end) {
  return "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "]";
}

// Walks the header event by event and keeps only what the format allows at that place, so that hostile JSON can neither
// nest deep nor hide a second meaning behind a repeated key.
//
//   level 0: the object itself    level 1: its values, one object a tensor    level 2: a tensor's three members
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  HeaderHandler(const std::string& path, std::string_view json, std::span<const std::byte> data,
                SafetensorsHeader& header)
      : path_(path), data_(data), header_(header), header_bytes_(json.size()) {
    const Outline outline = outline_of(json);
    if (outline.longest_string > kLongestString) {
      throw FileError(path_, "the header has a string of " + std::to_string(outline.longest_string) +
                                 " bytes, expected at most " + std::to_string(kLongestString));
    }
    // One of them is the header itself, another one may be __metadata__.
    const std::size_t tensors = std::max<std::size_t>(outline.objects, 1) - 1;
    take(tensors * (sizeof(SafetensorsEntry) + sizeof(std::uint32_t)));
    header_.entries.reserve(tensors);
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) return enter(Place::header);
    if (place_ == Place::header) return enter(name_ == "__metadata__" ? Place::metadata : Place::tensor);
    unexpected("an object");
  }

  bool end_object() override {
    if (place_ == Place::header) return enter(Place::outside);
    if (place_ == Place::tensor) {
      for (std::size_t member = 0; member < kMembers.size(); ++member) {
        if (!has_[member]) fail("lacks " + std::string(kMembers[member]));
      }
      if (offsets_.size() != 2) fail("data_offsets has " + std::to_string(offsets_.size()) + " entries, expected 2");
      add_tensor();
    }
    return enter(Place::header);
  }

  bool key(std::string& text) override {
    if (place_ == Place::header) {
      name_ = text;
      has_ = {};
      if (text == "__metadata__" && std::exchange(has_metadata_, true)) fail_twice(text);
      return true;
    }
    key_ = text;
    if (place_ == Place::metadata) {
      if (header_.metadata.contains(text)) fail("holds the key " + in_quotes(text) + " twice");
      return true;
    }
    const auto* const known = std::find(kMembers.begin(), kMembers.end(), text);
    if (known == kMembers.end()) {
      fail("has the unknown member " + in_quotes(text) + ", expected dtype, shape and data_offsets");
    }
    if (std::exchange(has_[static_cast<std::size_t>(known - kMembers.begin())], true)) fail("holds " + text + " twice");
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") unexpected("an array");
    (key_ == "shape" ? shape_ : offsets_).clear();
    return enter(Place::numbers);
  }

  bool end_array() override { return enter(Place::tensor); }

  bool number_unsigned(Json::number_unsigned_t value) override {
    if (place_ != Place::numbers) unexpected("a number");
    if (value > static_cast<std::uint64_t>(INT64_MAX))
      fail(key_ + " holds " + std::to_string(value) + ", expected less than 2^63");
    auto& numbers = key_ == "shape" ? shape_ : offsets_;
    if (numbers.size() == kMostAxes) fail(key_ + " has more than " + std::to_string(kMostAxes) + " entries");
    numbers.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      constexpr std::size_t kOfNode = 4 * sizeof(void*);
      take(kOfNode + 2 * sizeof value + heap_of(key_) + heap_of(value));
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

  [[noreturn]] void fail_twice(std::string_view name) const {
    throw FileError(path_, "the header names " + in_quotes(name) + " twice");
  }

  void take(std::size_t bytes) {
    taken_ += bytes;
    const std::size_t most = 2 * header_bytes_ + kMemoryBesideHeader;
    if (taken_ <= most) return;
    throw FileError(path_, "the header asks for " + std::to_string(taken_) + " bytes of memory, expected at most " +
                               std::to_string(most) + " of " + std::to_string(header_bytes_) + " bytes");
  }

  // What is left is checked where all are known.
  void add_tensor() {
    const auto begin = static_cast<std::uint64_t>(offsets_[0]), end = static_cast<std::uint64_t>(offsets_[1]);
    if (safetensors_element_size(dtype_) == 0) fail("has the unknown dtype " + in_quotes(dtype_));
    const std::string offsets = "has " + offsets_text(begin, end);
    if (begin > end) fail(offsets + ", expected the first not above the second");
    if (end > data_.size()) fail(offsets + ", but the data has " + std::to_string(data_.size()) + " bytes");
    take(heap_of(name_) + shape_.size() * sizeof shape_[0]);
    header_.entries.push_back({name_, dtype_, std::vector<std::int64_t>(shape_.begin(), shape_.end()),
                               data_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))});
  }

  static constexpr std::array<std::string_view, 3> kMembers{"dtype", "shape", "data_offsets"};

  const std::string& path_;
  std::span<const std::byte> data_;
  SafetensorsHeader& header_;
  std::size_t header_bytes_, taken_ = 0;
  Place place_ = Place::outside;
  std::string name_;
  std::string key_;
  bool has_metadata_ = false;
  std::array<bool, kMembers.size()> has_{};  // of the tensor
  std::string dtype_;
  std::vector<std::int64_t> shape_, offsets_;
};

// Checks one tensor, whose bytes lie in the data, against them.
void check(const std::string& path, const SafetensorsEntry& tensor, std::span<const std::byte> data,
           std::uint64_t expected_begin) {
  const auto fail = [&](const std::string& message) {
    throw FileError(path, "tensor " + in_quotes(tensor.name) + " " + message);
  };
  const auto begin = static_cast<std::uint64_t>(tensor.bytes.data() - data.data());
  const std::string offsets = offsets_text(begin, begin + tensor.bytes.size());
  if (begin != expected_begin) {
    fail("has " + offsets + ", expected to begin at " + std::to_string(expected_begin) + " (no gap, no overlap)");
  }
  // Axes of no extent do not excuse the others: strides are products of them.
  bool empty = false;
  auto bytes_if_full = static_cast<std::int64_t>(safetensors_element_size(tensor.dtype));
  for (const std::int64_t extent : tensor.shape) {
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(bytes_if_full, extent, &bytes_if_full)) {
      fail("has shape " + describe(tensor.shape) + ", whose size does not fit 63 bits");
    }
  }
  const std::uint64_t bytes = empty ? 0 : static_cast<std::uint64_t>(bytes_if_full);
  if (bytes != tensor.bytes.size()) {
    fail("of dtype " + tensor.dtype + " and shape " + describe(tensor.shape) + " takes " + std::to_string(bytes) +
         " bytes, but " + offsets + " hold " + std::to_string(tensor.bytes.size()));
  }
}

}  // namespace

std::uint64_t safetensors_element_size(std::string_view dtype) noexcept {
  for (const auto& [name, size] : kElementSizes) {
    if (name == dtype) return size;
  }
  return 0;
}

std::vector<std::uint32_t> places_by_name(std::span<const SafetensorsEntry> entries) {
  std::vector<std::uint32_t> places(entries.size());
  std::iota(places.begin(), places.end(), 0U);
  std::sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int order = entries[a].name.compare(entries[b].name);
    return order != 0 ? order < 0 : a < b;
  });
  return places;
}

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json,
                                           std::span<const std::byte> data) {
  if (json.empty() || json.front() != '{') throw FileError(path, "the header does not begin with '{'");
  // The parser takes a zero byte for the end of its input; nothing may hide behind one.
  if (json.find('\0') != std::string_view::npos) throw FileError(path, "the header holds a zero byte");
  SafetensorsHeader header;
  HeaderHandler handler(path, json, data, header);
  Json::sax_parse(json.begin(), json.end(), &handler);
  // Tensors of no bytes may begin where another does: they come first.
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    if (a.bytes.data() != b.bytes.data()) return a.bytes.data() < b.bytes.data();
    return a.bytes.size() != b.bytes.size() ? a.bytes.size() < b.bytes.size() : a.name < b.name;
  });
  header.by_name = places_by_name(header.entries);
  const auto twice = std::adjacent_find(
      header.by_name.begin(), header.by_name.end(),
      [&](std::uint32_t a, std::uint32_t b) { return header.entries[a].name == header.entries[b].name; });
  if (twice != header.by_name.end()) {
    throw FileError(path, "the header names " + in_quotes(header.entries[*twice].name) + " twice");
  }
  std::uint64_t covered = 0;
  for (const SafetensorsEntry& tensor : header.entries) {
    check(path, tensor, data, covered);
    covered += tensor.bytes.size();
  }
  if (covered != data.size()) {
    throw FileError(path,
                    "holds " + std::to_string(data.size() - covered) + " bytes after the last tensor, expected none");
  }
  return header;
}

}  // namespace headlight::models
