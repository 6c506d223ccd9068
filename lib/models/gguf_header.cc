#include "models/gguf_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

constexpr std::uint64_t kLongestName = 65535;
constexpr std::uint32_t kMostAxes = 4;
constexpr std::uint64_t kUsualAlignment = 32;
// The fewest bytes that an entry and a tensor take: so many can there be, whatever the file says.
constexpr std::uint64_t kLeastEntry = 8 + 1 + 4 + 1, kLeastTensor = 8 + 1 + 4 + 4 + 8;

// Bytes of a value; 0 of strings and arrays, which have any number, and of what is no type.
constexpr std::uint64_t size_of(GgufType type) noexcept {
  switch (type) {
    case GgufType::uint8:
    case GgufType::int8:
    case GgufType::boolean:
      return 1;
    case GgufType::uint16:
    case GgufType::int16:
      return 2;
    case GgufType::uint32:
    case GgufType::int32:
    case GgufType::float32:
      return 4;
    case GgufType::uint64:
    case GgufType::int64:
    case GgufType::float64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return 0;
}

bool is_boolean(std::byte byte) noexcept { return byte <= std::byte{1}; }

const StorageFormatInfo* format_of_type(std::uint32_t type) noexcept {
  const std::span<const StorageFormatInfo> all = storage_formats();
  const auto found = std::find_if(all.begin(), all.end(), [type](const StorageFormatInfo& of) {
    return of.gguf >= 0 && static_cast<std::uint32_t>(of.gguf) == type;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

GgufHeader::GgufHeader(const std::string& path, std::span<const std::byte> bytes) : path_(path), bytes_(bytes) {
  const std::span<const std::byte> magic = take(4, "the letters GGUF that a file begins with");
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) fail("does not begin with the letters GGUF");
  const auto version = number<std::uint32_t>("the version");
  if (version != 2 && version != 3) {
    fail("is of version " + std::to_string(version) + ", expected 2 or 3" +
         (version == 0x02000000 || version == 0x03000000 ? " (the file is big-endian)" : ""));
  }
  const auto tensor_count = number<std::uint64_t>("the number of tensors");
  const auto entry_count = number<std::uint64_t>("the number of metadata entries");
  if (entry_count > left() / kLeastEntry || tensor_count > left() / kLeastTensor) {
    fail("says that it has " + std::to_string(entry_count) + " metadata entries and " + std::to_string(tensor_count) +
         " tensors, but only " + std::to_string(left()) + " bytes follow");
  }
  read_metadata(entry_count);
  read_tensors(tensor_count);
  place_tensors();
  const auto by_name = [](const GgufTensor& a, const GgufTensor& b) { return a.name < b.name; };
  std::sort(tensors.begin(), tensors.end(), by_name);
  for (std::size_t n = 1; n < tensors.size(); ++n) {
    if (tensors[n - 1].name == tensors[n].name) fail("holds the tensor " + in_quotes(tensors[n].name) + " twice");
  }
}

void GgufHeader::fail(const std::string& message) const { throw FileError(path_, message); }

std::span<const std::byte> GgufHeader::take(std::uint64_t count, const std::string& what) {
  if (count > left()) {
    fail(what + " has " + std::to_string(count) + " bytes, but only " + std::to_string(left()) + " follow");
  }
  const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
  at_ += taken.size();
  return taken;
}

template <class T>
T GgufHeader::number(const std::string& what) {
  T value;
  std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
  return value;
}

std::string_view GgufHeader::string(const std::string& what) {
  const auto length = number<std::uint64_t>(what);
  const auto text = take(length, what);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

std::string_view GgufHeader::name(const std::string& what) {
  const std::string_view found = string(what);
  if (!found.empty() && found.size() <= kLongestName) return found;
  fail(what + " has " + std::to_string(found.size()) + " bytes, expected 1 to " + std::to_string(kLongestName));
}

GgufValue GgufHeader::value(const std::string& what) {
  GgufValue made;
  made.type_ = static_cast<GgufType>(number<std::uint32_t>(what));
  if (made.type_ == GgufType::string) {
    const std::string_view text = string(what);
    made.bytes_ = std::as_bytes(std::span(text));
  } else if (made.type_ == GgufType::array) {
    read_array(made, what);
  } else if (const std::uint64_t size = size_of(made.type_); size != 0) {
    made.bytes_ = take(size, what);
  } else {
    fail(what + " has the type " + std::to_string(static_cast<std::uint32_t>(made.type_)) + ", expected 0 to 12");
  }
  if (made.type_ == GgufType::boolean && !is_boolean(made.bytes_[0])) fail(what + " is a boolean, expected 0 or 1");
  return made;
}

void GgufHeader::read_array(GgufValue& value, const std::string& what) {
  value.element_type_ = static_cast<GgufType>(number<std::uint32_t>(what));
  value.count_ = number<std::uint64_t>(what);
  if (value.element_type_ == GgufType::string) {
    const std::size_t first = at_;
    for (std::uint64_t n = 0; n < value.count_; ++n) (void)string(what);
    value.bytes_ = bytes_.subspan(first, at_ - first);
    return;
  }
  const std::uint64_t size = size_of(value.element_type_);
  if (size == 0) {
    fail(what + " is an array of type " + std::to_string(static_cast<std::uint32_t>(value.element_type_)) +
         ", expected numbers, booleans or strings");
  }
  if (value.count_ > left() / size) {
    fail(what + " has " + std::to_string(value.count_) + " elements, but only " + std::to_string(left()) +
         " bytes follow");
  }
  value.bytes_ = take(value.count_ * size, what);
  if (value.element_type_ == GgufType::boolean && !std::all_of(value.bytes_.begin(), value.bytes_.end(), is_boolean)) {
    fail(what + " has a boolean that is neither 0 nor 1");
  }
}

void GgufHeader::read_metadata(std::uint64_t count) {
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::string_view key = name("the key of entry " + std::to_string(n));
    metadata.push_back({key, value("the entry " + in_quotes(key))});
  }
  std::sort(metadata.begin(), metadata.end(), [](const GgufEntry& a, const GgufEntry& b) { return a.key < b.key; });
  for (std::size_t n = 1; n < metadata.size(); ++n) {
    if (metadata[n - 1].key == metadata[n].key) fail("has the entry " + in_quotes(metadata[n].key) + " twice");
  }
}

void GgufHeader::read_extents(GgufTensor& tensor, const std::string& what) {
  const auto axes = number<std::uint32_t>(what);
  if (axes > kMostAxes) fail(what + " has " + std::to_string(axes) + " axes, expected at most 4");
  std::int64_t count = 1;
  for (std::uint32_t axis = 0; axis < axes; ++axis) {
    const auto extent = number<std::uint64_t>(what);
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
        __builtin_mul_overflow(count, static_cast<std::int64_t>(extent), &count)) {
      fail(what + " has extents whose product is beyond 63 bits");
    }
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(extent));
  }
  counts_.push_back(count);
}

void GgufHeader::read_tensors(std::uint64_t count) {
  for (std::uint64_t n = 0; n < count; ++n) {
    GgufTensor tensor;
    tensor.name = name("the name of tensor " + std::to_string(n));
    const std::string what = "tensor " + in_quotes(tensor.name);
    read_extents(tensor, what);
    tensor.type = number<std::uint32_t>(what);
    if (const StorageFormatInfo* const of = format_of_type(tensor.type)) tensor.format = of->format;
    offsets_.push_back(number<std::uint64_t>(what));
    tensors.push_back(std::move(tensor));
  }
}

std::uint64_t GgufHeader::alignment() const {
  constexpr std::string_view kKey = "general.alignment";
  const auto found =
      std::find_if(metadata.begin(), metadata.end(), [&](const GgufEntry& entry) { return entry.key == kKey; });
  if (found == metadata.end()) return kUsualAlignment;
  const std::optional<std::int64_t> said = found->value.integer();
  if (said && *said > 0 && *said % 8 == 0) return static_cast<std::uint64_t>(*said);
  fail("the entry 'general.alignment' is " + (said ? std::to_string(*said) : "no integer") +
       ", expected a positive multiple of 8");
}

void GgufHeader::place_tensors() {
  const std::uint64_t unit = alignment();
  const std::uint64_t rest = at_ % unit;
  if (tensors.empty()) return;
  (void)take(rest == 0 ? 0 : unit - rest, "what lies between the header and the tensors");
  const std::span<const std::byte> data = bytes_.subspan(at_);
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    GgufTensor& tensor = tensors[n];
    const auto refuse = [&](const std::string& message) { fail("tensor " + in_quotes(tensor.name) + message); };
    if (offsets_[n] % unit != 0) {
      refuse(" has the offset " + std::to_string(offsets_[n]) + ", expected a multiple of " + std::to_string(unit));
    }
    if (offsets_[n] > data.size()) {
      refuse(" has the offset " + std::to_string(offsets_[n]) + ", but only " + std::to_string(data.size()) +
             " bytes follow");
    }
    if (!tensor.format) continue;
    const StorageFormatInfo& of = info(*tensor.format);
    const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (columns % of.numbers != 0) {
      refuse(" is " + std::string(of.gguf_name) + " in rows of " + std::to_string(columns) +
             " numbers, expected a multiple of " + std::to_string(of.numbers));
    }
    const std::int64_t blocks = counts_[n] / of.numbers;
    std::int64_t bytes = 0;
    const std::uint64_t follow = data.size() - offsets_[n];
    if (__builtin_mul_overflow(blocks, of.bytes, &bytes) || static_cast<std::uint64_t>(bytes) > follow) {
      refuse(" has " + std::to_string(blocks) + " times " + std::to_string(of.bytes) + " bytes, but only " +
             std::to_string(follow) + " follow");
    }
    tensor.bytes = data.subspan(static_cast<std::size_t>(offsets_[n]), static_cast<std::size_t>(bytes));
  }
  check_apart();
}

void GgufHeader::check_apart() const {
  std::vector<const GgufTensor*> by_place;
  for (const GgufTensor& tensor : tensors) {
    if (!tensor.bytes.empty()) by_place.push_back(&tensor);
  }
  std::sort(by_place.begin(), by_place.end(),
            [](const GgufTensor* a, const GgufTensor* b) { return a->bytes.data() < b->bytes.data(); });
  for (std::size_t n = 1; n < by_place.size(); ++n) {
    const GgufTensor &before = *by_place[n - 1], &tensor = *by_place[n];
    if (before.bytes.data() + before.bytes.size() <= tensor.bytes.data()) continue;
    fail("tensor " + in_quotes(tensor.name) + " has bytes of tensor " + in_quotes(before.name));
  }
}

}  // namespace headlight::models
