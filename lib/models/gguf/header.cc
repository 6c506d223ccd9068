#include "models/gguf/header.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

constexpr std::uint64_t kLongestName = 65535;
constexpr std::uint32_t kMostAxes = 4;
constexpr std::uint64_t kUsualAlignment = 32;
// The fewest bytes that an entry and a tensor take: so many can there be, whatever the file says.
constexpr std::uint64_t kLeastEntry = 8 + 1 + 4 + 1, kLeastTensor = 8 + 1 + 4 + 4 + 8;

// Behind the name of a tensor and the first of its axes.
const std::byte* behind_axes(const GgufTensor& tensor, std::size_t axes) noexcept {
  return reinterpret_cast<const std::byte*>(tensor.name.data() + tensor.name.size()) + sizeof(std::uint32_t) +
         axes * sizeof(std::uint64_t);
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
  constexpr std::string_view kMagic = "GGUF";
  if (bytes.size() < kMagic.size()) {
    fail("has " + std::to_string(bytes.size()) + " bytes, expected a GGUF file, which begins with the letters GGUF");
  }
  const std::span<const std::byte> magic = take(kMagic.size(), {"the letters GGUF"});
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) fail("does not begin with the letters GGUF");
  const auto version = number<std::uint32_t>({"the version"});
  if (version != 2 && version != 3) {
    fail("is of version " + std::to_string(version) + ", expected 2 or 3" +
         (version == 0x02000000 || version == 0x03000000 ? " (the file is big-endian)" : ""));
  }
  const auto tensor_count = number<std::uint64_t>({"the number of tensors"});
  const auto entry_count = number<std::uint64_t>({"the number of metadata entries"});
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

std::string GgufHeader::What::text() const {
  std::string line(words);
  if (number) line += std::to_string(*number);
  return name.empty() ? line : line + in_quotes(name);
}

void GgufHeader::fail(const std::string& message) const { throw FileError(path_, message); }

std::span<const std::byte> GgufHeader::take(std::uint64_t count, const What& what) {
  if (count > left()) {
    fail(what, " has " + std::to_string(count) + " bytes, but only " + std::to_string(left()) + " follow");
  }
  const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
  at_ += taken.size();
  return taken;
}

template <class T>
T GgufHeader::number(const What& what) {
  return read_number<T>(take(sizeof(T), what).data());
}

std::string_view GgufHeader::string(const What& what) {
  const auto length = number<std::uint64_t>(what);
  const auto text = take(length, what);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

std::string_view GgufHeader::name(const What& what) {
  const std::string_view found = string(what);
  if (!found.empty() && found.size() <= kLongestName) return found;
  fail(what, " has " + std::to_string(found.size()) + " bytes, expected 1 to " + std::to_string(kLongestName));
}

void GgufHeader::check_value(const What& what) {
  const auto type = static_cast<GgufType>(number<std::uint32_t>(what));
  if (type == GgufType::string) {
    (void)string(what);
  } else if (type == GgufType::array) {
    check_array(what);
  } else if (const std::uint64_t size = size_of(type); size != 0) {
    const std::span<const std::byte> taken = take(size, what);
    if (type == GgufType::boolean && !is_boolean(taken[0])) fail(what, " is a boolean, expected 0 or 1");
  } else {
    fail(what, " has the type " + std::to_string(static_cast<std::uint32_t>(type)) + ", expected 0 to 12");
  }
}

void GgufHeader::check_array(const What& what) {
  const auto type = static_cast<GgufType>(number<std::uint32_t>(what));
  const auto count = number<std::uint64_t>(what);
  if (type == GgufType::string) {
    for (std::uint64_t n = 0; n < count; ++n) (void)string(what);
    return;
  }
  const std::uint64_t size = size_of(type);
  if (size == 0) {
    fail(what, " is an array of type " + std::to_string(static_cast<std::uint32_t>(type)) +
                   ", expected numbers, booleans or strings");
  }
  if (count > left() / size) {
    fail(what, " has " + std::to_string(count) + " elements, but only " + std::to_string(left()) + " bytes follow");
  }
  const std::span<const std::byte> taken = take(count * size, what);
  if (type == GgufType::boolean && !std::all_of(taken.begin(), taken.end(), is_boolean)) {
    fail(what, " has a boolean that is neither 0 nor 1");
  }
}

void GgufHeader::read_metadata(std::uint64_t count) {
  metadata.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::string_view key = name({"the key of entry ", {}, n});
    check_value({"the entry ", key});
    metadata.push_back({key, bytes_.data() + at_});
  }
  std::sort(metadata.begin(), metadata.end(), [](const GgufEntry& a, const GgufEntry& b) { return a.key() < b.key(); });
  for (std::size_t n = 1; n < metadata.size(); ++n) {
    if (metadata[n - 1].key() == metadata[n].key()) fail("has the entry " + in_quotes(metadata[n].key()) + " twice");
  }
}

void GgufHeader::read_tensors(std::uint64_t count) {
  if (count > left() / kLeastTensor) {
    fail("says that it has " + std::to_string(count) + " tensors, but only " + std::to_string(left()) +
         " bytes follow the metadata");
  }
  tensors.reserve(static_cast<std::size_t>(count));
  std::size_t all_axes = 0;
  for (std::uint64_t n = 0; n < count; ++n) {
    GgufTensor& tensor = tensors.emplace_back();
    tensor.name = name({"the name of tensor ", {}, n});
    const What what{"tensor ", tensor.name};
    const auto axes = number<std::uint32_t>(what);
    if (axes > kMostAxes) fail(what, " has " + std::to_string(axes) + " axes, expected at most 4");
    tensor.axes_ = static_cast<std::uint8_t>(axes);
    all_axes += axes;
    (void)take(axes * sizeof(std::uint64_t), what);
    tensor.type = number<std::uint32_t>(what);
    if (const StorageFormatInfo* const of = format_of_type(tensor.type)) tensor.format = of->format;
    (void)take(sizeof(std::uint64_t), what);
  }
  read_extents(all_axes);
}

void GgufHeader::read_extents(std::size_t axes) {
  extents.reserve(axes);  // where they stay
  for (GgufTensor& tensor : tensors) {
    tensor.extents_ = extents.data() + extents.size();
    std::int64_t count = 1;
    for (std::size_t axis = 0; axis < tensor.axes_; ++axis) {
      const auto extent = read_number<std::uint64_t>(behind_axes(tensor, axis));
      if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
          __builtin_mul_overflow(count, static_cast<std::int64_t>(extent), &count)) {
        fail("tensor " + in_quotes(tensor.name) + " has extents whose product is beyond 63 bits");
      }
      extents.push_back(static_cast<std::int64_t>(extent));
    }
    std::reverse(extents.end() - tensor.axes_, extents.end());
  }
}

std::uint64_t GgufHeader::alignment() const {
  constexpr std::string_view kKey = "general.alignment";
  const auto found =
      std::find_if(metadata.begin(), metadata.end(), [&](const GgufEntry& entry) { return entry.key() == kKey; });
  if (found == metadata.end()) return kUsualAlignment;
  const std::optional<std::int64_t> said = found->value().integer();
  if (said && *said > 0 && *said % 8 == 0) return static_cast<std::uint64_t>(*said);
  fail("the entry 'general.alignment' is " + (said ? std::to_string(*said) : "no integer") +
       ", expected a positive multiple of 8");
}

void GgufHeader::place_tensors() {
  const std::uint64_t unit = alignment();
  const std::uint64_t rest = at_ % unit;
  if (tensors.empty()) return;
  (void)take(rest == 0 ? 0 : unit - rest, {"what lies between the header and the tensors"});
  const std::span<const std::byte> data = bytes_.subspan(at_);
  for (GgufTensor& tensor : tensors) place_tensor(tensor, data, unit);
  check_apart();
}

void GgufHeader::place_tensor(GgufTensor& tensor, std::span<const std::byte> data, std::uint64_t unit) const {
  const auto refuse = [&](const std::string& message) { fail("tensor " + in_quotes(tensor.name) + message); };
  const auto offset =
      read_number<std::uint64_t>(behind_axes(tensor, tensor.shape().size()) + sizeof(std::uint32_t));  // of its type
  if (offset % unit != 0) {
    refuse(" has the offset " + std::to_string(offset) + ", expected a multiple of " + std::to_string(unit));
  }
  if (offset > data.size()) {
    refuse(" has the offset " + std::to_string(offset) + ", but only " + std::to_string(data.size()) + " bytes follow");
  }
  if (!tensor.format) return;
  const StorageFormatInfo& of = info(*tensor.format);
  const std::span<const std::int64_t> shape = tensor.shape();
  const std::int64_t columns = shape.empty() ? 1 : shape.back();
  if (columns % of.numbers != 0) {
    refuse(" is " + std::string(of.gguf_name) + " in rows of " + std::to_string(columns) +
           " numbers, expected a multiple of " + std::to_string(of.numbers));
  }
  const std::int64_t blocks =
      std::accumulate(shape.rbegin(), shape.rend(), std::int64_t{1}, std::multiplies<>()) / of.numbers;
  std::int64_t bytes = 0;
  const std::uint64_t follow = data.size() - offset;
  if (__builtin_mul_overflow(blocks, of.bytes, &bytes) || static_cast<std::uint64_t>(bytes) > follow) {
    refuse(" has " + std::to_string(blocks) + " times " + std::to_string(of.bytes) + " bytes, but only " +
           std::to_string(follow) + " follow");
  }
  tensor.bytes = data.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
}

void GgufHeader::check_apart() const {
  std::vector<std::uint32_t> by_place;
  const auto has_bytes = [](const GgufTensor& tensor) { return !tensor.bytes.empty(); };
  by_place.reserve(static_cast<std::size_t>(std::count_if(tensors.begin(), tensors.end(), has_bytes)));
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    if (has_bytes(tensors[n])) by_place.push_back(static_cast<std::uint32_t>(n));
  }
  std::sort(by_place.begin(), by_place.end(),
            [&](std::uint32_t a, std::uint32_t b) { return tensors[a].bytes.data() < tensors[b].bytes.data(); });
  for (std::size_t n = 1; n < by_place.size(); ++n) {
    const GgufTensor &before = tensors[by_place[n - 1]], &tensor = tensors[by_place[n]];
    if (before.bytes.data() + before.bytes.size() <= tensor.bytes.data()) continue;
    fail("tensor " + in_quotes(tensor.name) + " has bytes of tensor " + in_quotes(before.name));
  }
}

}  // namespace headlight::models
